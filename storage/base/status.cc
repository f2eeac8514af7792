#include "storage/base/status.h"

#include <cerrno>
#include <cstring>
#include <string>

namespace varve::base {

absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  std::string text(context);
  text += ": ";
  text += Message(status);
  return absl::Status(status.code(), text);
}

absl::Status ErrnoStatus(int error_number, std::string_view context) {
  std::string text(context);
  text += ": ";
  text += std::strerror(error_number);
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(text);
    case ENOENT:
      return absl::NotFoundError(text);
    case EEXIST:
      return absl::AlreadyExistsError(text);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(text);
    default:
      return absl::InternalError(text);
  }
}

}  // namespace varve::base
