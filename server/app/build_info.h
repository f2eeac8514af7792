#pragma once
#include <string>

namespace varve::app {

struct BuildInfo {
  std::string version, revision, compiler;
};
const BuildInfo& Build();

}  // namespace varve::app
