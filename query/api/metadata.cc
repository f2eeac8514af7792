// What is stored, as opposed to its values: series, labels, metadata, exemplars, TSDB status.
#include <algorithm>
#include <map>

#include "query/api/reply.h"
#include "query/promql/parser.h"

namespace varve::api {

namespace {

using promql::Expr;

// Cuts at `limit` (0: none) and says so.
template <class T>
std::vector<std::string> Truncate(std::vector<T>& items, uint64_t limit) {
  if (limit == 0 || items.size() <= limit) return {};
  items.resize(limit);
  return {std::string(kTruncated)};
}

template <class T>
void SortUnique(std::vector<T>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

Reply StringList(std::vector<std::string> texts, uint64_t limit, const Context& context) {
  std::vector<std::string> warnings = Truncate(texts, limit);
  AddSourceWarnings(context, warnings);
  std::string body = BeginSuccess();
  body += '[';
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) body += ',';
    AppendString(body, texts[i]);
  }
  body += ']';
  return EndSuccess(std::move(body), warnings, {});
}

// The matchers of every selector below `expr`.
void CollectSelectors(const Expr& expr, std::vector<std::vector<model::Matcher>>& out) {
  using promql::NodeKind;
  switch (expr.kind) {
    case NodeKind::kNumber:
    case NodeKind::kString:
      return;
    case NodeKind::kVectorSelector:
      out.push_back(static_cast<const promql::VectorSelector&>(expr).matchers);
      return;
    case NodeKind::kMatrixSelector:
      out.push_back(static_cast<const promql::MatrixSelector&>(expr).vector->matchers);
      return;
    case NodeKind::kSubquery:
      return CollectSelectors(*static_cast<const promql::Subquery&>(expr).expr, out);
    case NodeKind::kUnary:
      return CollectSelectors(*static_cast<const promql::Unary&>(expr).expr, out);
    case NodeKind::kParen:
      return CollectSelectors(*static_cast<const promql::Paren&>(expr).expr, out);
    case NodeKind::kBinary:
      CollectSelectors(*static_cast<const promql::Binary&>(expr).lhs, out);
      return CollectSelectors(*static_cast<const promql::Binary&>(expr).rhs, out);
    case NodeKind::kAggregate: {
      const auto& aggregate = static_cast<const promql::Aggregate&>(expr);
      if (aggregate.param != nullptr) CollectSelectors(*aggregate.param, out);
      return CollectSelectors(*aggregate.expr, out);
    }
    case NodeKind::kCall:
      for (const auto& argument : static_cast<const promql::Call&>(expr).arguments) CollectSelectors(*argument, out);
      return;
  }
}

void AppendEntries(std::string& out, std::string_view key, const std::vector<model::SourceStats::Entry>& entries) {
  base::StrAppend(out, ",\"", key, "\":[");
  for (size_t i = 0; i < entries.size(); ++i) {
    out += i > 0 ? ",{\"name\":" : "{\"name\":";
    AppendString(out, entries[i].name);
    base::StrAppend(out, ",\"value\":", entries[i].value, "}");
  }
  out += ']';
}

// A whole number or nothing; false when it is something else.
bool TakeInteger(std::string_view text, std::optional<int64_t>& out) {
  if (text.empty()) return true;
  out = base::ParseInt64(text);
  return out.has_value();
}

}  // namespace

Reply Api::Series(const Params& params, const Context& context) const {
  if (params.All("match[]").empty()) return ErrorReply(400, "no match[] parameter provided");
  ASSIGN_OR_REPLY(const uint64_t limit, LimitParameter(params));
  ASSIGN_OR_REPLY(const std::vector<model::SelectRequest> requests,
                  SelectRequests(params, context, engine_.config().parser));
  std::vector<model::Labels> series;
  for (const model::SelectRequest& request : requests) {
    ASSIGN_OR_REPLY(const std::unique_ptr<model::Selection> selection, context.source->Select(request));
    series.reserve(series.size() + selection->size());
    for (size_t i = 0; i < selection->size(); ++i) series.push_back(selection->labels(i));
    if (requests.size() > 1) SortUnique(series);  // each time: many selectors of the same series hold them once
    if (context.cancel != nullptr) REPLY_IF_ERROR(context.cancel->Check());
  }
  std::vector<std::string> warnings = Truncate(series, limit);
  AddSourceWarnings(context, warnings);
  std::string body = BeginSuccess();
  body += '[';
  for (size_t i = 0; i < series.size(); ++i) {
    if (i > 0) body += ',';
    AppendLabels(body, series[i]);
  }
  body += ']';
  return EndSuccess(std::move(body), warnings, {});
}

Reply Api::LabelNames(const Params& params, const Context& context) const {
  ASSIGN_OR_REPLY(const uint64_t limit, LimitParameter(params));
  ASSIGN_OR_REPLY(const std::vector<model::SelectRequest> requests,
                  SelectRequests(params, context, engine_.config().parser));
  std::vector<std::string> names;
  for (const model::SelectRequest& request : requests) {
    ASSIGN_OR_REPLY(std::vector<std::string> found, context.source->LabelNames(request));
    names.insert(names.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  }
  if (requests.size() > 1) SortUnique(names);
  return StringList(std::move(names), limit, context);
}

Reply Api::LabelValues(std::string_view label, const Params& params, const Context& context) const {
  const std::string name = UnescapeName(label);
  if (name.empty() || !base::IsValidUtf8(name)) {
    return ErrorReply(400, base::StrCat("invalid label name: ", base::QuoteGo(name)));
  }
  ASSIGN_OR_REPLY(const uint64_t limit, LimitParameter(params));
  ASSIGN_OR_REPLY(const std::vector<model::SelectRequest> requests,
                  SelectRequests(params, context, engine_.config().parser));
  std::vector<std::string> values;
  for (const model::SelectRequest& request : requests) {
    ASSIGN_OR_REPLY(std::vector<std::string> found, context.source->LabelValues(name, request));
    values.insert(values.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  }
  if (requests.size() > 1) SortUnique(values);
  return StringList(std::move(values), limit, context);
}

Reply Api::Metadata(const Params& params, const Context& context) const {
  std::optional<int64_t> limit, limit_per_metric;
  if (!TakeInteger(params.Get("limit"), limit)) return ErrorReply(400, "limit must be a number");
  if (!TakeInteger(params.Get("limit_per_metric"), limit_per_metric)) {
    return ErrorReply(400, "limit_per_metric must be a number");
  }
  std::string body = BeginSuccess();
  body += '{';
  std::string_view current;
  int64_t metrics = 0, of_metric = 0;
  const std::vector<model::Metadata> all = context.source->MetadataFor(params.Get("metric"));
  for (const model::Metadata& one : all) {  // sorted by metric
    if (metrics == 0 || one.metric != current) {
      if (limit && *limit >= 0 && metrics >= *limit) break;
      if (metrics > 0) body += "],";
      AppendString(body, one.metric);
      body += ":[";
      current = one.metric;
      ++metrics;
      of_metric = 0;
    }
    if (limit_per_metric && *limit_per_metric > 0 && of_metric >= *limit_per_metric) continue;
    base::StrAppend(body, of_metric++ > 0 ? "," : "", "{\"type\":\"", model::ToString(one.type), "\",\"help\":");
    AppendString(body, one.help);
    body += ",\"unit\":";
    AppendString(body, one.unit);
    body += '}';
  }
  body += metrics > 0 ? "]}" : "}";
  return EndSuccess(std::move(body), {}, {});
}

Reply Api::QueryExemplars(const Params& params, const Context& context) const {
  model::SelectRequest request;
  request.cancel = context.cancel;
  ASSIGN_OR_REPLY(const int64_t start_ms, TimeParameter(params, "start", std::numeric_limits<int64_t>::min()));
  ASSIGN_OR_REPLY(const int64_t end_ms, TimeParameter(params, "end", std::numeric_limits<int64_t>::max()));
  if (end_ms < start_ms) return ErrorReply(400, "end timestamp must not be before start timestamp");
  request.range = model::TimeRange::Closed(start_ms, end_ms);
  const auto expr = promql::Parse(params.Get("query"), engine_.config().parser);
  if (!expr.ok()) return ErrorReply(expr.status());
  std::vector<std::vector<model::Matcher>> selectors;
  CollectSelectors(**expr, selectors);
  std::map<model::Labels, std::vector<model::Exemplar>> found;
  for (std::vector<model::Matcher>& matchers : selectors) {
    request.matchers = std::move(matchers);
    ASSIGN_OR_REPLY(std::vector<model::ExemplarSeries> series, context.source->Exemplars(request));
    // A series that two selectors match has the same exemplars in both.
    for (model::ExemplarSeries& one : series) found.insert_or_assign(std::move(one.labels), std::move(one.exemplars));
  }
  std::string body = BeginSuccess();
  body += '[';
  bool first = true;
  for (const auto& [labels, exemplars] : found) {
    body += std::exchange(first, false) ? "{\"seriesLabels\":" : ",{\"seriesLabels\":";
    AppendLabels(body, labels);
    body += ",\"exemplars\":[";
    for (size_t i = 0; i < exemplars.size(); ++i) {
      body += i > 0 ? ",{\"labels\":" : "{\"labels\":";
      AppendLabels(body, exemplars[i].labels);
      body += ",\"value\":\"";
      AppendSampleValue(body, exemplars[i].value);
      body += "\",\"timestamp\":";
      AppendTimestamp(body, exemplars[i].t_ms);
      body += '}';
    }
    body += "]}";
  }
  body += ']';
  return EndSuccess(std::move(body), {}, {});
}

Reply Api::TsdbStatus(const Params& params, const Context& context) const {
  std::optional<int64_t> limit;
  if (!TakeInteger(params.Get("limit"), limit) || (limit && *limit < 1)) {
    return ErrorReply(400, "limit must be a positive number");
  }
  if (limit && *limit > 10'000) return ErrorReply(400, "limit must not exceed 10000");
  ASSIGN_OR_REPLY(const model::SourceStats stats, context.source->Stats(static_cast<size_t>(limit.value_or(10))));
  std::string body = BeginSuccess();
  base::StrAppend(body, "{\"headStats\":{\"numSeries\":", stats.series, ",\"numLabelPairs\":", stats.label_pairs,
                  ",\"chunkCount\":", stats.chunks, ",\"minTime\":", stats.min_time_ms,
                  ",\"maxTime\":", stats.max_time_ms, "}");
  AppendEntries(body, "seriesCountByMetricName", stats.series_by_metric);
  AppendEntries(body, "labelValueCountByLabelName", stats.values_by_label);
  AppendEntries(body, "memoryInBytesByLabelName", stats.bytes_by_label);
  AppendEntries(body, "seriesCountByLabelValuePair", stats.series_by_pair);
  body += '}';
  return EndSuccess(std::move(body), {}, {});
}

}  // namespace varve::api
