#pragma once
// What a Prometheus client sees, independent of sockets: parameters in, status and exact JSON out.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "query/api/params.h"
#include "query/engine/engine.h"
#include "storage/base/cancel.h"
#include "storage/base/clock.h"
#include "storage/model/series_source.h"

namespace varve::api {

struct Reply {
  int status = 200;
  std::string body;
  std::string_view content_type = "application/json";
};

// What /api/v1/status/* tells about the process; fixed at start.
struct ServerInfo {
  std::string version, revision, branch, build_user, build_date, compiler;
  std::string hostname, working_directory, storage_retention;
  std::string config_yaml;                                 // without secrets
  std::vector<std::pair<std::string, std::string>> flags;  // sorted by name
  int64_t start_time_ms = 0;
};

// One request's surroundings. Everything is borrowed for the call.
struct Context {
  const model::SeriesSource* source = nullptr;  // the tenant's data, already narrowed to what the caller may read
  const base::Cancel* cancel = nullptr;         // may be null
};

// Answers to everything below /api/v1/ that reads. Immutable; any thread.
class Api {
 public:
  // `engine` and `clock` must outlive it.
  Api(const engine::Engine& engine, const base::Clock& clock, ServerInfo info);

  // `path` is what follows "/api/v1/", percent-decoded: "query_range", "label/job/values". Nothing when there is no
  // such endpoint. Methods are the caller's business: all of them may be asked by GET, and those of TakesForms also by
  // POST.
  std::optional<Reply> Handle(std::string_view path, const Params& params, const Context& context) const;
  static bool TakesForms(std::string_view path);

  Reply Query(const Params& params, const Context& context) const;
  Reply QueryRange(const Params& params, const Context& context) const;
  Reply Series(const Params& params, const Context& context) const;
  Reply LabelNames(const Params& params, const Context& context) const;
  Reply LabelValues(std::string_view label, const Params& params, const Context& context) const;
  Reply Metadata(const Params& params, const Context& context) const;
  Reply QueryExemplars(const Params& params, const Context& context) const;
  Reply TsdbStatus(const Params& params, const Context& context) const;
  Reply FormatQuery(const Params& params) const;
  Reply ParseQuery(const Params& params) const;

 private:
  Reply Run(engine::Query query, const Params& params, uint64_t limit, const Context& context) const;
  std::optional<Reply> Status(std::string_view name) const;

  const engine::Engine& engine_;
  const base::Clock& clock_;
  const ServerInfo info_;
};

// The error body that Prometheus' clients understand; errorType follows the status code.
Reply ErrorReply(int status, std::string_view message);
// Codes as engine.h lists them.
Reply ErrorReply(const absl::Status& status);

}  // namespace varve::api
