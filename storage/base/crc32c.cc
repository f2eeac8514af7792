#include "storage/base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#endif

namespace varve::base {

#if defined(__SSE4_2__)

uint32_t Crc32c(std::string_view bytes, uint32_t crc) {
  uint64_t state = ~crc;
  const char* p = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; p += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    state = _mm_crc32_u64(state, word);
  }
  auto narrow = static_cast<uint32_t>(state);
  for (; left > 0; ++p, --left) narrow = _mm_crc32_u8(narrow, static_cast<uint8_t>(*p));
  return ~narrow;
}

#else

namespace {
constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t v = i;
    for (int bit = 0; bit < 8; ++bit) v = (v >> 1) ^ ((v & 1) ? 0x82F63B78u : 0);
    table[i] = v;
  }
  return table;
}
constexpr auto kTable = MakeTable();
}  // namespace

uint32_t Crc32c(std::string_view bytes, uint32_t crc) {
  uint32_t state = ~crc;
  for (const char c : bytes) state = (state >> 8) ^ kTable[(state ^ static_cast<uint8_t>(c)) & 0xFF];
  return ~state;
}

#endif

}  // namespace varve::base
