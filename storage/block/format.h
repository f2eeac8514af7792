#pragma once
// The block file, version 1. FORMAT.md draws it. Integers are little-endian; numbers are never given a second meaning.
#include <cstdint>
#include <string_view>

namespace varve::block {

inline constexpr std::string_view kHeaderMagic = "VARVEBLK";
inline constexpr std::string_view kTailMagic = "KLBEVRAV";
inline constexpr uint32_t kVersion = 1;
inline constexpr size_t kHeaderBytes = 12;  // magic, version
inline constexpr size_t kTailBytes = 16;    // footer size, footer CRC, magic

inline constexpr size_t kCrcBytes = 4;  // behind every column and chunk
inline constexpr size_t kChunkSamplesMax = 1024;
inline constexpr size_t kColumnEntryBytes = 32;  // offset u64, size u32, count u32, first i64, last i64
inline constexpr size_t kHashBytes = 16;
inline constexpr uint32_t kPairsPerGroup = 16;
inline constexpr uint32_t kSeriesPerGroup = 16;

enum class Section : uint8_t {
  kColumns = 1,      // where the time columns are
  kNames = 2,        // label names with the number of their values
  kPairs = 3,        // values, front-coded in groups, with where their postings are
  kPairGroups = 4,   // u32 per group: its offset in kPairs
  kPostings = 5,     // series numbers per pair
  kHashes = 6,       // 16 bytes per series
  kSeries = 7,       // labels and chunks per series, in groups
  kSeriesGroups = 8  // u32 per group: its offset in kSeries
};
inline constexpr uint8_t kSectionCount = 8;

enum class PostingsKind : uint8_t { kDeltas = 1, kRuns = 2, kBits = 3 };

// Bits of a chunk's first byte.
inline constexpr uint8_t kChunkHasHistograms = 1;
inline constexpr uint8_t kChunkHasStartTimes = 2;
inline constexpr uint8_t kChunkFlagsKnown = 3;

}  // namespace varve::block
