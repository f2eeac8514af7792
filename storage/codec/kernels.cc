#include "storage/codec/kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace varve::codec {

namespace {
static_assert(std::endian::native == std::endian::little, "packed bytes are little-endian");

uint64_t Load(const char* p) {
  uint64_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

void UnpackPlain(const char* packed, int width, size_t n, uint64_t* out) {
  const auto w = static_cast<size_t>(width);
  const uint64_t mask = w == 64 ? ~uint64_t{0} : (uint64_t{1} << w) - 1;
  if (w <= 56) {
    for (size_t i = 0, bit = 0; i < n; ++i, bit += w) out[i] = (Load(packed + (bit >> 3)) >> (bit & 7)) & mask;
    return;
  }
  for (size_t i = 0, bit = 0; i < n; ++i, bit += w) {  // may span nine bytes
    const size_t shift = bit & 7;
    uint64_t v = Load(packed + (bit >> 3)) >> shift;
    if (shift != 0) v |= static_cast<uint64_t>(static_cast<uint8_t>(packed[(bit >> 3) + 8])) << (64 - shift);
    out[i] = v & mask;
  }
}

void PrefixSumPlain(uint64_t* x, size_t n, uint64_t carry, uint64_t step) {
  for (size_t i = 0; i < n; ++i) x[i] = carry += x[i] + step;
}

void ToDoublePlain(const uint64_t* x, size_t n, uint64_t add, double divisor, double* out) {
  if (divisor == 1) {
    for (size_t i = 0; i < n; ++i) out[i] = static_cast<double>(static_cast<int64_t>(x[i] + add));
  } else {
    for (size_t i = 0; i < n; ++i) out[i] = static_cast<double>(static_cast<int64_t>(x[i] + add)) / divisor;
  }
}

void PackedToDoublePlain(const char* packed, int width, size_t n, uint64_t base, double divisor, double* out) {
  const uint64_t mask = (uint64_t{1} << width) - 1;
  for (size_t i = 0, bit = 0; i < n; ++i, bit += static_cast<size_t>(width)) {
    out[i] =
        static_cast<double>(static_cast<int64_t>(((Load(packed + (bit >> 3)) >> (bit & 7)) & mask) + base)) / divisor;
  }
}

void DeltasToDoublePlain(const char* packed, int width, size_t n, uint64_t first, uint64_t base, double divisor,
                         double* out) {
  const uint64_t mask = (uint64_t{1} << width) - 1;
  for (size_t i = 0, bit = 0; i < n; ++i, bit += static_cast<size_t>(width)) {
    first += ((Load(packed + (bit >> 3)) >> (bit & 7)) & mask) + base;
    out[i] = static_cast<double>(static_cast<int64_t>(first)) / divisor;
  }
}

// Loops that the compiler makes wide by itself: compiled once for each kind of CPU. No multiply-add is ever fused (the
// build forbids it), so that the width does not show in the results.
#define VARVE_INLINE __attribute__((always_inline)) inline

// Adding and subtracting 1.5 * 2^52 rounds anything smaller than 2^51 to an integer, half to even; the bits of the sum
// hold the integer itself.
constexpr double kMagic = 0x1.8p52;
constexpr uint64_t kLargeBits = uint64_t{1023 + 51} << 52;  // of 2^51
// The top bit tells whether |v| is 2^51 or more, or not a number.
VARVE_INLINE uint64_t Large(double v) { return kLargeBits - 1 - (std::bit_cast<uint64_t>(v) & ~(uint64_t{1} << 63)); }

VARVE_INLINE void Fill(double* out, size_t n, double value) {
  for (size_t i = 0; i < n; ++i) out[i] = value;
}

template <bool kScaled>
VARVE_INLINE size_t CountExactScaled(const double* v, size_t n, double power) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t bad = 0;
    for (size_t k = 0; k < 8; ++k) {
      const double scaled = kScaled ? v[i + k] * power : v[i + k];
      const double rounded = (scaled + kMagic) - kMagic;
      const double back = kScaled ? rounded / power : rounded;
      bad |= std::bit_cast<uint64_t>(back) ^ std::bit_cast<uint64_t>(v[i + k]);
      bad |= Large(scaled) & (uint64_t{1} << 63);
    }
    if (bad != 0) break;
  }
  return i;
}
VARVE_INLINE size_t CountExact(const double* v, size_t n, double power) {
  return power == 1 ? CountExactScaled<false>(v, n, power) : CountExactScaled<true>(v, n, power);
}

VARVE_INLINE bool ToIntegers(const double* v, size_t n, double power, uint64_t* m) {
  uint64_t large = 0;
  for (size_t i = 0; i < n; ++i) {
    const double scaled = v[i] * power;
    m[i] = std::bit_cast<uint64_t>(scaled + kMagic) - std::bit_cast<uint64_t>(kMagic);
    large |= Large(scaled);
  }
  return large >> 63 == 0;
}

VARVE_INLINE size_t Deltas(const uint64_t* x, size_t n, uint64_t* d) {
  size_t changes = 0;
  for (size_t i = 0; i + 1 < n; ++i) {
    d[i] = x[i + 1] - x[i];
    changes += d[i] != 0;
  }
  return changes;
}

VARVE_INLINE void Extremes(const int64_t* x, size_t n, int64_t& low, int64_t& high) {
  int64_t a = x[0], b = x[0];
  for (size_t i = 1; i < n; ++i) {
    a = x[i] < a ? x[i] : a;
    b = x[i] > b ? x[i] : b;
  }
  low = a;
  high = b;
}

VARVE_INLINE void CountFrom(const uint64_t* x, size_t n, uint64_t base, const uint64_t limits[4], size_t counts[4]) {
  const auto l0 = static_cast<int64_t>(limits[0]), l1 = static_cast<int64_t>(limits[1]);
  const auto l2 = static_cast<int64_t>(limits[2]), l3 = static_cast<int64_t>(limits[3]);
  size_t c0 = 0, c1 = 0, c2 = 0, c3 = 0;
  for (size_t i = 0; i < n; ++i) {
    const auto v = static_cast<int64_t>(x[i] - base);
    c0 += v >= l0;
    c1 += v >= l1;
    c2 += v >= l2;
    c3 += v >= l3;
  }
  counts[0] = c0, counts[1] = c1, counts[2] = c2, counts[3] = c3;
}

// clang-format off
#define VARVE_LOOPS(suffix, target)                                                                                    \
  target void Fill##suffix(double* out, size_t n, double value) { Fill(out, n, value); }                               \
  target size_t CountExact##suffix(const double* v, size_t n, double power) { return CountExact(v, n, power); }        \
  target bool ToIntegers##suffix(const double* v, size_t n, double power, uint64_t* m) {                               \
    return ToIntegers(v, n, power, m);                                                                                 \
  }                                                                                                                    \
  target size_t Deltas##suffix(const uint64_t* x, size_t n, uint64_t* d) { return Deltas(x, n, d); }                   \
  target void Extremes##suffix(const int64_t* x, size_t n, int64_t& low, int64_t& high) { Extremes(x, n, low, high); } \
  target void CountFrom##suffix(const uint64_t* x, size_t n, uint64_t base, const uint64_t limits[4],                  \
                                size_t counts[4]) {                                                                    \
    CountFrom(x, n, base, limits, counts);                                                                             \
  }
#define VARVE_LOOP_NAMES(suffix) \
  Fill##suffix, CountExact##suffix, ToIntegers##suffix, Deltas##suffix, Extremes##suffix, CountFrom##suffix
// clang-format on

VARVE_LOOPS(Plain, )

#if defined(__x86_64__)
// The tuning makes unaligned 32-byte loads and stores whole; the generic one still splits them in two.
#define VARVE_AVX2_TARGET "avx2,bmi2,tune=haswell"
#define VARVE_AVX2 __attribute__((target(VARVE_AVX2_TARGET)))

VARVE_LOOPS(Avx2, VARVE_AVX2)

VARVE_AVX2 void UnpackAvx2(const char* packed, int width, size_t n, uint64_t* out) {
  if (width > 56) return UnpackPlain(packed, width, n, out);
  // Eight values are `width` bytes, so where each begins, modulo bytes, is the same in every round.
  const int w = width;
  const __m256i mask = _mm256_set1_epi64x((int64_t{1} << w) - 1);
  if (w <= 15) {  // four values and an offset of at most 4 bits fit one load
    const int a = 4 * w & 7, at = 4 * w >> 3;
    const __m256i shift0 = _mm256_set_epi64x(3 * w, 2 * w, w, 0);
    const __m256i shift1 = _mm256_add_epi64(shift0, _mm256_set1_epi64x(a));
    for (size_t i = 0; i < n; i += 8, packed += w) {
      const __m256i v0 = _mm256_set1_epi64x(static_cast<int64_t>(Load(packed)));
      const __m256i v1 = _mm256_set1_epi64x(static_cast<int64_t>(Load(packed + at)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm256_and_si256(_mm256_srlv_epi64(v0, shift0), mask));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i + 4),
                          _mm256_and_si256(_mm256_srlv_epi64(v1, shift1), mask));
    }
    return;
  }
  if (w <= 29) {  // two values and an offset of at most 6 bits
    const int b1 = 2 * w, b2 = 4 * w, b3 = 6 * w;
    const __m256i shift0 = _mm256_set_epi64x((b1 & 7) + w, b1 & 7, w, 0);
    const __m256i shift1 = _mm256_set_epi64x((b3 & 7) + w, b3 & 7, (b2 & 7) + w, b2 & 7);
    const int at1 = b1 >> 3, at2 = b2 >> 3, at3 = b3 >> 3;
    for (size_t i = 0; i < n; i += 8, packed += w) {
      const __m256i v0 = _mm256_set_m128i(_mm_set1_epi64x(static_cast<int64_t>(Load(packed + at1))),
                                          _mm_set1_epi64x(static_cast<int64_t>(Load(packed))));
      const __m256i v1 = _mm256_set_m128i(_mm_set1_epi64x(static_cast<int64_t>(Load(packed + at3))),
                                          _mm_set1_epi64x(static_cast<int64_t>(Load(packed + at2))));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm256_and_si256(_mm256_srlv_epi64(v0, shift0), mask));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i + 4),
                          _mm256_and_si256(_mm256_srlv_epi64(v1, shift1), mask));
    }
    return;
  }
  int at[8], shift[8];
  for (int k = 0; k < 8; ++k) at[k] = k * w >> 3, shift[k] = k * w & 7;
  const __m256i shift0 = _mm256_set_epi64x(shift[3], shift[2], shift[1], shift[0]);
  const __m256i shift1 = _mm256_set_epi64x(shift[7], shift[6], shift[5], shift[4]);
  const auto load = [&](int k) __attribute__((always_inline)) { return static_cast<int64_t>(Load(packed + at[k])); };
  for (size_t i = 0; i < n; i += 8, packed += w) {
    const __m256i v0 = _mm256_set_epi64x(load(3), load(2), load(1), load(0));
    const __m256i v1 = _mm256_set_epi64x(load(7), load(6), load(5), load(4));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm256_and_si256(_mm256_srlv_epi64(v0, shift0), mask));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i + 4), _mm256_and_si256(_mm256_srlv_epi64(v1, shift1), mask));
  }
}

#define VARVE_AVX2_INLINE VARVE_AVX2 __attribute__((always_inline)) inline

// Sums of the first one, two, three and four.
VARVE_AVX2_INLINE __m256i RunningSums(__m256i v) {
  v = _mm256_add_epi64(v, _mm256_slli_si256(v, 8));  // within each half: a, a+b | c, c+d
  // The low half's total joins the high half.
  return _mm256_add_epi64(v, _mm256_blend_epi32(_mm256_setzero_si256(), _mm256_permute4x64_epi64(v, 0x55), 0xF0));
}

// int64 to double. The low 32 bits become 2^52 + low, the high ones 2^84 + 2^63 + high * 2^32; both are exact, and so
// is the difference of the constants, therefore the one rounding is that of the last addition: as in a scalar
// conversion.
VARVE_AVX2_INLINE __m256d Convert(__m256i v) {
  const __m256i low = _mm256_blend_epi32(_mm256_set1_epi64x(0x4330000000000000), v, 0x55);
  const __m256i high = _mm256_xor_si256(_mm256_srli_epi64(v, 32), _mm256_set1_epi64x(0x4530000080000000));
  const __m256d both = _mm256_castsi256_pd(_mm256_set1_epi64x(0x4530000080100000));
  return _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), both), _mm256_castsi256_pd(low));
}

VARVE_AVX2 void PrefixSumAvx2(uint64_t* x, size_t n, uint64_t carry, uint64_t step) {
  __m256i sum = _mm256_set1_epi64x(static_cast<int64_t>(carry));
  const __m256i steps = _mm256_set1_epi64x(static_cast<int64_t>(step));
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const __m256i v = RunningSums(_mm256_add_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i)), steps));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(x + i), _mm256_add_epi64(v, sum));
    sum = _mm256_add_epi64(sum, _mm256_permute4x64_epi64(v, 0xFF));
  }
  carry = static_cast<uint64_t>(_mm256_extract_epi64(sum, 0));
  for (; i < n; ++i) x[i] = carry += x[i] + step;
}

VARVE_AVX2 void ToDoubleAvx2(const uint64_t* x, size_t n, uint64_t add, double divisor, double* out) {
  const __m256i adds = _mm256_set1_epi64x(static_cast<int64_t>(add));
  const __m256d divisors = _mm256_set1_pd(divisor);
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const __m256d v = Convert(_mm256_add_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i)), adds));
    _mm256_storeu_pd(out + i, divisor == 1 ? v : _mm256_div_pd(v, divisors));
  }
  ToDoublePlain(x + i, n - i, add, divisor, out + i);
}

template <bool kSum, bool kDivide>
VARVE_AVX2_INLINE void FusedAvx2(const char* packed, int w, size_t n, uint64_t first, uint64_t base, double divisor,
                                 double* out) {
  const __m256i mask = _mm256_set1_epi64x((int64_t{1} << w) - 1);
  const __m256i shift0 = _mm256_set_epi64x(3 * w, 2 * w, w, 0);
  const __m256i shift1 = _mm256_add_epi64(shift0, _mm256_set1_epi64x(4 * w & 7));
  const int at = 4 * w >> 3;
  const __m256i bases = _mm256_set1_epi64x(static_cast<int64_t>(base));
  const __m256d divisors = _mm256_set1_pd(divisor);
  __m256i sum = _mm256_set1_epi64x(static_cast<int64_t>(first));
  for (size_t i = 0; i < n; i += 8, packed += w) {
    const __m256i word0 = _mm256_set1_epi64x(static_cast<int64_t>(Load(packed)));
    const __m256i word1 = _mm256_set1_epi64x(static_cast<int64_t>(Load(packed + at)));
    __m256i v0 = _mm256_add_epi64(_mm256_and_si256(_mm256_srlv_epi64(word0, shift0), mask), bases);
    __m256i v1 = _mm256_add_epi64(_mm256_and_si256(_mm256_srlv_epi64(word1, shift1), mask), bases);
    if (kSum) {
      v0 = RunningSums(v0);
      v1 = RunningSums(v1);
      const __m256i middle = _mm256_add_epi64(sum, _mm256_permute4x64_epi64(v0, 0xFF));
      v0 = _mm256_add_epi64(v0, sum);
      sum = _mm256_add_epi64(middle, _mm256_permute4x64_epi64(v1, 0xFF));
      v1 = _mm256_add_epi64(v1, middle);
    }
    __m256d d0 = Convert(v0), d1 = Convert(v1);
    if (kDivide) {
      d0 = _mm256_div_pd(d0, divisors);
      d1 = _mm256_div_pd(d1, divisors);
    }
    if (i + 8 <= n) {
      _mm256_storeu_pd(out + i, d0);
      _mm256_storeu_pd(out + i + 4, d1);
    } else {
      double last[8];
      _mm256_storeu_pd(last, d0);
      _mm256_storeu_pd(last + 4, d1);
      std::memcpy(out + i, last, (n - i) * sizeof(double));
    }
  }
}

VARVE_AVX2 void PackedToDoubleAvx2(const char* packed, int w, size_t n, uint64_t base, double divisor, double* out) {
  if (divisor == 1) return FusedAvx2<false, false>(packed, w, n, 0, base, divisor, out);
  FusedAvx2<false, true>(packed, w, n, 0, base, divisor, out);
}
VARVE_AVX2 void DeltasToDoubleAvx2(const char* packed, int w, size_t n, uint64_t first, uint64_t base, double divisor,
                                   double* out) {
  if (divisor == 1) return FusedAvx2<true, false>(packed, w, n, first, base, divisor, out);
  FusedAvx2<true, true>(packed, w, n, first, base, divisor, out);
}
#endif
}  // namespace

const Kernels& PlainKernels() {
  static constexpr Kernels kPlain{UnpackPlain,         PrefixSumPlain,      ToDoublePlain,
                                  PackedToDoublePlain, DeltasToDoublePlain, VARVE_LOOP_NAMES(Plain)};
  return kPlain;
}

const Kernels& BestKernels() {
#if defined(__x86_64__)
  static constexpr Kernels kAvx2{UnpackAvx2,         PrefixSumAvx2,      ToDoubleAvx2,
                                 PackedToDoubleAvx2, DeltasToDoubleAvx2, VARVE_LOOP_NAMES(Avx2)};
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi2") != 0;
  if (has_avx2) return kAvx2;
#endif
  return PlainKernels();
}

}  // namespace varve::codec
