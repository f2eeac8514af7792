// Queries: query, query_range, format_query, parse_query.
#include <algorithm>

#include "query/api/reply.h"
#include "query/promql/parser.h"

namespace varve::api {

namespace {

constexpr int64_t kPointsMax = 11'000;

void AppendSeconds(std::string& out, std::string_view key, int64_t ns) {
  base::StrAppend(out, "\"", key, "\":");
  AppendSampleValue(out, static_cast<double>(ns) / 1e9);
}

void AppendStats(std::string& out, const engine::Stats& stats, bool per_step) {
  const int64_t total = stats.parse_ns + stats.plan_ns + stats.run_ns;
  out += ",\"stats\":{\"timings\":{";
  AppendSeconds(out, "evalTotalTime", stats.run_ns);
  out += ',';
  AppendSeconds(out, "resultSortTime", 0);
  out += ',';
  AppendSeconds(out, "queryPreparationTime", stats.parse_ns + stats.plan_ns);
  out += ',';
  AppendSeconds(out, "innerEvalTime", stats.run_ns);
  out += ',';
  AppendSeconds(out, "execQueueTime", 0);
  out += ',';
  AppendSeconds(out, "execTotalTime", total);
  out += "},\"samples\":{";
  if (per_step) out += "\"totalQueryableSamplesPerStep\":[],";
  base::StrAppend(out, "\"totalQueryableSamples\":", stats.samples_total, ",\"peakSamples\":", stats.samples_peak,
                  "}}");
}

// lookback_delta and timeout.
absl::Status SetQueryOptions(const Params& params, engine::Query& query) {
  if (const std::string_view text = params.Get("timeout"); !text.empty()) {
    const auto ns = ParseDurationNs(text);
    if (!ns.ok()) return InvalidParameter("timeout", ns.status());
    query.timeout_ms = std::max<int64_t>(*ns / 1'000'000, 1);
  }
  if (const std::string_view text = params.Get("lookback_delta"); !text.empty()) {
    const auto ns = ParseDurationNs(text);
    if (!ns.ok()) return base::Annotate(ns.status(), "error parsing lookback delta duration");
    query.lookback_ms = std::max<int64_t>(*ns / 1'000'000, 0);
  }
  return absl::OkStatus();
}

}  // namespace

Reply Api::Run(engine::Query query, const Params& params, uint64_t limit, const Context& context) const {
  REPLY_IF_ERROR(SetQueryOptions(params, query));
  query.text = params.Get("query");
  query.cancel = context.cancel;
  auto result = engine_.Run(query, *context.source);
  if (!result.ok()) {
    if (result.status().code() == absl::StatusCode::kInvalidArgument) {
      return ErrorReply(InvalidParameter("query", result.status()));
    }
    return ErrorReply(result.status());
  }
  const bool has_series = result->type == promql::ValueType::kVector || result->type == promql::ValueType::kMatrix;
  if (has_series && limit > 0 && result->series.size() > limit) {
    result->series.resize(limit);
    result->warnings.emplace_back(kTruncated);
  }
  AddSourceWarnings(context, result->warnings);
  std::string body = BeginSuccess();
  AppendResult(body, *result);
  if (const std::string_view stats = params.Get("stats"); !stats.empty())
    AppendStats(body, result->stats, stats == "all");
  body += '}';
  return EndSuccess(std::move(body), result->warnings, result->infos);
}

Reply Api::Query(const Params& params, const Context& context) const {
  ASSIGN_OR_REPLY(const uint64_t limit, LimitParameter(params));
  engine::Query query;
  ASSIGN_OR_REPLY(query.start_ms, TimeParameter(params, "time", clock_.NowMs()));
  query.end_ms = query.start_ms;
  return Run(std::move(query), params, limit, context);
}

Reply Api::QueryRange(const Params& params, const Context& context) const {
  ASSIGN_OR_REPLY(const uint64_t limit, LimitParameter(params));
  const auto required_time = [&params](std::string_view name) -> absl::StatusOr<int64_t> {
    auto time = ParseTime(params.Get(name));
    if (!time.ok()) return InvalidParameter(name, time.status());
    return time;
  };
  engine::Query query;
  ASSIGN_OR_REPLY(query.start_ms, required_time("start"));
  ASSIGN_OR_REPLY(query.end_ms, required_time("end"));
  if (query.end_ms < query.start_ms) {
    return ErrorReply(400, "invalid parameter \"end\": end timestamp must not be before start time");
  }
  const auto step_ns = ParseDurationNs(params.Get("step"));
  if (!step_ns.ok()) return ErrorReply(InvalidParameter("step", step_ns.status()));
  query.step_ms = *step_ns / 1'000'000;
  if (query.step_ms <= 0) {
    return ErrorReply(
        400,
        "invalid parameter \"step\": zero or negative query resolution step widths are not accepted. Try a "
        "positive integer");
  }
  // In nanoseconds, as a step need not be whole milliseconds; 128 bits, since the range may be anything.
  __extension__ using Wide = __int128;
  if ((static_cast<Wide>(query.end_ms) - query.start_ms) * 1'000'000 / *step_ns > kPointsMax) {
    return ErrorReply(
        400,
        "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution "
        "(?step=XX)");
  }
  return Run(std::move(query), params, limit, context);
}

Reply Api::FormatQuery(const Params& params) const {
  const auto expr = promql::Parse(params.Get("query"), engine_.config().parser);
  if (!expr.ok()) return ErrorReply(InvalidParameter("query", expr.status()));
  std::string data;
  AppendString(data, promql::PrettyPrint(**expr));
  return Success(data);
}

Reply Api::ParseQuery(const Params& params) const {
  const auto expr = promql::Parse(params.Get("query"), engine_.config().parser);
  if (!expr.ok()) return ErrorReply(InvalidParameter("query", expr.status()));
  std::string data;
  AppendTree(data, **expr);
  return Success(data);
}

}  // namespace varve::api
