#include "storage/base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#endif

namespace varve::base {
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
constexpr uint32_t Step(uint32_t state, uint8_t byte) { return (state >> 8) ^ kTable[(state ^ byte) & 0xFF]; }

#if defined(__SSE4_2__)

// What `kBytes` zero bytes do to a state. The operation is linear, so four table look-ups, one per byte of the state,
// do it.
template <size_t kBytes>
class Zeros {
 public:
  constexpr Zeros() {
    std::array<uint32_t, 32> of_bit{};
    for (size_t bit = 0; bit < 32; ++bit) {
      uint32_t state = 1u << bit;
      for (size_t i = 0; i < kBytes; ++i) state = Step(state, 0);
      of_bit[bit] = state;
    }
    for (size_t byte = 0; byte < 4; ++byte) {
      for (size_t value = 0; value < 256; ++value) {
        uint32_t state = 0;
        for (size_t bit = 0; bit < 8; ++bit) state ^= (value >> bit & 1) != 0 ? of_bit[8 * byte + bit] : 0;
        tables_[byte][value] = state;
      }
    }
  }
  uint32_t Apply(uint32_t s) const {
    return tables_[0][s & 0xFF] ^ tables_[1][s >> 8 & 0xFF] ^ tables_[2][s >> 16 & 0xFF] ^ tables_[3][s >> 24];
  }

 private:
  uint32_t tables_[4][256] = {};
};

uint64_t Load(const char* p) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  return word;
}

// The crc32 instruction takes a word per cycle but answers three cycles later: three stretches side by side keep it
// busy.
template <size_t kBytes>
uint32_t ThreeAtOnce(const char*& p, size_t& left, uint32_t state) {
  static constexpr Zeros<kBytes> kZeros;
  while (left >= 3 * kBytes) {
    uint64_t a = state, b = 0, c = 0;
    for (size_t i = 0; i < kBytes; i += 8) {
      a = _mm_crc32_u64(a, Load(p + i));
      b = _mm_crc32_u64(b, Load(p + kBytes + i));
      c = _mm_crc32_u64(c, Load(p + 2 * kBytes + i));
    }
    state = kZeros.Apply(static_cast<uint32_t>(a)) ^ static_cast<uint32_t>(b);
    state = kZeros.Apply(state) ^ static_cast<uint32_t>(c);
    p += 3 * kBytes;
    left -= 3 * kBytes;
  }
  return state;
}

uint32_t Update(uint32_t state, std::string_view bytes) {
  const char* p = bytes.data();
  size_t left = bytes.size();
  state = ThreeAtOnce<2048>(p, left, state);
  state = ThreeAtOnce<256>(p, left, state);
  uint64_t wide = state;
  for (; left >= 8; p += 8, left -= 8) wide = _mm_crc32_u64(wide, Load(p));
  auto narrow = static_cast<uint32_t>(wide);
  for (; left > 0; ++p, --left) narrow = _mm_crc32_u8(narrow, static_cast<uint8_t>(*p));
  return narrow;
}

#else

uint32_t Update(uint32_t state, std::string_view bytes) {
  for (const char c : bytes) state = Step(state, static_cast<uint8_t>(c));
  return state;
}

#endif

}  // namespace

uint32_t Crc32c(std::string_view bytes, uint32_t crc) { return ~Update(~crc, bytes); }

}  // namespace varve::base
