#pragma once
#include <string>
#include <string_view>

#include "storage/base/status.h"

namespace varve::app {

// The tenant of a request. Without tenancy it is the default tenant, whatever the header says. Unauthenticated: tenancy
// is on and X-Scope-OrgID is missing. InvalidArgument: the name is none (1 to 150 bytes of letters, digits and
// !-_.*'(), not "." or "..", the rule that Mimir's users know).
absl::StatusOr<std::string> TenantOf(bool tenancy, std::string_view default_tenant, std::string_view header);

}  // namespace varve::app
