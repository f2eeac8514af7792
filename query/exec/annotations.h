#pragma once
// Warnings and infos that belong to a result. Texts are Prometheus', because dashboards and tests match on them.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "query/promql/ast.h"

namespace varve::exec {

// One text is shown once, with the first position in the query that caused it. One thread.
class Annotations {
 public:
  void Warn(std::string_view text, promql::PositionRange position) { Add(warnings_, text, position); }
  void Info(std::string_view text, promql::PositionRange position) { Add(infos_, text, position); }
  // A classic histogram's buckets had to be levelled; all such events of one metric at one place are told as one.
  struct Monotonicity {
    double bucket_low = 0, bucket_high = 0, difference_max = 0;
    int64_t first_ms = 0, last_ms = 0;
    uint64_t count = 0;
  };
  void Levelled(std::string_view metric, promql::PositionRange position, const Monotonicity& event);

  // "PromQL warning: <text> (<line>:<column>)", sorted.
  std::vector<std::string> Warnings(std::string_view query) const;
  std::vector<std::string> Infos(std::string_view query) const;

 private:
  using Texts = std::map<std::string, int32_t, std::less<>>;
  static void Add(Texts& texts, std::string_view text, promql::PositionRange position);
  Texts warnings_, infos_;
  std::map<std::pair<std::string, int32_t>, Monotonicity> levelled_;
};

// `text`, and ` for metric name "x"` unless the name is empty.
std::string ForMetric(std::string_view text, std::string_view metric);
// `text "x"`.
std::string Quoted(std::string_view text, std::string_view name);
// A number as Go's %g prints it: shortest digits, exponent form below 1e-4 and from 1e21 on.
std::string FormatG(double v);
// A number as Go's strconv.FormatFloat(v, 'f', -1, 64) prints it.
std::string FormatF(double v);

namespace text {
inline constexpr std::string_view kMixedFloatsHistogramsFor =
    "encountered a mix of histograms and floats for metric name";
inline constexpr std::string_view kMixedFloatsHistogramsAggregation =
    "encountered a mix of histograms and floats for aggregation";
inline constexpr std::string_view kMixedClassicNative = "vector contains a mix of classic and native histograms";
inline constexpr std::string_view kNotCounter = "this native histogram metric is not a counter:";
inline constexpr std::string_view kNotGauge = "this native histogram metric is not a gauge:";
inline constexpr std::string_view kMixedSchemas =
    "vector contains a mix of histograms with exponential and custom buckets schemas for metric name";
inline constexpr std::string_view kMightNotBeCounter =
    "metric might not be a counter, name does not end in _total/_sum/_count/_bucket:";
inline constexpr std::string_view kMightNotBeCounterType =
    "metric might not be a counter, __type__ label is not set to \"counter\" or \"histogram\"";
inline constexpr std::string_view kIgnoredInMixedRange =
    "ignored histograms in a range containing both floats and histograms for metric name";
inline constexpr std::string_view kResetCollision = "conflicting counter resets during histogram ";
inline constexpr std::string_view kMismatchedBounds = "mismatched custom buckets were reconciled during ";
inline constexpr std::string_view kStartOverlap =
    "sample has start time that overlaps with previous sample timestamp for metric";
inline constexpr std::string_view kSortInRange =
    "sort is ineffective for range queries since results are always ordered by labels";
}  // namespace text

}  // namespace varve::exec
