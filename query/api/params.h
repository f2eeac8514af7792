#pragma once
// Parameters of an API request, and the forms in which Prometheus takes times and durations.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/base/status.h"

namespace varve::api {

// Decoded key-value pairs in the order of the request, those of the query string first. Keys may repeat.
class Params {
 public:
  Params() = default;
  explicit Params(std::vector<std::pair<std::string, std::string>> pairs) : pairs_(std::move(pairs)) {}
  void Add(std::string key, std::string value) { pairs_.emplace_back(std::move(key), std::move(value)); }
  std::string_view Get(std::string_view key) const;  // the first; "" when absent
  std::vector<std::string_view> All(std::string_view key) const;

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
};

// Milliseconds. Seconds as a float (rounded to ms) or RFC 3339; errors are `cannot parse "x" to a valid timestamp`.
absl::StatusOr<int64_t> ParseTime(std::string_view text);
// Nanoseconds. Seconds as a float, or a Prometheus duration.
absl::StatusOr<int64_t> ParseDurationNs(std::string_view text);
// "U__http_2e_requests" is http.requests; other names, and such that are escaped wrongly, stay as they are.
std::string UnescapeName(std::string_view name);
// UTC, "2026-01-02T03:04:05.678Z".
std::string FormatTime(int64_t t_ms);

}  // namespace varve::api
