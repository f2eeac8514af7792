// Any bytes as a log: as one segment for the reader, and as the payload of every type for the decoders. Nothing may
// crash, what decodes must be canonical, and a damaged log must read the same way twice.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "storage/base/check.h"
#include "storage/wal/reader.h"
#include "storage/wal/records.h"
#include "tests/support/mem_fs.h"

namespace varve {
namespace {

void DecodeSeries(std::string_view payload) {
  wal::SeriesDecoder decoder;
  if (!decoder.Decode(payload).ok()) return;
  std::string canonical;
  for (size_t i = 0; i < decoder.size(); ++i) {
    canonical.clear();
    decoder.AppendCanonical(i, canonical);
    const auto labels = model::Labels::FromWire(canonical);
    VARVE_CHECK(labels.ok() && labels->bytes() == canonical);
  }
}

void DecodeFloats(std::string_view payload) {
  wal::FloatsDecoder decoder;
  if (!decoder.Begin(payload).ok()) return;
  wal::FloatGroup group;
  while (decoder.Next(&group)) {
    VARVE_CHECK(group.values.size() == group.size() && group.size() > 0);
    VARVE_CHECK(group.times_ms.empty() || group.times_ms.size() == group.size());
    VARVE_CHECK(group.start_times_ms.empty() || group.start_times_ms.size() == group.size());
  }
}

size_t ReadLog(test::MemFs& fs) {
  auto reader = wal::Reader::Open(fs, "wal", {}, "quarantine");
  VARVE_CHECK(reader.ok());
  wal::Record record;
  while ((*reader)->Next(&record)) {
    wal::DebugString(record.type, record.payload, 5);
    DecodeSeries(record.payload);
    DecodeFloats(record.payload);
  }
  VARVE_CHECK(wal::CutTornTail(fs, "wal", (*reader)->report()).ok());
  return (*reader)->report().records;
}

}  // namespace
}  // namespace varve

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (int type = 0; type < 9; ++type) varve::wal::DebugString(static_cast<varve::wal::RecordType>(type), bytes, 5);
  varve::DecodeSeries(bytes);
  varve::DecodeFloats(bytes);
  varve::test::MemFs fs;
  fs.Overwrite("wal/00000001.wal", bytes);
  const size_t records = varve::ReadLog(fs);
  VARVE_CHECK(varve::ReadLog(fs) == records);
  return 0;
}
