// The same scripts over the real storage: heads, blocks, a log after a crash, and all of them together.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "storage/base/clock.h"
#include "tools/promqltest/runner.h"
#include "tools/promqltest/server_world.h"

namespace varve::promqltest {
namespace {

Outcome RunIn(ServerWorld::After after, const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const base::SystemClock clock;
  const engine::Engine engine(engine::EngineConfig::AllFeatures(), clock);
  const auto world = ServerWorld::Create(after);
  REQUIRE(world.ok());
  return RunScript(path.string(), text, **world, engine, {});
}

void RunFolder(ServerWorld::After after, const std::filesystem::path& folder) {
  int passed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".test") continue;
    const Outcome outcome = RunIn(after, entry.path());
    for (const std::string& failure : outcome.failures) FAIL_CHECK(failure);
    passed += outcome.passed;
  }
  CHECK(passed > 0);
}

TEST_CASE("scripts over heads") { RunFolder(ServerWorld::After::kNothing, "tests/query/scripts"); }
TEST_CASE("scripts over blocks") { RunFolder(ServerWorld::After::kFlush, "tests/query/scripts"); }
TEST_CASE("scripts after a crash") { RunFolder(ServerWorld::After::kRestart, "tests/query/scripts"); }
TEST_CASE("scripts over blocks and a restart") {
  RunFolder(ServerWorld::After::kFlushAndRestart, "tests/query/scripts");
}

TEST_CASE("the scripts of the reference over the real storage") {
  if (!std::filesystem::exists("../shared/promqltest")) {
    WARN("SKIPPED: ../shared/promqltest is not there");
    return;
  }
  for (const auto after : {ServerWorld::After::kNothing, ServerWorld::After::kFlush, ServerWorld::After::kRestart}) {
    RunFolder(after, "../shared/promqltest");
  }
}

}  // namespace
}  // namespace varve::promqltest
