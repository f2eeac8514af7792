#pragma once
// Doubles that people wrote as decimals, turned back to integers: v is m / 10^e exactly, i.e. dividing the one exact
// double by the other gives v's very bits. No rounding survives that test.
#include <bit>
#include <cstdint>
#include <span>

#include "storage/codec/format.h"
#include "storage/codec/kernels.h"

namespace varve::codec {

inline constexpr double kPowersOfTen[kExponentMax + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                          1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                          1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// False: v is not m / 10^e for any |m| up to 2^53 (2^62 when e is 0).
bool ToMantissa(double v, int e, int64_t& m);
// The least e from `from` on for which ToMantissa works, or -1.
int LeastExponent(double v, int from);
// Integers of a sub-block at one exponent. Values without one take that of a neighbour, and are listed.
struct Decimals {
  int e = 0;
  size_t exceptions = 0;
  uint8_t exception_at[kBlock];
};

// Fills m[0, n). False: more than `exceptions_max` values (or all of them) are no such decimals.
bool ToDecimals(std::span<const double> values, int e, size_t exceptions_max, uint64_t* m, Decimals& out);
// The same for values that are all known to be decimals of at most e digits. False: some are large, ask ToDecimals.
bool ToSmallDecimals(std::span<const double> values, int e, uint64_t* m, Decimals& out, const Kernels& kernels);

// Exponents worth a try, the least that serves all decimals first. False: mostly not decimals.
struct Exponents {
  int all = 0;
  int most = -1;       // a smaller one that serves nearly all, or -1
  bool exact = false;  // every value is a decimal
};
bool FindExponents(std::span<const double> values, size_t exceptions_max, const Kernels& kernels, Exponents& out);

}  // namespace varve::codec
