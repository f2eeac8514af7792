#pragma once
// Prometheus' HTTP API without HTTP: parameters in, status and exact JSON out.
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "query/engine/engine.h"
#include "storage/base/cancel.h"
#include "storage/base/clock.h"
#include "storage/model/series_source.h"

namespace varve::api {

// Form parameters, decoded, in the order they came; a key may occur more than once.
class Params {
 public:
  void Add(std::string key, std::string value) { pairs_.emplace_back(std::move(key), std::move(value)); }
  std::string_view Get(std::string_view key) const;  // the first one; "" when absent
  bool Has(std::string_view key) const;
  std::vector<std::string> All(std::string_view key) const;

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
};

struct Call {
  std::string method;  // "GET" or "POST"
  std::string path;    // below /api/v1/, percent-decoded: "query_range", "label/job/values"
  Params params;
  const base::Cancel* cancel = nullptr;  // may be null; must outlive the call
};

struct Reply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
};

// What the status endpoints show; the texts come from the process.
struct ProcessInfo {
  std::string version, revision, branch, build_user, build_date, compiler;  // status/buildinfo
  std::function<std::string()> config_yaml;                                  // status/config
  std::function<std::vector<std::pair<std::string, std::string>>()> flags;   // status/flags
  int64_t start_time_ms = 0;
  std::string working_directory, storage_retention;
};

// Every path of the API that reads. Any thread. Blocks while the query runs.
class Api {
 public:
  Api(const engine::Engine& engine, const base::Clock& clock, ProcessInfo info);
  // 404 with Prometheus' words for a path that does not exist, 405 for a method that does not fit.
  Reply Handle(const Call& call, const model::SeriesSource& source) const;
  // The JSON of an error that arose outside, e.g. when the queue of queries is full ("unavailable", 503).
  static Reply Error(int status, std::string_view error_type, std::string_view text);

 private:
  const engine::Engine& engine_;
  const base::Clock& clock_;
  const ProcessInfo info_;
};

}  // namespace varve::api
