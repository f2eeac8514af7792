#pragma once
// The PromQL test script language as commands. Everything is parsed, expressions included, before anything runs.
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "storage/base/status.h"
#include "tools/promqltest/sequence.h"

namespace varve::promqltest {

struct LoadedSeries {
  SeriesLine series;
  std::vector<std::optional<int64_t>> start_offsets_ms;  // empty, or one for each value
};

struct Clear {};

struct Load {
  int line = 0;
  int64_t step_ms = 0;
  bool with_nhcb = false;  // classic histograms are also loaded as native ones with custom buckets
  std::vector<LoadedSeries> series;
};

struct TextExpectation {
  enum class Kind { kAny, kEqual, kRegex } kind = Kind::kAny;  // a regular expression is searched for, unanchored
  std::string text;
};

struct TimeGrid {
  int64_t start_ms = 0, end_ms = 0, step_ms = 0;
};

struct Eval {
  int line = 0;
  bool instant = true;
  TimeGrid time;  // instant: start is the time
  std::string expr;

  std::optional<TextExpectation> fail;
  std::vector<TextExpectation> warn, info;
  bool no_warn = false, no_info = false;
  bool ordered = false;
  std::optional<std::string> string;
  std::optional<TimeGrid> range_vector;
  std::optional<double> scalar;
  std::vector<SeriesLine> series;
};

using Command = std::variant<Clear, Load, Eval>;

// InvalidArgument: "line 12: ...".
absl::StatusOr<std::vector<Command>> ParseScript(std::string_view text);

}  // namespace varve::promqltest
