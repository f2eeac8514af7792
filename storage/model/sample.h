#pragma once
#include <bit>
#include <cstdint>

namespace varve::model {

// NaN bit patterns that mean something (Prometheus, model/value): the staleness marker is one pattern and no other; the
// ordinary NaN is what text parsers make. Bits are stored as received.
inline constexpr uint64_t kStaleNanBits = 0x7ff0000000000002u;
inline constexpr uint64_t kNormalNanBits = 0x7ff8000000000001u;
inline double StaleNan() { return std::bit_cast<double>(kStaleNanBits); }
inline double NormalNan() { return std::bit_cast<double>(kNormalNanBits); }
inline bool IsStaleNan(double v) { return std::bit_cast<uint64_t>(v) == kStaleNanBits; }
// Same bits, so -0 differs from 0 and NaNs differ by payload. The test for "exact duplicate".
inline bool SameBits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

struct Sample {
  int64_t t_ms = 0;
  double value = 0;
};

}  // namespace varve::model
