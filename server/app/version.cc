#include "server/app/version.h"

namespace varve::app {

std::string_view Version() { return VARVE_VERSION; }
std::string_view Revision() { return VARVE_REVISION; }
std::string_view Compiler() { return "clang " __clang_version__; }

}  // namespace varve::app
