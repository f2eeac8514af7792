#pragma once
// Series as exporters make them, from a seed.
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "storage/base/dice.h"
#include "storage/model/sample.h"

namespace varve::codec {

inline const std::vector<std::string>& ShapeNames() {
  static const std::vector<std::string> names = {
      "zero",     "constant",     "constant-third", "counter",   "steady counter", "counter with resets", "gauge",
      "decimal1", "decimal3",     "temperature",    "sparse",    "sparse-third",   "random mantissa",     "float32",
      "sum",      "random bits",  "nan payloads",   "stale end", "infinities",     "minus zero",          "denormals",
      "huge",     "large counts", "mixed decimals", "ramp",      "alternating"};
  return names;
}

inline std::vector<double> MakeShape(size_t shape, size_t n, uint64_t seed) {
  base::Dice dice(seed * 1000 + shape);
  const std::string& name = ShapeNames()[shape];
  std::vector<double> v(n);
  double at = static_cast<double>(dice.Below(1'000'000));
  const double rate = static_cast<double>(1 + dice.Below(10'000));
  for (size_t i = 0; i < n; ++i) {
    const double jitter = static_cast<double>(dice.Below(static_cast<uint64_t>(rate) / 4 + 1));
    double& x = v[i];
    if (name == "zero") x = 0;
    if (name == "constant") x = 1234567;
    if (name == "constant-third") x = 1.0 / 3;
    if (name == "counter") x = at += rate + jitter;
    if (name == "steady counter") x = at += rate;
    if (name == "counter with resets") x = at = dice.OneIn(40) ? 0 : at + rate + jitter;
    if (name == "gauge") x = at += static_cast<double>(dice.Between(-40, 40));
    if (name == "decimal1") x = static_cast<double>(dice.Between(200, 950)) / 10;
    if (name == "decimal3") x = static_cast<double>(dice.Between(-20'000, 20'000)) / 1000;
    if (name == "temperature") x = (at += static_cast<double>(dice.Between(-2, 2))) / 100;
    if (name == "sparse") x = at += dice.OneIn(20) ? static_cast<double>(dice.Between(-5, 500)) : 0;
    if (name == "sparse-third") x = (at += dice.OneIn(20) ? 1 : 0) / 3;
    if (name == "random mantissa") x = 1 + dice.Unit();
    if (name == "float32") x = static_cast<double>(static_cast<float>(100 * dice.Unit()));
    if (name == "sum") x = at += 0.1 * static_cast<double>(dice.Below(100)) + 0.0137;
    if (name == "random bits") x = std::bit_cast<double>(dice.Next());
    if (name == "nan payloads") x = dice.OneIn(9) ? std::bit_cast<double>(0x7ff8000000000000u | dice.Below(1000)) : 7.5;
    if (name == "stale end") x = i + 1 == n ? model::StaleNan() : at += rate;
    if (name == "infinities") x = dice.OneIn(5) ? (dice.OneIn(2) ? 1 : -1) * std::bit_cast<double>(0x7ffull << 52) : 3;
    if (name == "minus zero") x = dice.OneIn(3) ? -0.0 : 0.0;
    if (name == "denormals") x = std::bit_cast<double>(dice.Below(1u << 20));
    if (name == "huge") x = 1e300 * dice.Unit();
    if (name == "large counts") x = 0x1p53 - 1000 + static_cast<double>(dice.Below(3000));
    if (name == "mixed decimals")
      x = dice.OneIn(30) ? 0.1 + 0.2 : static_cast<double>(dice.Below(1000)) / (i % 3 ? 10 : 1000);
    if (name == "ramp") x = at += static_cast<double>(i);
    if (name == "alternating") x = i % 2 ? 15 : -7.25;
  }
  return v;
}

}  // namespace varve::codec
