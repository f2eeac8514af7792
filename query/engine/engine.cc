#include "query/engine/engine.h"

#include <algorithm>

#include "query/engine/assemble.h"
#include "query/exec/context.h"
#include "query/exec/operator.h"
#include "query/plan/plan.h"
#include "query/promql/parser.h"
#include "storage/base/strings.h"

namespace varve::engine {
namespace {

using promql::ValueType;

absl::Status CheckQuery(const Query& query) {
  if (query.step_ms < 0)
    return absl::InvalidArgumentError("zero or negative query resolution step widths are not accepted");
  if (query.end_ms < query.start_ms) return absl::InvalidArgumentError("end timestamp must not be before start time");
  if (query.instant() && query.start_ms != query.end_ms) {
    return absl::InvalidArgumentError("an instant query has one time");
  }
  // Times whose neighbourhood cannot be computed without overflow are nobody's.
  constexpr int64_t kLimitMs = INT64_MAX / 4;
  if (query.start_ms < -kLimitMs || query.end_ms > kLimitMs || query.step_ms > kLimitMs) {
    return absl::InvalidArgumentError("timestamp out of range");
  }
  return absl::OkStatus();
}

plan::Bounds BoundsOf(const Query& query, const EngineConfig& config) {
  return {query.start_ms, query.end_ms, query.step_ms, config.subquery_step_ms};
}

absl::Status CheckType(const Query& query, ValueType type) {
  if (query.instant() || type == ValueType::kVector || type == ValueType::kScalar) return absl::OkStatus();
  return absl::InvalidArgumentError(base::StrCat("invalid expression type \"", promql::ToString(type),
                                                 "\" for range query, must be Scalar or instant Vector"));
}

}  // namespace

absl::Status EngineConfig::Validate() const {
  if (lookback_ms <= 0) return absl::InvalidArgumentError("lookback must be positive");
  if (subquery_step_ms <= 0) return absl::InvalidArgumentError("the subquery step must be positive");
  if (timeout_ms <= 0) return absl::InvalidArgumentError("the query timeout must be positive");
  if (memory_bytes_max <= 0) return absl::InvalidArgumentError("the query memory limit must be positive");
  return absl::OkStatus();
}

EngineConfig EngineConfig::AllFeatures() {
  EngineConfig config;
  config.parser.experimental_functions = true;
  config.parser.extended_range_selectors = true;
  config.parser.fill_modifiers = true;
  config.delayed_name_removal = true;
  config.start_timestamps = true;
  return config;
}

absl::StatusOr<std::string> Engine::Explain(const Query& query) const {
  RETURN_IF_ERROR(CheckQuery(query));
  ASSIGN_OR_RETURN(const promql::ExprPtr expr, promql::Parse(query.text, config_.parser));
  ASSIGN_OR_RETURN(const plan::NodePtr root, plan::Build(*expr, BoundsOf(query, config_)));
  return plan::Explain(*root);
}

absl::StatusOr<Result> Engine::Run(const Query& query, const model::SeriesSource& source) const {
  RETURN_IF_ERROR(CheckQuery(query));
  Result result;
  const int64_t begun_ns = clock_.MonotonicNs();
  int64_t timeout_ms = config_.timeout_ms;
  if (query.timeout_ms > 0) timeout_ms = std::min(timeout_ms, query.timeout_ms);
  const base::Cancel deadline(clock_, begun_ns + timeout_ms * 1'000'000);

  ASSIGN_OR_RETURN(const promql::ExprPtr expr, promql::Parse(query.text, config_.parser));
  RETURN_IF_ERROR(CheckType(query, expr->type()));
  const int64_t parsed_ns = clock_.MonotonicNs();
  ASSIGN_OR_RETURN(const plan::NodePtr root, plan::Build(*expr, BoundsOf(query, config_)));
  const int64_t planned_ns = clock_.MonotonicNs();

  base::MemoryBudget memory(config_.memory_bytes_max);
  exec::Context::Options options;
  options.flags = {config_.delayed_name_removal, config_.start_timestamps, config_.type_and_unit_labels};
  options.lookback_ms = query.lookback_ms > 0 ? query.lookback_ms : config_.lookback_ms;
  options.samples_max = config_.samples_max;
  options.range_query = !query.instant();
  options.deadline = &deadline;
  options.cancel = query.cancel;
  exec::Context context(source, options, memory);
  const exec::Grid grid{query.start_ms, query.step_ms,
                        query.instant() ? 1 : static_cast<size_t>((query.end_ms - query.start_ms) / query.step_ms) + 1};
  const absl::Status status = Assemble(*root, query, grid, context, result);
  if (absl::IsDeadlineExceeded(status) && deadline.Check().ok() == false) {
    return absl::DeadlineExceededError("query timed out in expression evaluation");
  }
  if (absl::IsCancelled(status)) return absl::CancelledError("query was canceled in expression evaluation");
  RETURN_IF_ERROR(status);

  result.warnings = context.annotations().Warnings(query.text);
  result.infos = context.annotations().Infos(query.text);
  result.stats.series_selected = context.series_selected();
  result.stats.samples_read = context.samples_read();
  result.stats.samples_total = context.samples_queried();
  result.stats.samples_peak = context.samples_peak();
  result.stats.memory_peak_bytes = memory.peak();
  result.stats.parse_ns = parsed_ns - begun_ns;
  result.stats.plan_ns = planned_ns - parsed_ns;
  result.stats.run_ns = clock_.MonotonicNs() - planned_ns;
  return result;
}

}  // namespace varve::engine
