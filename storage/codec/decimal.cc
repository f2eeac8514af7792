#include "storage/codec/decimal.h"

#include <algorithm>

namespace varve::codec {

namespace {
// Adding and subtracting 1.5 * 2^52 rounds to an integer, to even, for anything smaller than 2^51; the sum's bits hold
// the integer itself. The default rounding mode is taken for granted, as everywhere.
constexpr double kMagic = 0x1.8p52;
constexpr double kMagicRange = 0x1p51;

bool SameBits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

bool Exact(double m, double power, double v) { return SameBits(m / power, v); }
}  // namespace

bool ToMantissa(double v, int e, int64_t& m) {
  const double power = kPowersOfTen[e];
  const double scaled = v * power;
  if (!(scaled >= -0x1p62 && scaled <= 0x1p62)) return false;
  m = static_cast<int64_t>(scaled);
  if (e == 0) return SameBits(static_cast<double>(m), v);
  if (scaled > -kMagicRange && scaled < kMagicRange) {
    const double rounded = (scaled + kMagic) - kMagic;
    m = static_cast<int64_t>(rounded);
    return Exact(rounded, power, v);
  }
  // The product's own rounding may have moved it by one.
  constexpr int64_t kMax = int64_t{1} << 53;
  const int64_t middle = m;
  for (const int64_t near : {middle, middle - 1, middle + 1}) {
    if (near >= -kMax && near <= kMax && Exact(static_cast<double>(near), power, v)) return m = near, true;
  }
  return false;
}

int LeastExponent(double v, int from) {
  const double size = v < 0 ? -v : v;
  if (!(size <= 0x1p62)) return -1;
  int64_t m = 0;
  if (from == 0 && ToMantissa(v, 0, m)) return 0;
  // If any exponent serves, the largest that fits does: look there first, since most that fail there are no decimals.
  int most = kExponentMax;
  if (size >= 1) {
    const int binary = static_cast<int>(std::bit_cast<uint64_t>(size) >> 52) - 1023;
    most = std::clamp((54 - binary) * 1233 >> 12, 0, kExponentMax);  // log10(2), rounded up: never too small
  }
  while (most > 0 && size * kPowersOfTen[most] > 0x1p53) --most;
  if (most < from || !ToMantissa(v, most, m)) return -1;
  int e = std::max(from, 1);
  while (e < most && !ToMantissa(v, e, m)) ++e;
  return e;
}

namespace {
// The first value that is no decimal with e digits; the size when all are.
size_t FirstInexact(std::span<const double> values, int e, const Kernels& kernels) {
  size_t i = 0;
  while (true) {
    i += kernels.count_exact(values.data() + i, values.size() - i, kPowersOfTen[e]);
    const size_t end = std::min(values.size(), i + 8);
    int64_t m;
    for (; i < end; ++i) {
      if (!ToMantissa(values[i], e, m)) return i;
    }
    if (i == values.size()) return i;
  }
}
}  // namespace

bool ToSmallDecimals(std::span<const double> values, int e, uint64_t* m, Decimals& out, const Kernels& kernels) {
  out.e = e;
  out.exceptions = 0;
  return kernels.to_integers(values.data(), values.size(), kPowersOfTen[e], m);
}

bool ToDecimals(std::span<const double> values, int e, size_t exceptions_max, uint64_t* m, Decimals& out) {
  out.e = e;
  out.exceptions = 0;
  const size_t n = values.size();
  for (size_t i = 0; i < n; ++i) {
    int64_t exact;
    if (ToMantissa(values[i], e, exact)) {
      m[i] = static_cast<uint64_t>(exact);
    } else {
      if (out.exceptions == exceptions_max) return false;
      out.exception_at[out.exceptions++] = static_cast<uint8_t>(i);
    }
  }
  if (out.exceptions == n) return false;
  // Those before the first decimal take its integer, all others follow the values before.
  size_t lead = 0;
  while (lead < out.exceptions && out.exception_at[lead] == lead) ++lead;
  for (size_t i = 0; i < lead; ++i) m[i] = m[lead];
  for (size_t i = lead; i < out.exceptions; ++i) {
    const size_t at = out.exception_at[i];
    m[at] = m[at - 1];
    // A steady counter goes on as it did, so that its staleness marker does not bend the line.
    if (at >= 3 && m[at - 1] - m[at - 2] == m[at - 2] - m[at - 3]) m[at] += m[at - 1] - m[at - 2];
  }
  return true;
}

namespace {
// Sixteen digits make a decimal of a third, too. Such a value in a series of short decimals is better an exception;
// only where they are many are they taken at their word.
bool IsLong(double v, int e) {
  const double scaled = v * kPowersOfTen[e];
  return e >= 8 && (scaled > 0x1p44 || scaled < -0x1p44);
}

bool FindExponents(std::span<const double> values, size_t exceptions_max, bool take_long, const Kernels& kernels,
                   Exponents& out) {
  const size_t n = values.size();
  int e = 0, before = -1;
  size_t exceptions = 0;
  for (size_t i = 0; i < n; ++i) {
    i += FirstInexact(values.subspan(i), e, kernels);
    if (i == n) break;
    const int higher = LeastExponent(values[i], e);
    if (higher < 0 || (!take_long && IsLong(values[i], higher))) {
      if (++exceptions > exceptions_max) return false;
    } else if (higher > e) {
      before = e;
      e = higher;
    }
  }
  out.all = e;
  out.most = before >= 0 && e - before >= 2 ? before : -1;
  out.exact = exceptions == 0;
  return exceptions < n;
}
}  // namespace

bool FindExponents(std::span<const double> values, size_t exceptions_max, const Kernels& kernels, Exponents& out) {
  return FindExponents(values, exceptions_max, false, kernels, out) ||
         FindExponents(values, exceptions_max, true, kernels, out);
}

}  // namespace varve::codec
