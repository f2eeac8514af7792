// promqltest [--enable-feature=a,b | --all-features] [--level2] [--per-file] [--world=NAME] FILE...
// Runs PromQL test scripts against the engine over a table in memory or over a server's own storage.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "query/engine/engine.h"
#include "storage/base/clock.h"
#include "storage/base/strings.h"
#include "tools/promqltest/runner.h"
#include "tools/promqltest/server_world.h"

namespace {

using namespace varve;

constexpr char kUsage[] =
    "usage: promqltest [--enable-feature=a,b | --all-features] [--level2] [--per-file] [--world=NAME] FILE...\n"
    "  --all-features      what the scripts of Prometheus assume (the default)\n"
    "  --enable-feature=   only these of promql-experimental-functions, promql-extended-range-selectors,\n"
    "                      promql-binop-fill-modifiers, promql-delayed-name-removal, use-start-timestamps,\n"
    "                      type-and-unit-labels; may be empty\n"
    "  --level2            also pin every instant query with @ and run it as a range query\n"
    "  --per-file          a line for each file\n"
    "  --world=NAME        where the samples live: table (plain memory, the default), head, block, restart,\n"
    "                      block-restart\n";

bool Enable(std::string_view feature, engine::EngineConfig& config) {
  if (feature == "promql-experimental-functions") return config.parser.experimental_functions = true;
  if (feature == "promql-extended-range-selectors") return config.parser.extended_range_selectors = true;
  if (feature == "promql-binop-fill-modifiers") return config.parser.fill_modifiers = true;
  if (feature == "promql-duration-expr") return config.parser.duration_expressions = true;
  if (feature == "promql-delayed-name-removal") return config.delayed_name_removal = true;
  if (feature == "use-start-timestamps") return config.start_timestamps = true;
  if (feature == "type-and-unit-labels") return config.type_and_unit_labels = true;
  return false;
}

absl::StatusOr<std::unique_ptr<promqltest::World>> MakeWorld(std::string_view name) {
  using After = promqltest::ServerWorld::After;
  if (name == "table") return std::make_unique<promqltest::TableWorld>();
  if (name == "head") return promqltest::ServerWorld::Create(After::kNothing);
  if (name == "block") return promqltest::ServerWorld::Create(After::kFlush);
  if (name == "restart") return promqltest::ServerWorld::Create(After::kRestart);
  if (name == "block-restart") return promqltest::ServerWorld::Create(After::kFlushAndRestart);
  return absl::InvalidArgumentError(base::StrCat("unknown world ", name));
}

}  // namespace

int main(int argc, char** argv) {
  engine::EngineConfig config = engine::EngineConfig::AllFeatures();
  promqltest::RunOptions options;
  bool per_file = false;
  std::string_view world_name = "table";
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    constexpr std::string_view kEnable = "--enable-feature=";
    if (argument.starts_with(kEnable)) {
      config = engine::EngineConfig();
      for (const std::string_view feature : base::StrSplit(argument.substr(kEnable.size()), ',')) {
        if (!feature.empty() && !Enable(feature, config)) {
          std::fprintf(stderr, "unknown feature %s\n", std::string(feature).c_str());
          return 2;
        }
      }
    } else if (argument == "--all-features") {
      config = engine::EngineConfig::AllFeatures();
    } else if (argument == "--level2") {
      options.level2 = true;
    } else if (argument.starts_with("--world=")) {
      world_name = argument.substr(std::string_view("--world=").size());
    } else if (argument == "--per-file") {
      per_file = true;
    } else if (argument.starts_with("-")) {
      std::fputs(kUsage, argument == "--help" ? stdout : stderr);
      return argument == "--help" ? 0 : 2;
    } else {
      files.emplace_back(argument);
    }
  }
  if (files.empty()) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  const base::SystemClock clock;
  const engine::Engine engine(config, clock);
  int passed = 0, failed = 0;
  for (const std::string& file : files) {
    std::ifstream in(file, std::ios::binary);
    if (!in) {
      std::fprintf(stderr, "cannot read %s\n", file.c_str());
      return 2;
    }
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const auto world = MakeWorld(world_name);
    if (!world.ok()) {
      std::fprintf(stderr, "%s\n", std::string(base::Message(world.status())).c_str());
      return 2;
    }
    const promqltest::Outcome outcome = promqltest::RunScript(file, text, **world, engine, options);
    for (const std::string& failure : outcome.failures) std::printf("%s\n", failure.c_str());
    if (per_file) std::printf("%s: %d passed, %d failed\n", file.c_str(), outcome.passed, outcome.failed);
    passed += outcome.passed;
    failed += outcome.failed;
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
