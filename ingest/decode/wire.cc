#include "ingest/decode/wire.h"

namespace varve::decode {

bool Wire::LongVarint(uint64_t& v) {
  const char* at = p_;
  uint64_t result = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (p_ == end_) return Fail(at, "varint cut short");
    const auto byte = static_cast<uint8_t>(*p_++);
    if (shift == 63 && byte > 1) return Fail(at, "varint of more than 64 bits");
    result |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) {
      v = result;
      return true;
    }
  }
  return Fail(at, "varint of more than 64 bits");
}

bool Wire::SkipNested(uint32_t tag, int depth) {
  uint64_t ignored = 0;
  uint32_t ignored32 = 0;
  std::string_view bytes;
  switch (tag & 7) {
    case kVarint:
      return Varint(ignored);
    case kFixed64:
      return Fixed(ignored);
    case kBytes:
      return Bytes(bytes);
    case kFixed32:
      return Fixed(ignored32);
    case kGroupBegin: {
      if (depth == 32) return Fail("groups nested too deeply");
      const uint32_t end_tag = (tag & ~7u) | kGroupEnd;
      while (true) {
        uint32_t inner = 0;
        if (!NextTag(inner)) return false;
        if (inner == end_tag) return true;
        if (!SkipNested(inner, depth + 1)) return false;
      }
    }
    default:
      return Fail("unknown wire type");
  }
}

}  // namespace varve::decode
