#pragma once
// The front door of PromQL: text in, result out. Parses, plans, runs over every step at once and collects annotations.
// An Engine is immutable; Run may be called from any thread, several at once.
//
// Errors by code, as query/api shows them:
//   InvalidArgument     bad_data: parse and type errors ("1:5: parse error: ..."), a bad range or step
//   FailedPrecondition  execution: the expression cannot be evaluated over this data; Prometheus' text, no position
//   ResourceExhausted   execution: too many samples, too much memory, too many series
//   Cancelled           canceled: the caller's Cancel was requested
//   DeadlineExceeded    timeout
//   anything else       internal: the source failed (DataLoss, Unavailable, Internal)
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "query/promql/ast.h"
#include "storage/base/cancel.h"
#include "storage/base/clock.h"
#include "storage/base/status.h"
#include "storage/model/labels.h"
#include "storage/model/series_source.h"

namespace varve::engine {

// Defaults are those of a Prometheus 3.14 server without feature flags.
struct EngineConfig {
  promql::Options parser;             // what the parser accepts
  bool delayed_name_removal = false;  // promql-delayed-name-removal
  bool start_timestamps = false;      // use-start-timestamps: rate, irate, increase, resets, start_timestamp
  bool type_and_unit_labels = false;  // "might not be a counter" is decided by __type__
  int64_t lookback_ms = 5 * 60 * 1000;
  int64_t subquery_step_ms = 60 * 1000;         // of a subquery without a step
  uint64_t samples_max = 50'000'000;            // held by one query at one time; 0 = no limit
  int64_t memory_bytes_max = int64_t{4} << 30;  // of one query
  int64_t timeout_ms = 2 * 60 * 1000;
  absl::Status Validate() const;
  // Every flag on that Prometheus' own test scripts assume (the type-and-unit option is off there).
  static EngineConfig AllFeatures();
};

// Instant: start_ms == end_ms and step_ms == 0. Range: step_ms > 0, points at start_ms + k * step_ms <= end_ms.
struct Query {
  std::string text;
  int64_t start_ms = 0, end_ms = 0, step_ms = 0;
  int64_t lookback_ms = 0;               // 0: the engine's
  int64_t timeout_ms = 0;                // 0: the engine's; never more than that
  const base::Cancel* cancel = nullptr;  // may be null; must outlive the run

  bool instant() const { return step_ms == 0; }
};

struct Point {
  int64_t t_ms = 0;
  double value = 0;
};
struct HistogramPoint {
  int64_t t_ms = 0;
  std::shared_ptr<const model::Histogram> histogram;  // never null
};
struct ResultSeries {
  model::Labels labels;
  std::vector<Point> points;               // ascending in time
  std::vector<HistogramPoint> histograms;  // ascending in time; no time is in both
};

struct Stats {
  uint64_t series_selected = 0;  // by all selectors
  uint64_t samples_read = 0;     // floats and histograms decoded
  uint64_t samples_total = 0;    // samples looked at over all steps, as Prometheus' totalQueryableSamples counts
  uint64_t samples_peak = 0;     // held at one time
  int64_t memory_peak_bytes = 0;
  int64_t parse_ns = 0, plan_ns = 0, run_ns = 0;
};

struct Result {
  // Instant: any of the four. Range: always kMatrix, a scalar as one series without labels.
  promql::ValueType type = promql::ValueType::kVector;
  int64_t t_ms = 0;    // of a scalar or string
  double scalar = 0;   // kScalar
  std::string string;  // kString
  // kVector: one point or one histogram each, in the order that the expression gave them (sort, topk, ...).
  // kMatrix: sorted by labels; no series is without a point.
  std::vector<ResultSeries> series;
  // As the HTTP API shows them: "PromQL warning: ... (1:5)". Not repeated, sorted.
  std::vector<std::string> warnings, infos;
  Stats stats;
};

class Engine {
 public:
  Engine(const EngineConfig& config, const base::Clock& clock) : config_(config), clock_(clock) {}
  absl::StatusOr<Result> Run(const Query& query, const model::SeriesSource& source) const;
  // The plan and the operators as an indented tree, for people.
  absl::StatusOr<std::string> Explain(const Query& query) const;
  const EngineConfig& config() const { return config_; }

 private:
  EngineConfig config_;
  const base::Clock& clock_;
};

}  // namespace varve::engine
