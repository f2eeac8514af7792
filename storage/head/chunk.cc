#include "storage/head/chunk.h"

#include <bit>

#include "storage/base/bytes.h"
#include "storage/base/check.h"
#include "storage/base/strings.h"
#include "storage/codec/columns.h"

namespace varve::head {

namespace {

bool IsPrefix(uint32_t mask) { return (mask & (mask + 1)) == 0; }

void EncodeHead(ChunkHeader header, uint64_t position, std::span<const int64_t> times, std::span<const int64_t> starts,
                std::string& out) {
  const bool on_column = (header.flags & kChunkInlineTimes) == 0;
  if (on_column && !IsPrefix(header.mask)) header.flags |= kChunkMask;
  if (!starts.empty()) header.flags |= kChunkStarts;
  base::PutU8(out, header.flags);
  base::PutVarint(out, header.previous == 0 ? 0 : position - header.previous);
  base::PutVarint(out, header.slot);
  base::PutVarint(out, header.generation);
  if (on_column) {
    base::PutVarint(out, position - header.column);
    if ((header.flags & kChunkMask) != 0) {
      base::PutFixed(out, header.mask);
    } else {
      base::PutVarint(out, header.count);
    }
  } else {
    base::PutVarint(out, header.count);
    std::string encoded;
    codec::EncodeTimes(times, encoded);
    base::PutBytes(out, encoded);
  }
  if (!starts.empty()) {
    std::string encoded;
    codec::EncodeStartTimes(starts, times, encoded);
    base::PutBytes(out, encoded);
  }
}

}  // namespace

void EncodeColumn(std::span<const int64_t> times, std::string& out) {
  base::PutU8(out, kChunkColumn);
  codec::EncodeTimes(times, out);
}

void EncodeFloatChunk(const ChunkHeader& header, uint64_t position, std::span<const int64_t> times,
                      std::span<const double> values, std::span<const int64_t> starts, std::string& out) {
  VARVE_CHECK(values.size() == header.count && header.count > 0);
  EncodeHead(header, position, times, starts, out);
  codec::EncodeValues(values, out);
}

void EncodeHistogramChunk(const ChunkHeader& header, uint64_t position, std::span<const int64_t> times,
                          std::span<const HistogramPtr> histograms, std::span<const int64_t> starts, std::string& out) {
  VARVE_CHECK(histograms.size() == header.count && header.count > 0);
  EncodeHead(header, position, times, starts, out);
  codec::EncodeHistograms(histograms, out);
}

absl::Status DecodeColumn(std::string_view body, std::vector<int64_t>& out) {
  if (body.empty() || static_cast<uint8_t>(body[0]) != kChunkColumn) return absl::DataLossError("not a time column");
  return codec::DecodeTimes(body.substr(1), out);
}

absl::Status ParseChunk(std::string_view body, uint64_t position, ChunkView* out) {
  base::ByteReader in(body);
  ChunkHeader& h = out->header;
  h = ChunkHeader();
  h.flags = in.U8();
  if (h.flags >= 0x20) return absl::DataLossError("not a chunk");
  const uint64_t back = in.Varint();
  const uint64_t slot = in.Varint();
  const uint64_t generation = in.Varint();
  bool sane = back < position && slot <= UINT32_MAX && generation <= UINT32_MAX;
  h.previous = back == 0 ? 0 : position - back;
  h.slot = static_cast<uint32_t>(slot);
  h.generation = static_cast<uint32_t>(generation);
  out->inline_times = out->starts = {};
  if ((h.flags & kChunkInlineTimes) == 0) {
    const uint64_t column_back = in.Varint();
    sane = sane && column_back > 0 && column_back < position;
    h.column = position - column_back;
    if ((h.flags & kChunkMask) != 0) {
      h.mask = in.Fixed<uint32_t>();
      h.count = static_cast<uint32_t>(std::popcount(h.mask));
    } else {
      const uint64_t count = in.Varint();
      sane = sane && count <= 32;
      h.count = static_cast<uint32_t>(count);
      h.mask = count >= 32 ? UINT32_MAX : (1u << count) - 1;
    }
  } else {
    const uint64_t count = in.Varint();
    sane = sane && count <= codec::kColumnMax;
    h.count = static_cast<uint32_t>(count);
    out->inline_times = in.Bytes();
  }
  if ((h.flags & kChunkStarts) != 0) out->starts = in.Bytes();
  out->payload = in.Take(in.left());
  if (!in.ok() || !sane || h.count == 0) return absl::DataLossError("malformed chunk");
  return absl::OkStatus();
}

}  // namespace varve::head
