#include "server/app/query_routes.h"

#include <unistd.h>

#include <algorithm>

#include "server/app/tenant.h"
#include "server/app/version.h"
#include "storage/base/strings.h"

namespace varve::app {

namespace {

// Names that Prometheus' users pass to --enable-feature, and what they switch here.
absl::Status Enable(std::string_view feature, engine::EngineConfig& engine) {
  if (feature == "promql-experimental-functions")
    engine.parser.experimental_functions = true;
  else if (feature == "promql-extended-range-selectors")
    engine.parser.extended_range_selectors = true;
  else if (feature == "promql-binop-fill-modifiers")
    engine.parser.fill_modifiers = true;
  else if (feature == "promql-duration-expr")
    engine.parser.duration_expressions = true;
  else if (feature == "promql-delayed-name-removal")
    engine.delayed_name_removal = true;
  else if (feature == "type-and-unit-labels")
    engine.type_and_unit_labels = true;
  else if (feature == "use-start-timestamps")
    engine.start_timestamps = true;
  else
    return absl::InvalidArgumentError(base::StrCat("enable-feature: there is no feature ", base::QuoteGo(feature)));
  return absl::OkStatus();
}

http::Response ToResponse(api::Reply reply) {
  http::Response response;
  response.status = reply.status;
  response.content_type = std::move(reply.content_type);
  response.body = std::move(reply.body);
  if (reply.status == 503 || reply.status == 429) response.headers.emplace_back("Retry-After", "1");
  return response;
}

std::string WorkingDirectory() {
  char path[4096];
  return getcwd(path, sizeof path) == nullptr ? "" : path;
}

}  // namespace

absl::StatusOr<std::unique_ptr<QueryService>> QueryService::Create(const Config& config, roles::Ingester& ingester,
                                                                   const base::Clock& clock, const base::Logger&,
                                                                   base::Registry& registry) {
  engine::EngineConfig engine;
  engine.lookback_ms = config.query.lookback_delta_ms;
  engine.timeout_ms = config.query.timeout_ms;
  engine.samples_max = config.query.samples_max;
  engine.memory_bytes_max = static_cast<int64_t>(config.query.memory_bytes_max);
  for (const std::string& feature : config.features) RETURN_IF_ERROR(Enable(feature, engine));
  RETURN_IF_ERROR(engine.Validate());
  api::ServerInfo info;
  info.version = Version();
  info.revision = Revision();
  info.compiler = Compiler();
  info.config_yaml = ToYaml(config);
  info.flags = ToFlags(config);
  std::sort(info.flags.begin(), info.flags.end());
  info.start_time_ms = clock.NowMs();
  info.working_directory = WorkingDirectory();
  info.storage_retention =
      config.storage.retention_ms == 0 ? "forever" : base::StrCat(config.storage.retention_ms / 1000, "s");
  return std::unique_ptr<QueryService>(
      new QueryService(engine, std::move(info), config.query.concurrency, ingester, clock, registry));
}

QueryService::QueryService(const engine::EngineConfig& engine, api::ServerInfo info, int threads,
                           roles::Ingester& ingester, const base::Clock& clock, base::Registry& registry)
    : ingester_(ingester),
      clock_(clock),
      engine_(engine, clock),
      api_(engine_, clock, std::move(info)),
      refused_(registry.AddCounter("varve_query_refused_total", "Queries refused because too many were waiting.")),
      running_(registry.AddGauge("varve_query_running_queries", "Queries running now.")),
      seconds_(registry.AddHistogram("varve_query_seconds", "From the start of a query to its answer.",
                                     base::Histogram::LatencySeconds())),
      queue_seconds_(registry.AddHistogram("varve_query_queue_seconds", "What a query waited for a thread.",
                                           base::Histogram::LatencySeconds())),
      pool_(std::make_unique<base::WorkerPool>("varve-query", threads, 1024)) {}

QueryService::~QueryService() = default;

void QueryService::Handle(const std::string& tenant, const std::string& path,
                          std::shared_ptr<const http::Request> request, http::Respond respond) {
  const int64_t queued_ns = clock_.MonotonicNs();
  // The worker pool's task must be copyable; the answer goes out exactly once all the same.
  const auto task = [this, tenant, path, request, respond, queued_ns] {
    const int64_t begun_ns = clock_.MonotonicNs();
    queue_seconds_.Observe(static_cast<double>(begun_ns - queued_ns) * 1e-9);
    auto parameters = http::Parameters::FromRequest(*request);
    if (!parameters.ok()) {
      respond(ToResponse(api::ErrorReply(400, base::Message(parameters.status()))));
      return;
    }
    running_.Add(1);
    const api::Params params(parameters->pairs());
    const auto source = ingester_.SourceFor(tenant);
    const api::Context context{source.get(), request->cancel.get()};
    std::optional<api::Reply> reply = api_.Handle(path, params, context);
    if (!reply.has_value()) reply = api::ErrorReply(404, base::StrCat("there is no endpoint /api/v1/", path));
    running_.Add(-1);
    seconds_.Observe(static_cast<double>(clock_.MonotonicNs() - begun_ns) * 1e-9);
    respond(ToResponse(*std::move(reply)));
  };
  if (!pool_->TryRun(task)) {
    refused_.Add();
    respond(ToResponse(api::ErrorReply(503, "too many queries are waiting")));
  }
}

void AddQueryRoutes(const TenancyRule& tenancy, const std::atomic<QueryService*>& queries, http::Router& router) {
  for (const std::string prefix : {"/api/v1/", "/prometheus/api/v1/"}) {
    const http::Handler handler = [tenancy, &queries, skip = prefix.size()](
                                      std::shared_ptr<const http::Request> request, http::Respond respond) {
      QueryService* service = queries.load(std::memory_order_acquire);
      if (service == nullptr) {
        respond(ToResponse(api::ErrorReply(503, "starting: the data directory is being read")));
        return;
      }
      const auto tenant = TenantOf(tenancy.enabled, tenancy.default_tenant, request->Header("x-scope-orgid"));
      if (!tenant.ok()) {
        respond(RefuseTenant(tenant.status()));
        return;
      }
      const std::string path = request->path.substr(skip);
      if (request->method == "POST" && !api::Api::TakesForms(path)) {
        http::Response refused = ToResponse(api::ErrorReply(405, base::StrCat("/api/v1/", path, " is asked with GET")));
        refused.headers.emplace_back("Allow", "GET");
        respond(std::move(refused));
        return;
      }
      service->Handle(*tenant, path, std::move(request), std::move(respond));
    };
    router.Get(prefix + "{path...}", handler);
    router.Post(prefix + "{path...}", handler);
  }
}

}  // namespace varve::app
