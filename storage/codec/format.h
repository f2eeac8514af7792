#pragma once
// Constants of the column formats; FORMAT.md draws the boxes. Values are never reused.
#include <cstddef>
#include <cstdint>

namespace varve::codec {

inline constexpr size_t kBlock = 128;  // values in a sub-block; only the last may have fewer

// The high three bits of a sub-block's first byte.
enum class Mode : uint8_t {
  kConst = 0,   // one value
  kLinear = 1,  // first value and one delta
  kFor = 2,     // packed distances from a base
  kDelta = 3,   // packed deltas
  kDod = 4,     // packed deltas of deltas
  kSparse = 5,  // where it changes, and by how much
  kXor = 6,     // packed XOR with the value before, trimmed
  kRaw = 7,     // doubles
};

// The low five bits: 0 to 22 is the decimal exponent, i.e. the values are integers divided by 10 to that power.
inline constexpr int kExponentMax = 22;     // 10^22 is the last power of ten that a double holds exactly
inline constexpr int kWithExceptions = 23;  // the exponent is in the next byte, and exceptions follow the integers
inline constexpr int kBits = 31;            // the integers are the doubles' bit patterns

// In a packed mode's width byte: patches follow.
inline constexpr uint8_t kPatched = 0x80;
// In an exception's position byte: the value is the staleness marker, no bits follow.
inline constexpr uint8_t kStaleException = 0x80;

}  // namespace varve::codec
