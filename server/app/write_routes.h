#pragma once
// /api/v1/push, /api/v1/write, /api/v1/import/prometheus over HTTP.
#include <atomic>
#include <string>

#include "server/http/router.h"
#include "server/roles/distributor.h"

namespace varve::app {

struct TenancyRule {
  bool enabled = false;
  std::string default_tenant;
};

// `distributor` is null until the data directory was recovered: 503 until then.
void AddWriteRoutes(const TenancyRule& tenancy, const std::atomic<roles::Distributor*>& distributor,
                    http::Router& router);

// The answer to a request whose tenant is not acceptable.
http::Response RefuseTenant(const absl::Status& status);

}  // namespace varve::app
