// Remote write 2.0: our decoder and libprotobuf, where both accept, must say the same.
#include <google/protobuf/stubs/logging.h>

#include <cstdint>

#include "ingest/decode/write_request.h"
#include "proto/prom_write_v2.pb.h"
#include "storage/base/check.h"
#include "tests/ingest/decode/make_request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool quiet = (google::protobuf::SetLogHandler(nullptr), true);
  (void)quiet;
  const std::string message(reinterpret_cast<const char*>(data), size);
  varve::model::WriteBatch batch;
  const absl::Status status = varve::decode::DecodeWriteV2(message, 1, batch);
  if (!status.ok()) {
    VARVE_CHECK(absl::IsInvalidArgument(status));
    return 0;
  }
  for (const auto& series : batch.series) {  // canonical, whatever was sent
    const auto labels = varve::model::Labels::FromWire(series.labels);
    VARVE_CHECK(labels.ok() && labels->bytes() == series.labels);
  }
  io::prometheus::write::v2::Request parsed;
  if (!parsed.ParseFromString(message)) return 0;
  for (const auto& series : parsed.timeseries()) {
    for (const auto& exemplar : series.exemplars()) {
      if (exemplar.labels_refs_size() > 20) return 0;  // the bound on their bytes is ours alone
    }
  }
  const std::string difference =
      varve::decode::Difference(varve::decode::Expect(parsed), varve::decode::Describe(batch));
  VARVE_CHECK_MSG(difference.empty(), difference);
  return 0;
}
