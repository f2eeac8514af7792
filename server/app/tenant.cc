#include "server/app/tenant.h"

#include "storage/base/strings.h"

namespace varve::app {

absl::StatusOr<std::string> TenantOf(bool tenancy, std::string_view default_tenant, std::string_view header) {
  if (!tenancy) return std::string(default_tenant);
  if (header.empty()) return absl::UnauthenticatedError("no org id: tenancy is on, name the tenant in X-Scope-OrgID");
  bool good = header.size() <= 150 && header != "." && header != "..";
  for (const char c : header) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    good = good && (letter || std::string_view("!-_.*'()").find(c) != std::string_view::npos);
  }
  if (!good) {
    return absl::InvalidArgumentError(base::StrCat("X-Scope-OrgID ", base::QuoteGo(header.substr(0, 160)),
                                                   " is not a tenant name: up to 150 of A-Z a-z 0-9 ! - _ . * ' ( )"));
  }
  return std::string(header);
}

}  // namespace varve::app
