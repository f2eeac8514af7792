#pragma once
// Runs a script's commands against a world and an engine, and says what was not as expected.
#include <string>
#include <string_view>
#include <vector>

#include "query/engine/engine.h"
#include "tools/promqltest/script.h"
#include "tools/promqltest/world.h"

namespace varve::promqltest {

struct RunOptions {
  // Also run every instant query with its selectors pinned by @ at other times, and as a range query (FORMAT.md,
  // section 6).
  bool level2 = false;
};

struct Outcome {
  int passed = 0, failed = 0;
  std::vector<std::string> failures;  // "file:line: what"
  // Of the failed evals (and of loads that failed), the lines, in order.
  std::vector<int> failed_lines;
};

// `name` stands in failures. A script that cannot be parsed, and a load that fails, count as one failure.
Outcome RunScript(std::string_view name, std::string_view text, World& world, const engine::Engine& engine,
                  const RunOptions& options);

}  // namespace varve::promqltest
