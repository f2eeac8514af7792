#pragma once
// What stands in the sealed log: chunks of a series' samples and the columns of times that they point to. FORMAT.md.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/status.h"
#include "storage/model/histogram.h"

namespace varve::head {

using HistogramPtr = std::shared_ptr<const model::Histogram>;

// First byte of a body. Numbers are for ever.
enum ChunkFlag : uint8_t {
  kChunkHistograms = 0x01,   // values are histograms, else floats
  kChunkInlineTimes = 0x02,  // times stand in the chunk, else in a column
  kChunkSide = 0x04,         // out of order: its times may be anywhere before those of the chunks after it
  kChunkStarts = 0x08,       // start times follow
  kChunkMask = 0x10,         // a mask follows the column; without one the chunk has the column's first positions
  kChunkColumn = 0x80,       // not a chunk but a column of times
};

struct ChunkHeader {
  uint8_t flags = 0;
  uint64_t previous = 0;  // position of the series' chunk before; 0: none
  uint32_t slot = 0, generation = 0;
  uint64_t column = 0;  // position of the column
  uint32_t mask = 0;    // of a chunk on a column
  uint32_t count = 0;
};

// Appends a body that will stand at `position`. `times` are the chunk's own and only looked at for start times (empty:
// none) and kChunkInlineTimes.
void EncodeColumn(std::span<const int64_t> times, std::string& out);
void EncodeFloatChunk(const ChunkHeader& header, uint64_t position, std::span<const int64_t> times,
                      std::span<const double> values, std::span<const int64_t> starts, std::string& out);
void EncodeHistogramChunk(const ChunkHeader& header, uint64_t position, std::span<const int64_t> times,
                          std::span<const HistogramPtr> histograms, std::span<const int64_t> starts, std::string& out);

absl::Status DecodeColumn(std::string_view body, std::vector<int64_t>& out);

// A chunk whose header was read; its parts are decoded on demand.
struct ChunkView {
  ChunkHeader header;
  std::string_view inline_times, starts, payload;
  bool histograms() const { return (header.flags & kChunkHistograms) != 0; }
  bool side() const { return (header.flags & kChunkSide) != 0; }
};
absl::Status ParseChunk(std::string_view body, uint64_t position, ChunkView* out);

}  // namespace varve::head
