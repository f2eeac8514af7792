#include "storage/wal/format.h"

#include "storage/base/bytes.h"
#include "storage/base/crc32c.h"
#include "storage/base/strings.h"

namespace varve::wal {

std::string_view ToString(RecordType type) {
  switch (type) {
    case RecordType::kTenant:
      return "tenant";
    case RecordType::kSeries:
      return "series";
    case RecordType::kFloats:
      return "floats";
    case RecordType::kHistograms:
      return "histograms";
    case RecordType::kExemplars:
      return "exemplars";
    case RecordType::kMetadata:
      return "metadata";
    case RecordType::kForget:
      return "forget";
  }
  return "unknown";
}

uint32_t RecordCrc(uint32_t payload_bytes, uint8_t type, std::string_view payload) {
  char head[5];
  std::memcpy(head, &payload_bytes, 4);
  head[4] = static_cast<char>(type);
  return base::Crc32c(payload, base::Crc32c({head, sizeof head}));
}

std::string SegmentHeader(uint64_t segment) {
  std::string number, out;
  base::PutFixed<uint64_t>(number, segment);
  std::string version;
  base::PutFixed<uint32_t>(version, kSegmentVersion);
  out.append(kSegmentMagic);
  out.append(version);
  base::PutFixed<uint32_t>(out, base::Crc32c(number, base::Crc32c(version, base::Crc32c(kSegmentMagic))));
  out.append(number);
  return out;
}

std::string SegmentName(uint64_t segment) {
  std::string digits = base::StrCat(segment);
  if (digits.size() < 8) digits.insert(0, 8 - digits.size(), '0');
  return digits + ".wal";
}

bool ParseSegmentName(std::string_view name, uint64_t* segment) {
  if (!name.ends_with(".wal")) return false;
  const std::optional<uint64_t> number = base::ParseUint64(name.substr(0, name.size() - 4));
  if (!number || *number == 0 || SegmentName(*number) != name) return false;
  *segment = *number;
  return true;
}

}  // namespace varve::wal
