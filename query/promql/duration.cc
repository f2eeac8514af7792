#include <algorithm>
#include <limits>

#include "query/promql/parser.h"
#include "storage/base/strings.h"

namespace varve::promql {

namespace {
struct Unit {
  std::string_view name;
  int64_t ms;
  bool exact;  // printed only when nothing is left over
};
constexpr int64_t kDay = int64_t{24} * 60 * 60 * 1000;
constexpr Unit kUnits[] = {
    {"y", 365 * kDay, true}, {"w", 7 * kDay, true}, {"d", kDay, false}, {"h", 60 * 60 * 1000, false},
    {"m", 60 * 1000, false}, {"s", 1000, false},    {"ms", 1, false}};
// Prometheus holds durations in nanoseconds.
constexpr int64_t kDurationMaxMs = std::numeric_limits<int64_t>::max() / 1'000'000;
}  // namespace

absl::StatusOr<int64_t> ParseDuration(std::string_view text) {
  if (text == "0") return 0;
  if (text.empty()) return absl::InvalidArgumentError("empty duration string");
  const auto invalid = [&] {
    return absl::InvalidArgumentError(base::StrCat("not a valid duration string: ", base::QuoteGo(text)));
  };
  int64_t total = 0;
  size_t next_unit = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    int64_t count = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
    if (error == std::errc::result_out_of_range) return absl::InvalidArgumentError("duration out of range");
    if (error != std::errc() || rest.front() == '-') return invalid();
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    size_t letters = 0;
    while (letters < rest.size() && (rest[letters] < '0' || rest[letters] > '9')) ++letters;
    size_t unit = next_unit;
    while (unit < std::size(kUnits) && kUnits[unit].name != rest.substr(0, letters)) ++unit;
    if (unit == std::size(kUnits)) return invalid();
    rest.remove_prefix(letters);
    next_unit = unit + 1;
    int64_t ms;
    if (__builtin_mul_overflow(count, kUnits[unit].ms, &ms) || __builtin_add_overflow(total, ms, &total) ||
        total > kDurationMaxMs) {
      return absl::InvalidArgumentError("duration out of range");
    }
  }
  return total;
}

std::string FormatDuration(int64_t ms) {
  if (ms == 0) return "0s";
  std::string out;
  uint64_t left = static_cast<uint64_t>(ms);
  if (ms < 0) {
    out = "-";
    left = 0 - left;
  }
  for (const Unit& unit : kUnits) {
    const auto size = static_cast<uint64_t>(unit.ms);
    if (left < size || (unit.exact && left % size != 0)) continue;
    base::StrAppend(out, left / size, unit.name);
    left %= size;
  }
  return out;
}

std::string LineColumn(std::string_view text, int32_t offset) {
  const std::string_view before = text.substr(0, std::min(text.size(), static_cast<size_t>(std::max(offset, 0))));
  int64_t line = 1;
  size_t line_begin = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] == '\n') ++line, line_begin = i + 1;
  }
  return base::StrCat(line, ":", before.size() - line_begin + 1);
}

}  // namespace varve::promql
