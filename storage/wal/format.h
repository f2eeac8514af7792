#pragma once
// The bytes of a log segment; box drawing in FORMAT.md. Shared by writer and reader and by nobody else.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace varve::wal {

inline constexpr std::string_view kSegmentMagic = "VARVEWAL";
inline constexpr uint32_t kSegmentVersion = 1;
inline constexpr size_t kSegmentHeaderBytes = 24;  // magic, version u32, crc32c u32 (of the rest), segment number u64

// Every record begins with these four bytes, which no UTF-8 text contains; that is how reading finds its feet again
// after damage.
inline constexpr std::string_view kRecordMarker = "\xF8\xC0\xFB\xFF";
inline constexpr size_t kRecordHeaderBytes = 13;        // marker, payload size u32, crc32c u32, type u8
inline constexpr size_t kPayloadBytesMax = 64u << 20u;  // anything longer is damage

// Numbers are for ever: never reused, never renumbered.
enum class RecordType : uint8_t {
  kTenant = 1,
  kSeries = 2,
  kFloats = 3,
  kHistograms = 4,
  kExemplars = 5,
  kMetadata = 6,
  kForget = 7,
};
// Flags of a group of float samples.
inline constexpr uint8_t kGroupSharesTime = 1;     // one time for the group, as opposed to one per sample
inline constexpr uint8_t kGroupHasStartTimes = 2;  // a start time per sample
inline constexpr uint8_t kGroupFlagsKnown = 3;

std::string_view ToString(RecordType type);  // "tenant", ...; "unknown" for numbers that this version does not know

// The checksum in a record's header: over size, type and payload.
uint32_t RecordCrc(uint32_t payload_bytes, uint8_t type, std::string_view payload);

std::string SegmentHeader(uint64_t segment);
std::string SegmentName(uint64_t segment);                        // "00000001.wal"
bool ParseSegmentName(std::string_view name, uint64_t* segment);  // false: not a segment's name

}  // namespace varve::wal
