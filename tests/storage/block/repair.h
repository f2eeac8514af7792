#pragma once
// Makes the checksums of a damaged block file right again where its layout can still be followed, so that tests and
// fuzzers reach what lies behind them.
#include <cstring>
#include <string>

#include "storage/base/bytes.h"
#include "storage/base/crc32c.h"
#include "storage/block/format.h"

namespace varve::block {

inline void RepairChecksums(std::string& file) {
  const auto put = [&](uint64_t at, uint32_t crc) { std::memcpy(file.data() + at, &crc, sizeof crc); };
  const auto view = [&](uint64_t at, uint64_t size) { return std::string_view(file).substr(at, size); };
  if (file.size() < kHeaderBytes + kTailBytes) return;
  const uint64_t tail = file.size() - kTailBytes;
  const uint64_t footer_size = base::ByteReader(view(tail, 4)).Fixed<uint32_t>();
  if (footer_size > tail) return;
  const uint64_t footer = tail - footer_size;
  base::ByteReader in(view(footer, footer_size));
  in.Bytes();
  for (int i = 0; i < 8; ++i) in.Varint();
  const uint64_t sections = in.Varint();
  struct Part {
    uint64_t offset, size;
  };
  Part parts[kSectionCount + 1] = {};
  for (uint64_t i = 0; i < sections && in.ok(); ++i) {
    const uint8_t kind = in.U8();
    const uint64_t offset = in.Varint();
    const uint64_t size = in.Varint();
    const auto at = static_cast<uint64_t>(in.position() - file.data());
    in.Fixed<uint32_t>();
    if (!in.ok() || kind > kSectionCount || offset > footer || size > footer - offset) break;
    parts[kind] = {offset, size};
    put(at, base::Crc32c(view(offset, size)));
  }
  put(tail + 4, base::Crc32c(view(footer, footer_size)));
  const auto seal = [&](uint64_t offset, uint64_t size) {
    if (offset <= footer && size <= footer - offset && footer - offset - size >= kCrcBytes) {
      put(offset + size, base::Crc32c(view(offset, size)));
    }
  };
  const Part& columns = parts[static_cast<size_t>(Section::kColumns)];
  for (uint64_t at = 0; at + kColumnEntryBytes <= columns.size; at += kColumnEntryBytes) {
    base::ByteReader entry(view(columns.offset + at, kColumnEntryBytes));
    const uint64_t offset = entry.Fixed<uint64_t>();
    seal(offset, entry.Fixed<uint32_t>());
  }
  // Chunks, as far as the first group's records can be followed.
  base::ByteReader records(
      view(parts[static_cast<size_t>(Section::kSeries)].offset, parts[static_cast<size_t>(Section::kSeries)].size));
  uint64_t offset = records.Varint();
  records.Varint();
  for (uint32_t series = 0; series < kSeriesPerGroup && records.ok(); ++series) {
    records.Varint();
    for (uint64_t more = records.Varint(); more > 0 && records.ok(); --more) records.Varint();
    for (uint64_t chunks = records.Varint(); chunks > 0 && records.ok(); --chunks) {
      records.Signed();
      offset += static_cast<uint64_t>(records.Signed());
      const uint64_t size = records.Varint();
      if (!records.ok()) break;
      seal(offset, size);
      offset += size + kCrcBytes;
    }
  }
}

}  // namespace varve::block
