#include "query/api/api.h"

#include "query/api/reply.h"

namespace varve::api {

Api::Api(const engine::Engine& engine, const base::Clock& clock, ServerInfo info)
    : engine_(engine), clock_(clock), info_(std::move(info)) {}

bool Api::TakesForms(std::string_view path) {
  return path == "query" || path == "query_range" || path == "query_exemplars" || path == "format_query" ||
         path == "parse_query" || path == "labels" || path == "series";
}

std::optional<Reply> Api::Handle(std::string_view path, const Params& params, const Context& context) const {
  if (path == "query") return Query(params, context);
  if (path == "query_range") return QueryRange(params, context);
  if (path == "query_exemplars") return QueryExemplars(params, context);
  if (path == "series") return Series(params, context);
  if (path == "labels") return LabelNames(params, context);
  if (path == "metadata") return Metadata(params, context);
  if (path == "format_query") return FormatQuery(params);
  if (path == "parse_query") return ParseQuery(params);
  if (path == "status/tsdb") return TsdbStatus(params, context);
  constexpr std::string_view kLabel = "label/", kValues = "/values";
  if (path.starts_with(kLabel) && path.ends_with(kValues) && path.size() > kLabel.size() + kValues.size()) {
    return LabelValues(path.substr(kLabel.size(), path.size() - kLabel.size() - kValues.size()), params, context);
  }
  if (path.starts_with("status/")) return Status(path.substr(7));
  // What only a scraping or alerting Prometheus has is answered as one that does neither.
  if (path == "rules") return Success("{\"groups\":[]}");
  if (path == "alerts") return Success("{\"alerts\":[]}");
  if (path == "alertmanagers") return Success("{\"activeAlertmanagers\":[],\"droppedAlertmanagers\":[]}");
  if (path == "targets") return Success("{\"activeTargets\":[],\"droppedTargets\":[],\"droppedTargetCounts\":{}}");
  if (path == "targets/metadata") return Success("[]");
  if (path == "scrape_pools") return Success("{\"scrapePools\":[]}");
  return std::nullopt;
}

std::optional<Reply> Api::Status(std::string_view name) const {
  std::string data;
  const auto field = [&data](std::string_view key, std::string_view value) {
    data += data.empty() ? "{" : ",";
    base::StrAppend(data, "\"", key, "\":");
    AppendString(data, value);
  };
  if (name == "buildinfo") {
    field("version", info_.version);
    field("revision", info_.revision);
    field("branch", info_.branch);
    field("buildUser", info_.build_user);
    field("buildDate", info_.build_date);
    field("goVersion", info_.compiler);
    data += '}';
  } else if (name == "config") {
    field("yaml", info_.config_yaml);
    data += '}';
  } else if (name == "flags") {
    for (const auto& [flag, value] : info_.flags) {
      data += data.empty() ? '{' : ',';
      AppendString(data, flag);
      data += ':';
      AppendString(data, value);
    }
    data += data.empty() ? "{}" : "}";
  } else if (name == "runtimeinfo") {
    field("startTime", FormatTime(info_.start_time_ms));
    field("CWD", info_.working_directory);
    field("hostname", info_.hostname);
    field("serverTime", FormatTime(clock_.NowMs()));
    data += ",\"reloadConfigSuccess\":true";
    field("lastConfigTime", FormatTime(info_.start_time_ms));
    // The fields of Go's runtime stay in place, since clients decode into a fixed structure.
    data +=
        ",\"corruptionCount\":0,\"goroutineCount\":0,\"GOMAXPROCS\":0,\"GOMEMLIMIT\":0,\"GOGC\":\"\",\"GODEBUG\":\"\"";
    field("storageRetention", info_.storage_retention);
    data += '}';
  } else if (name == "walreplay") {
    data = "{\"min\":0,\"max\":0,\"current\":0}";  // replay is over once requests are taken
  } else {
    return std::nullopt;
  }
  return Success(data);
}

}  // namespace varve::api
