#pragma once
// Prometheus' HTTP API over HTTP: queries wait in a bounded queue for one of a few threads.
#include <atomic>
#include <memory>

#include "query/api/api.h"
#include "query/engine/engine.h"
#include "server/app/config.h"
#include "server/app/write_routes.h"
#include "server/http/router.h"
#include "server/roles/ingester.h"
#include "storage/base/metrics.h"
#include "storage/base/worker_pool.h"

namespace varve::app {

class QueryService {
 public:
  // InvalidArgument: a feature flag that does not exist.
  static absl::StatusOr<std::unique_ptr<QueryService>> Create(const Config& config, roles::Ingester& ingester,
                                                              const base::Clock& clock, const base::Logger& log,
                                                              base::Registry& registry);
  ~QueryService();  // waits for the running queries
  void Handle(const std::string& tenant, const std::string& path, std::shared_ptr<const http::Request> request,
              http::Respond respond);

 private:
  QueryService(const engine::EngineConfig& engine, api::ServerInfo info, int threads, roles::Ingester& ingester,
               const base::Clock& clock, base::Registry& registry);
  roles::Ingester& ingester_;
  const base::Clock& clock_;
  engine::Engine engine_;
  api::Api api_;
  base::Counter& refused_;
  base::Gauge& running_;
  base::Histogram& seconds_;
  base::Histogram& queue_seconds_;
  std::unique_ptr<base::WorkerPool> pool_;  // last: its tasks use everything above
};

// `queries` is null until the data directory was recovered: 503 until then.
void AddQueryRoutes(const TenancyRule& tenancy, const std::atomic<QueryService*>& queries, http::Router& router);

}  // namespace varve::app
