#include "query/exec/classic_quantile.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace varve::exec {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// Differences between neighbours that only stem from rounding.
bool AlmostEqual(double a, double b) {
  constexpr double kTolerance = 1e-12;
  if (a == b) return true;
  const double difference = std::fabs(a - b), size = std::fabs(a) + std::fabs(b);
  if (a == 0 || b == 0 || size < std::numeric_limits<double>::min()) {
    return difference < kTolerance * std::numeric_limits<double>::min();
  }
  return difference / std::fmin(size, std::numeric_limits<double>::max()) < kTolerance;
}

// Sorted, with equal bounds (le="1" and le="1.0") summed. False when there is no infinite bucket.
bool Arrange(std::vector<ClassicBucket>& buckets) {
  if (buckets.empty()) return false;
  std::stable_sort(buckets.begin(), buckets.end(),
                   [](const ClassicBucket& a, const ClassicBucket& b) { return a.upper < b.upper; });
  if (buckets.back().upper != kInf) return false;
  size_t last = 0;
  for (size_t i = 1; i < buckets.size(); ++i) {
    if (buckets[i].upper == buckets[last].upper) {
      buckets[last].count += buckets[i].count;
    } else {
      buckets[++last] = buckets[i];
    }
  }
  buckets.resize(last + 1);
  return true;
}

void Level(std::vector<ClassicBucket>& buckets, ClassicQuantile& out) {
  double before = buckets[0].count;
  for (size_t i = 1; i < buckets.size(); ++i) {
    double& count = buckets[i].count;
    if (count == before) continue;
    if (AlmostEqual(before, count)) {
      count = before;
      continue;
    }
    if (count < before) {
      const double bound = buckets[i].upper;
      out.low = out.levelled ? std::fmin(out.low, bound) : bound;
      out.high = out.levelled ? std::fmax(out.high, bound) : bound;
      out.difference = std::fmax(out.difference, before - count);
      out.levelled = true;
      count = before;
    }
    before = count;
  }
}

}  // namespace

ClassicQuantile QuantileOfClassic(double q, std::vector<ClassicBucket>& buckets) {
  ClassicQuantile out;
  out.value = kNan;
  if (buckets.empty() || std::isnan(q)) return out;
  if (q < 0 || q > 1) {
    out.value = q < 0 ? -kInf : kInf;
    return out;
  }
  if (!Arrange(buckets)) return out;
  Level(buckets, out);
  const size_t n = buckets.size();
  if (n < 2 || buckets.back().count == 0) return out;
  double rank = q * buckets.back().count;
  size_t b = 0;
  while (b < n - 1 && !(buckets[b].count >= rank)) ++b;
  if (b == n - 1) {
    out.value = buckets[n - 2].upper;
    return out;
  }
  if (b == 0 && buckets[0].upper <= 0) {
    out.value = buckets[0].upper;
    return out;
  }
  double start = 0, count = buckets[b].count;
  if (b > 0) {
    start = buckets[b - 1].upper;
    count -= buckets[b - 1].count;
    rank -= buckets[b - 1].count;
  }
  out.value = start + (buckets[b].upper - start) * (rank / count);
  return out;
}

double FractionOfClassic(double lower, double upper, std::vector<ClassicBucket>& buckets) {
  if (!Arrange(buckets) || std::isnan(lower) || std::isnan(upper)) return kNan;
  ClassicQuantile ignored;
  Level(buckets, ignored);
  const double total = buckets.back().count;
  if (total == 0) return kNan;
  if (lower >= upper) return 0;
  double rank = 0, ranks[2] = {0, 0};
  bool set[2] = {false, false};
  const double limits[2] = {lower, upper};
  for (size_t i = 0; i < buckets.size() && !(set[0] && set[1]); ++i) {
    const double from = i == 0 ? -kInf : buckets[i - 1].upper, to = buckets[i].upper;
    for (int k = 0; k < 2; ++k) {
      if (set[k]) continue;
      if (from >= limits[k]) {
        ranks[k] = rank;
        set[k] = true;
      } else if (to > limits[k]) {
        // The first bucket starts at zero, unless it ends below: then it is infinitely wide and is not divided.
        const double start = i == 0 ? 0 : from;
        ranks[k] = i == 0 && to <= 0 ? buckets[i].count
                                     : rank + (buckets[i].count - rank) * (limits[k] - start) / (to - start);
        set[k] = true;
      }
    }
    rank = buckets[i].count;
  }
  for (int k = 0; k < 2; ++k) {
    if (!set[k] || ranks[k] > total) ranks[k] = total;
  }
  return (ranks[1] - ranks[0]) / total;
}

}  // namespace varve::exec
