#include "server/app/app.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "server/app/process_metrics.h"
#include "server/app/query_routes.h"
#include "server/app/version.h"
#include "server/app/write_routes.h"
#include "server/http/server.h"
#include "server/roles/distributor.h"
#include "server/roles/ingester.h"
#include "server/rpc/server.h"
#include "storage/base/metrics.h"
#include "storage/base/strings.h"
#include "storage/fs/posix_fs.h"

namespace varve::app {

namespace {

roles::IngesterConfig IngesterConfigOf(const Config& config) {
  roles::IngesterConfig out;
  out.data_dir = config.data_dir;
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  out.shards = config.head.shards > 0 ? static_cast<uint32_t>(config.head.shards)
                                      : std::min<uint32_t>(cores, roles::Ingester::kShardsMax);
  switch (config.wal.sync) {
    case WalSync::kAlways:
      out.shard.wal_sync = roles::WalSync::kAlways;
      break;
    case WalSync::kInterval:
      out.shard.wal_sync = roles::WalSync::kInterval;
      break;
    case WalSync::kNone:
      out.shard.wal_sync = roles::WalSync::kNone;
      break;
  }
  out.shard.wal_sync_interval_ms = config.wal.sync_interval_ms;
  out.shard.wal_segment_bytes = config.wal.segment_bytes;
  out.shard.checkpoint_interval_ms = config.head.checkpoint_interval_ms;
  out.shard.checkpoint_wal_bytes = config.head.checkpoint_wal_bytes;
  out.shard.cut_interval_ms = config.head.cut_interval_ms;
  out.shard.idle_cut_interval_ms = config.head.stale_after_ms;
  out.shard.idle_after_ms = config.head.idle_after_ms;
  out.shard.retention_ms = config.storage.retention_ms;
  out.shard.out_of_order_window_ms = config.limits.out_of_order_window_ms;
  return out;
}

constexpr std::string_view kIndexPage = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Varve</title>
<style>body{font:16px/1.5 sans-serif;margin:2rem auto;max-width:48rem;padding:0 1rem}code{background:#eee;padding:0 .2em}
li{margin:.2em 0}</style></head><body>
<h1>Varve</h1>
<p>A time-series database for Prometheus data. This is the address for a Grafana data source of type Prometheus.</p>
<h2>Write</h2><ul>
<li><code>POST /api/v1/push</code>, <code>POST /api/v1/write</code>: Prometheus remote write 1.0 and 2.0</li>
<li><code>POST /api/v1/import/prometheus</code>: a page in Prometheus' text format or OpenMetrics</li></ul>
<h2>Ask</h2><ul>
<li><a href="/api/v1/query?query=count(%7B__name__%3D~%22.%2B%22%7D)">/api/v1/query</a>, <code>/api/v1/query_range</code></li>
<li><a href="/api/v1/labels">/api/v1/labels</a>, <a href="/api/v1/label/__name__/values">/api/v1/label/__name__/values</a>,
<code>/api/v1/series?match[]=...</code></li>
<li><a href="/api/v1/metadata">/api/v1/metadata</a>, <a href="/api/v1/status/tsdb">/api/v1/status/tsdb</a>,
<a href="/api/v1/status/config">config</a>, <a href="/api/v1/status/flags">flags</a>,
<a href="/api/v1/status/buildinfo">buildinfo</a>, <a href="/api/v1/status/runtimeinfo">runtimeinfo</a></li></ul>
<h2>Watch</h2><ul>
<li><a href="/metrics">/metrics</a>: Varve's own metrics</li>
<li><a href="/ready">/ready</a>, <a href="/healthy">/healthy</a></li></ul>
</body></html>
)html";

}  // namespace

struct App::Impl {
  Impl(const Config& c, const base::Clock& k, const base::Logger& l) : config(c), clock(k), log(l) {}

  const Config config;
  const base::Clock& clock;
  const base::Logger log;
  base::Registry registry;
  fs::PosixFileSystem fs;
  std::unique_ptr<roles::Ingester> ingester;
  std::unique_ptr<roles::Distributor> distributor_owned;
  std::unique_ptr<QueryService> queries_owned;
  // Null until the data directory was recovered, and again while stopping.
  std::atomic<roles::Distributor*> distributor{nullptr};
  std::atomic<QueryService*> queries{nullptr};
  std::atomic<roles::Ingester*> ready{nullptr};
  std::unique_ptr<base::WorkerPool> admin;
  std::unique_ptr<rpc::Server> rpc;
  std::unique_ptr<http::Server> http;
  bool stopped = false;

  void AddOwnRoutes(http::Router& router);
};

void App::Impl::AddOwnRoutes(http::Router& router) {
  const auto text = [](int status, std::string_view body) {
    return
        [status, body = std::string(body)](const std::shared_ptr<const http::Request>&, const http::Respond& respond) {
          respond(http::Response::Text(status, body));
        };
  };
  router.Get("/", [](const std::shared_ptr<const http::Request>&, const http::Respond& respond) {
    http::Response page;
    page.content_type = "text/html; charset=utf-8";
    page.body = kIndexPage;
    respond(std::move(page));
  });
  for (const char* path : {"/healthy", "/-/healthy"}) router.Get(path, text(200, "Varve is healthy.\n"));
  for (const char* path : {"/ready", "/-/ready"}) {
    router.Get(path, [this](const std::shared_ptr<const http::Request>&, const http::Respond& respond) {
      respond(ready.load() != nullptr ? http::Response::Text(200, "ready\n")
                                      : http::Response::Text(503, "starting: the data directory is being read\n"));
    });
  }
  router.Get("/metrics", [this](const std::shared_ptr<const http::Request>&, const http::Respond& respond) {
    http::Response page;
    page.content_type = "text/plain; version=0.0.4; charset=utf-8";
    page.body = registry.Exposition();
    respond(std::move(page));
  });
  router.Post("/api/v1/admin/tsdb/flush",
              [this](const std::shared_ptr<const http::Request>&, const http::Respond& respond) {
                roles::Ingester* target = ready.load();
                const bool queued = target != nullptr && admin->TryRun([target, respond] {
                  const absl::Status status = target->Flush();
                  respond(status.ok() ? http::Response::Text(204, "")
                                      : http::Response::Text(503, base::StrCat(base::Message(status), "\n")));
                });
                if (!queued) respond(http::Response::Text(503, "not now, try again\n"));
              });
}

App::App(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
App::~App() { Stop(); }
int App::http_port() const { return impl_->http->port(); }

absl::StatusOr<std::unique_ptr<App>> App::Start(const Config& config, const base::Clock& clock,
                                                const base::Logger& log) {
  RETURN_IF_ERROR(config.Validate());
  std::unique_ptr<App> app(new App(std::make_unique<Impl>(config, clock, log)));
  Impl& impl = *app->impl_;
  AddProcessMetrics(clock, impl.registry);
  impl.admin = std::make_unique<base::WorkerPool>("varve-admin", 2, 16);

  const TenancyRule tenancy{config.tenancy.enabled, config.tenancy.default_tenant};
  http::Router router;
  impl.AddOwnRoutes(router);
  AddWriteRoutes(tenancy, impl.distributor, router);
  AddQueryRoutes(tenancy, impl.queries, router);
  ASSIGN_OR_RETURN(impl.http, http::Server::Start(config.http, std::move(router), log, impl.registry));
  log.Info("listening", {{"http", impl.http->address()}, {"version", Version()}, {"data_dir", config.data_dir}});
  if (!config.grpc_listen.empty()) {
    rpc::ServerConfig rpc;
    rpc.listen = config.grpc_listen;
    ASSIGN_OR_RETURN(impl.rpc, rpc::Server::Start(rpc));
    log.Info("listening", {{"grpc", config.grpc_listen}});
  }

  ASSIGN_OR_RETURN(impl.ingester, roles::Ingester::Open(IngesterConfigOf(config), impl.fs, clock, log, impl.registry));
  roles::Distributor::Config distributor;
  distributor.body_bytes_max = config.http.body_bytes_max;
  distributor.limits = std::make_shared<model::Limits>(config.limits);
  impl.distributor_owned = std::make_unique<roles::Distributor>(distributor, *impl.ingester, clock, impl.registry);
  ASSIGN_OR_RETURN(impl.queries_owned, QueryService::Create(config, *impl.ingester, clock, log, impl.registry));
  impl.distributor = impl.distributor_owned.get();
  impl.queries = impl.queries_owned.get();
  impl.ready = impl.ingester.get();
  if (impl.rpc != nullptr) impl.rpc->SetServing(true);
  log.Info("ready", {{"series", impl.ingester->active_series()}, {"http", impl.http->address()}});
  return app;
}

void App::Stop() {
  Impl& impl = *impl_;
  if (impl.stopped) return;
  impl.stopped = true;
  impl.ready = nullptr;
  if (impl.rpc != nullptr) impl.rpc->SetServing(false);
  if (impl.http != nullptr) impl.http->Stop(impl.config.http_stop_deadline_ms);
  impl.distributor = nullptr;
  impl.queries = nullptr;
  impl.queries_owned.reset();
  impl.admin.reset();
  if (impl.ingester != nullptr) impl.ingester->Stop(true);
  if (impl.rpc != nullptr) impl.rpc->Stop(1000);
}

}  // namespace varve::app
