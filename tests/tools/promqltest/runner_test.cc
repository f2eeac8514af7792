#include "tools/promqltest/runner.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "storage/base/clock.h"

namespace varve::promqltest {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Outcome RunFile(const std::filesystem::path& path, const RunOptions& options) {
  const base::SystemClock clock;
  const engine::Engine engine(engine::EngineConfig::AllFeatures(), clock);
  TableWorld world;
  return RunScript(path.string(), ReadFile(path), world, engine, options);
}

TEST_CASE("no wrong expectation passes") {
  const std::string path = "tests/tools/promqltest/wrong.test";
  const Outcome outcome = RunFile(path, {});
  const auto script = ParseScript(ReadFile(path));
  REQUIRE(script.ok());
  std::vector<int> lines;  // of everything that has to fail
  for (const Command& command : *script) {
    if (const Eval* eval = std::get_if<Eval>(&command)) lines.push_back(eval->line);
  }
  lines.push_back(std::get<Load>(script->back()).line);
  CHECK(lines.size() == 34);
  CHECK(outcome.passed == 0);
  CHECK(outcome.failed_lines == lines);
}

TEST_CASE("a script that does not parse is one failure") {
  const base::SystemClock clock;
  const engine::Engine engine(engine::EngineConfig::AllFeatures(), clock);
  TableWorld world;
  const Outcome outcome = RunScript("x", "eval instant at 0 1\n 1\neval instant at 0 1 +", world, engine, {});
  CHECK(outcome.passed == 0);
  CHECK(outcome.failed == 1);
  CHECK(outcome.failures[0].starts_with("x:1: line 3: "));
}

TEST_CASE("the second level finds what the first cannot see") {
  const base::SystemClock clock;
  const engine::Engine engine(engine::EngineConfig::AllFeatures(), clock);
  TableWorld world;
  const auto failed = [&](std::string_view eval, const RunOptions& options) {
    const std::string text = "load 10s\n m 0+1x10\n\n" + std::string(eval);
    return RunScript("x", text, world, engine, options).failed;
  };
  // end() moves with the query, which pinning to the time of the eval reveals.
  const std::string_view moving = "eval instant at 50s m @ 50 + scalar(m @ end())\n {} 10\n";
  CHECK(failed(moving, {}) == 0);
  CHECK(failed(moving, {true}) == 1);
  const std::string_view steady = "eval instant at 50s m + time()\n {} 55\n";
  CHECK(failed(steady, {true}) == 0);
}

TEST_CASE("our own scripts pass on both levels") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/query/scripts")) {
    if (entry.path().extension() != ".test") continue;
    ++files;
    const Outcome outcome = RunFile(entry.path(), {true});
    for (const std::string& failure : outcome.failures) FAIL_CHECK(failure);
    CHECK(outcome.passed > 0);
  }
  CHECK(files >= 5);
}

TEST_CASE("the scripts of the reference pass") {
  const std::filesystem::path folder = "../shared/promqltest";
  if (!std::filesystem::exists(folder)) {
    WARN("SKIPPED: " << folder << " is not there");
    return;
  }
  int passed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".test") continue;
    const Outcome outcome = RunFile(entry.path(), {});
    for (const std::string& failure : outcome.failures) FAIL_CHECK(failure);
    passed += outcome.passed;
  }
  CHECK(passed == 1328);
}

TEST_CASE("the scripts of the reference pass on the second level") {
  const std::filesystem::path folder = "../shared/promqltest";
  if (!std::filesystem::exists(folder)) {
    WARN("SKIPPED: " << folder << " is not there");
    return;
  }
  int passed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".test") continue;
    const Outcome outcome = RunFile(entry.path(), {true});
    for (const std::string& failure : outcome.failures) FAIL_CHECK(failure);
    passed += outcome.passed;
  }
  CHECK(passed == 1328);
}

}  // namespace
}  // namespace varve::promqltest
