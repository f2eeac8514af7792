#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

namespace varve::model {

// (after, until], PromQL's own edges: decided once, here. Milliseconds since the Unix epoch.
struct TimeRange {
  int64_t after_ms = std::numeric_limits<int64_t>::min();
  int64_t until_ms = std::numeric_limits<int64_t>::max();

  static TimeRange All() { return {}; }
  // Both ends included, as API parameters have it.
  static TimeRange Closed(int64_t first_ms, int64_t last_ms) {
    return {first_ms == std::numeric_limits<int64_t>::min() ? first_ms : first_ms - 1, last_ms};
  }
  bool Contains(int64_t t_ms) const { return after_ms < t_ms && t_ms <= until_ms; }
  bool empty() const { return after_ms >= until_ms; }
  bool Overlaps(int64_t first_ms, int64_t last_ms) const { return first_ms <= until_ms && last_ms > after_ms; }
  bool operator==(const TimeRange&) const = default;
};

}  // namespace varve::model
