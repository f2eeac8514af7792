#pragma once
// The bytes of a head's checkpoint; box drawing in FORMAT.md. Shared by checkpoint.cc and load.cc.
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "storage/base/crc32c.h"

namespace varve::head {

inline constexpr uint32_t kCheckpointMagic = 0x4B434856;  // "VHCK"
inline constexpr uint32_t kCheckpointVersion = 1;
inline constexpr size_t kSectionHeaderBytes = 20;  // magic u32, type u32, body size u64, crc32c u32

enum class Section : uint32_t {  // numbers are for ever
  kHeader = 1,                   // version, hash seed
  kSlice = 2,                    // some slots
  kEnd = 3,                      // labels, exemplars, metadata, totals; always the last
};

inline uint32_t SectionCrc(Section type, std::string_view body) {
  const auto number = static_cast<uint32_t>(type);
  return base::Crc32c(body, base::Crc32c({reinterpret_cast<const char*>(&number), sizeof number}));
}

// Series go to disk as they stand in memory.
static_assert(std::endian::native == std::endian::little);

}  // namespace varve::head
