#pragma once
// absl::Status with what Debian's Abseil lacks: propagation macros and std::string_view messages.
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string_view>

namespace varve::base {

inline std::string_view Message(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}
// The same code with "context: " before the message. OK stays OK.
absl::Status Annotate(const absl::Status& status, std::string_view context);
// The status for a failed system call: ENOSPC and EDQUOT are ResourceExhausted, ENOENT NotFound, EEXIST AlreadyExists,
// EACCES and EPERM PermissionDenied, everything else Internal. The message ends in strerror(error_number).
absl::Status ErrnoStatus(int error_number, std::string_view context);

}  // namespace varve::base

#define VARVE_CONCAT_INNER(a, b) a##b
#define VARVE_CONCAT(a, b) VARVE_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expression)                                                           \
  do {                                                                                        \
    if (absl::Status varve_status_ = (expression); !varve_status_.ok()) return varve_status_; \
  } while (false)

#define ASSIGN_OR_RETURN_INNER(result, target, expression) \
  auto result = (expression);                              \
  if (!result.ok()) return result.status();                \
  target = std::move(result).value()
#define ASSIGN_OR_RETURN(target, expression) \
  ASSIGN_OR_RETURN_INNER(VARVE_CONCAT(varve_result_, __LINE__), target, expression)
