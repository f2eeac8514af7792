// Text pages: the first byte chooses the format. What is accepted has canonical labels.
#include <cstdint>

#include "ingest/decode/text_format.h"
#include "storage/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  varve::decode::TextOptions options;
  options.format = data[0] & 1 ? varve::decode::TextFormat::kOpenMetrics : varve::decode::TextFormat::kPrometheus;
  options.now_ms = 1000;
  varve::model::WriteBatch batch;
  const std::string_view page(reinterpret_cast<const char*>(data) + 1, size - 1);
  const absl::Status status = varve::decode::DecodeText(page, options, batch);
  VARVE_CHECK(status.ok() || absl::IsInvalidArgument(status));
  if (!status.ok()) return 0;
  for (const auto& series : batch.series) {
    const auto labels = varve::model::Labels::FromWire(series.labels);
    VARVE_CHECK(labels.ok() && labels->bytes() == series.labels);
  }
  return 0;
}
