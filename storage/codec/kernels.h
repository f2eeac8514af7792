#pragma once
// The inner loops, once in plain C++ and once for AVX2. Both give the same bits for any input.
#include <cstddef>
#include <cstdint>

namespace varve::codec {

// What kernels may read beyond packed bytes, and write beyond their last element.
inline constexpr size_t kReadPad = 64;
inline constexpr size_t kWritePad = 8;
// Four integers of this width and a bit offset of up to 4 fit into 8 bytes.
inline constexpr int kFusedWidthMax = 15;

struct Kernels {
  // `n` values of `width` bits (1 to 64), least significant bit first. Reads up to kReadPad bytes beyond the last.
  void (*unpack)(const char* packed, int width, size_t n, uint64_t* out);
  // x[i] = carry + sum of (x[0..i] + step), modulo 2^64.
  void (*prefix_sum)(uint64_t* x, size_t n, uint64_t carry, uint64_t step);
  // out[i] = double(int64(x[i] + add)) / divisor. Writes exactly n.
  void (*to_double)(const uint64_t* x, size_t n, uint64_t add, double divisor, double* out);
  // The commonest in one go, for packed integers of 1 to kFusedWidthMax bits: out[i] = double(v[i]) / divisor with
  // v[i] = packed[i] + base, or with v[i] = v[i - 1] + packed[i] + base, where v[-1] is `first`.
  void (*packed_to_double)(const char* packed, int width, size_t n, uint64_t base, double divisor, double* out);
  void (*deltas_to_double)(const char* packed, int width, size_t n, uint64_t first, uint64_t base, double divisor,
                           double* out);
  void (*fill)(double* out, size_t n, double value);

  // How many of the first values, in steps of 8, are integers divided by `power`; stops at large ones too.
  size_t (*count_exact)(const double* v, size_t n, double power);
  // m[i] = v[i] * power, rounded. False when one of them is large (2^51 or more) or not a number.
  bool (*to_integers)(const double* v, size_t n, double power, uint64_t* m);
  // d[i] = x[i + 1] - x[i] for n - 1 deltas; returns how many are not 0.
  size_t (*deltas)(const uint64_t* x, size_t n, uint64_t* d);
  void (*extremes)(const int64_t* x, size_t n, int64_t& low, int64_t& high);
  // How many of x[i] - base are at least each of the limits. All must be below 2^63.
  void (*count_from)(const uint64_t* x, size_t n, uint64_t base, const uint64_t limits[4], size_t counts[4]);
};

const Kernels& PlainKernels();
// The best that this CPU runs.
const Kernels& BestKernels();

}  // namespace varve::codec
