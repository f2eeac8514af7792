#include "storage/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace varve::base {

void CheckFailed(const char* file, int line, const char* what, std::string_view detail) {
  std::fprintf(stderr, "%s:%d: check failed: %s%s%.*s\n", file, line, what, detail.empty() ? "" : ": ",
               static_cast<int>(detail.size()), detail.data());
  std::abort();
}

}  // namespace varve::base
