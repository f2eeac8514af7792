// A block file from outside: as it is, and with its checksums put right so that the fuzzer gets behind them.
#include <cstdint>
#include <string>

#include "storage/base/check.h"
#include "storage/block/reader.h"
#include "tests/storage/block/repair.h"

namespace {

void Read(const std::string& bytes) {
  using namespace varve;
  const auto reader = block::Reader::OpenBytes(bytes, "fuzz");
  if (!reader.ok()) {
    VARVE_CHECK(reader.status().code() == absl::StatusCode::kDataLoss);
    return;
  }
  (void)(*reader)->Verify();
  for (const char* pattern : {"", "n.*", ".+"}) {
    model::SelectRequest request;
    request.range = {1000, 200'000};
    request.matchers.push_back(*model::Matcher::Create(model::MatchType::kRegex, "instance", pattern));
    request.matchers.push_back(*model::Matcher::Create(model::MatchType::kNotEqual, "__name__", "up"));
    const auto selection = (*reader)->SelectHashed(request);
    if (!selection.ok()) continue;
    model::SampleColumns samples;
    for (size_t i = 0; i < (*selection)->size(); ++i) {
      (void)(*selection)->labels(i).ToString();
      if ((*selection)->Read(i, &samples).ok()) VARVE_CHECK(samples.values.size() == samples.size());
    }
    (void)(*reader)->LabelValues("instance", request);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Read(bytes);
  varve::block::RepairChecksums(bytes);
  Read(bytes);
  return 0;
}
