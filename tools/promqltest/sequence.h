#pragma once
// One series line of a script: labels, then values in the short notation of FORMAT.md (section 3).
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "storage/base/status.h"
#include "storage/model/histogram.h"
#include "storage/model/labels.h"

namespace varve::promqltest {

struct SequenceValue {
  bool omitted = false;
  double value = 0;
  std::shared_ptr<const model::Histogram> histogram;  // instead of the value
  bool hint_written = false;                          // a counter_reset_hint stands in the literal

  bool IsStale() const { return histogram == nullptr && !omitted && model::IsStaleNan(value); }
};

struct SeriesLine {
  model::Labels labels;
  std::vector<SequenceValue> values;
  int line = 0;  // in the script, from 1
};

absl::StatusOr<SeriesLine> ParseSeriesLine(std::string_view text);

// What follows the name of an `...@st` line: for each position the distance from the sample's time to its start.
struct StartsLine {
  model::Labels labels;
  std::vector<std::optional<int64_t>> offsets_ms;
};
bool IsStartsLine(std::string_view text);
absl::StatusOr<StartsLine> ParseStartsLine(std::string_view text);

// A whole line that is one number, or nothing.
std::optional<double> ParseBareNumber(std::string_view text);

}  // namespace varve::promqltest
