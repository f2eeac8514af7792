#include "server/app/write_routes.h"

#include "server/app/tenant.h"
#include "storage/base/strings.h"

namespace varve::app {

namespace {

http::Response ToResponse(admit::Answer answer) {
  http::Response response;
  response.status = answer.status;
  response.content_type = std::move(answer.content_type);
  response.body = std::move(answer.body);
  response.headers = std::move(answer.headers);
  return response;
}

using Method = void (roles::Distributor::*)(const roles::WriteRequest&, roles::Distributor::Done);

http::Handler MakeHandler(const TenancyRule& tenancy, const std::atomic<roles::Distributor*>& distributor,
                          Method method) {
  return [tenancy, &distributor, method](std::shared_ptr<const http::Request> request, http::Respond respond) {
    roles::Distributor* target = distributor.load(std::memory_order_acquire);
    if (target == nullptr) {
      respond(ToResponse(admit::AnswerError(absl::UnavailableError("starting: the data directory is being read"), 1)));
      return;
    }
    const auto tenant = TenantOf(tenancy.enabled, tenancy.default_tenant, request->Header("x-scope-orgid"));
    if (!tenant.ok()) {
      respond(RefuseTenant(tenant.status()));
      return;
    }
    roles::WriteRequest write;
    write.tenant = *tenant;
    write.content_type = request->Header("content-type");
    write.content_encoding = request->Header("content-encoding");
    write.body = request->body;
    // The request is held until the answer, since `body` points into it.
    (target->*method)(write, [request, respond = std::move(respond)](admit::Answer answer) {
      respond(ToResponse(std::move(answer)));
    });
  };
}

}  // namespace

http::Response RefuseTenant(const absl::Status& status) {
  const int code = absl::IsUnauthenticated(status) ? 401 : 400;
  return http::Response::Text(code, base::StrCat(base::Message(status), "\n"));
}

void AddWriteRoutes(const TenancyRule& tenancy, const std::atomic<roles::Distributor*>& distributor,
                    http::Router& router) {
  const http::Handler write = MakeHandler(tenancy, distributor, &roles::Distributor::Write);
  router.Post("/api/v1/push", write);
  router.Post("/api/v1/write", write);
  router.Post("/api/v1/import/prometheus", MakeHandler(tenancy, distributor, &roles::Distributor::ImportText));
  // Who opens one of these in a browser would otherwise be told by the query routes that there is nothing.
  for (const std::string path : {"/api/v1/push", "/api/v1/write", "/api/v1/import/prometheus"}) {
    router.Get(path, [path](const std::shared_ptr<const http::Request>&, const http::Respond& respond) {
      http::Response refused = http::Response::Text(405, path + " is for POST\n");
      refused.headers.emplace_back("Allow", "POST");
      respond(std::move(refused));
    });
  }
}

}  // namespace varve::app
