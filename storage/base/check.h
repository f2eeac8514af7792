#pragma once
// Assertions about our own code. They stay on in release builds: a restart is better than a wrong answer.
#include <string_view>

namespace varve::base {

[[noreturn]] void CheckFailed(const char* file, int line, const char* what, std::string_view detail = {});

}  // namespace varve::base

#define VARVE_CHECK(condition)                                    \
  do {                                                            \
    if (!(condition)) [[unlikely]]                                \
      ::varve::base::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (false)
#define VARVE_CHECK_MSG(condition, detail)                                \
  do {                                                                    \
    if (!(condition)) [[unlikely]]                                        \
      ::varve::base::CheckFailed(__FILE__, __LINE__, #condition, detail); \
  } while (false)
