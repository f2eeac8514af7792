#include "storage/block/ordinals.h"

#include "storage/base/bytes.h"
#include "storage/base/check.h"
#include "storage/block/format.h"

namespace varve::block {

void EncodeOrdinals(std::span<const uint32_t> in, std::string& out) {
  VARVE_CHECK(!in.empty());
  std::string deltas;
  base::PutVarint(deltas, in[0]);
  for (size_t i = 1; i < in.size(); ++i) base::PutVarint(deltas, in[i] - in[i - 1] - 1);
  std::string runs;
  uint32_t end = 0;
  for (size_t i = 0; i < in.size() && runs.size() < deltas.size();) {
    size_t j = i + 1;
    while (j < in.size() && in[j] == in[j - 1] + 1) ++j;
    base::PutVarint(runs, in[i] - end);
    base::PutVarint(runs, j - i - 1);
    end = in[j - 1] + 1;
    i = j;
  }
  const size_t bitmap_bytes = (in.back() - in.front()) / 8 + 1;
  if (bitmap_bytes + 5 < std::min(deltas.size(), runs.size())) {
    base::PutU8(out, static_cast<uint8_t>(PostingsKind::kBits));
    base::PutVarint(out, in.front());
    std::string bits(bitmap_bytes, '\0');
    for (const uint32_t n : in) {
      char& byte = bits[(n - in.front()) / 8];
      byte = static_cast<char>(byte | 1 << (n - in.front()) % 8);
    }
    out += bits;
  } else if (runs.size() < deltas.size()) {
    base::PutU8(out, static_cast<uint8_t>(PostingsKind::kRuns));
    out += runs;
  } else {
    base::PutU8(out, static_cast<uint8_t>(PostingsKind::kDeltas));
    out += deltas;
  }
}

bool DecodeOrdinals(std::string_view bytes, uint64_t count, uint32_t end, std::vector<uint32_t>& out) {
  if (count == 0 || count > end) return false;
  base::ByteReader in(bytes);
  const uint8_t kind = in.U8();
  const size_t begin = out.size();
  out.reserve(begin + count);
  uint64_t next = 0;  // the smallest number that may come
  if (kind == static_cast<uint8_t>(PostingsKind::kDeltas)) {
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t delta = in.Varint();
      if (!in.ok() || delta >= end - next) return false;
      next += delta;
      out.push_back(static_cast<uint32_t>(next++));
      if (next == end && i + 1 < count) return false;
    }
  } else if (kind == static_cast<uint8_t>(PostingsKind::kRuns)) {
    while (!in.AtEnd()) {
      const uint64_t gap = in.Varint();
      const uint64_t length_less_one = in.Varint();
      if (!in.ok() || gap >= end - next) return false;
      next += gap;
      if (length_less_one >= end - next || length_less_one >= count - (out.size() - begin)) return false;
      for (uint64_t i = 0; i <= length_less_one; ++i) out.push_back(static_cast<uint32_t>(next++));
    }
  } else if (kind == static_cast<uint8_t>(PostingsKind::kBits)) {
    const uint64_t first = in.Varint();
    const std::string_view bits = in.Take(in.left());
    if (!in.ok() || first >= end) return false;
    for (size_t i = 0; i < bits.size(); ++i) {
      for (unsigned byte = static_cast<uint8_t>(bits[i]); byte != 0; byte &= byte - 1) {
        const uint64_t number = first + i * 8 + static_cast<uint64_t>(__builtin_ctz(byte));
        if (number >= end || out.size() - begin == count) return false;
        out.push_back(static_cast<uint32_t>(number));
      }
    }
  } else {
    return false;
  }
  return in.ok() && in.AtEnd() && out.size() - begin == count;
}

}  // namespace varve::block
