// A configuration file. Whatever it says, the answer is a config that can be shown and read back, or an error.
#include <cstdint>
#include <string_view>

#include "server/app/config.h"
#include "storage/base/check.h"

using namespace varve;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  app::Config config;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (!app::ApplyYaml(text, "fuzz.yaml", config).ok()) return 0;
  if (!config.Validate().ok()) return 0;
  app::Config back;
  VARVE_CHECK(app::ApplyYaml(app::ToYaml(config), "shown.yaml", back).ok());
  VARVE_CHECK(app::ToFlags(back) == app::ToFlags(config));
  return 0;
}
