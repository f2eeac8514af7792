#pragma once
// The inner loops of decoding, once in plain C++ and once for AVX2. Both give the same bits for any input.
#include <cstddef>
#include <cstdint>

namespace varve::codec {

// What kernels may read beyond packed bytes, and write beyond their last element.
inline constexpr size_t kReadPad = 64;
inline constexpr size_t kWritePad = 8;

struct Kernels {
  // `n` values of `width` bits (1 to 64), least significant bit first. Reads up to kReadPad bytes beyond the last.
  void (*unpack)(const char* packed, int width, size_t n, uint64_t* out);
  // x[i] = carry + sum of (x[0..i] + step), modulo 2^64.
  void (*prefix_sum)(uint64_t* x, size_t n, uint64_t carry, uint64_t step);
  // out[i] = double(int64(x[i] + add)) / divisor. Writes exactly n.
  void (*to_double)(const uint64_t* x, size_t n, uint64_t add, double divisor, double* out);
};

const Kernels& PlainKernels();
// The best that this CPU runs.
const Kernels& BestKernels();

}  // namespace varve::codec
