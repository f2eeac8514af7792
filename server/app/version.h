#pragma once
#include <string_view>

namespace varve::app {

std::string_view Version();   // "0.1.0"
std::string_view Revision();  // the commit that was configured, or "unknown"
std::string_view Compiler();  // "clang 19.1.7"

}  // namespace varve::app
