#pragma once
#include <cstdint>
#include <string_view>

namespace varve::base {

// CRC-32C (Castagnoli, RFC 3720 appendix B.4) of `bytes`, continuing from `crc` (0 to begin). Uses the CPU's crc32
// instruction where there is one.
uint32_t Crc32c(std::string_view bytes, uint32_t crc = 0);

}  // namespace varve::base
