#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "query/exec/classic_quantile.h"
#include "query/exec/float_kernels.h"
#include "query/exec/kahan.h"
#include "query/exec/rate_columns.h"
#include "query/exec/selector.h"
#include "storage/base/dice.h"

namespace varve::exec {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

bool Same(double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

TEST_CASE("a compensated sum keeps what a plain one loses", "[exec]") {
  CHECK(SumOf(std::vector<double>{1e100, 1, -1e100}) == 1);
  CHECK(SumOf(std::vector<double>{kInf, 1, 2}) == kInf);
  CHECK(std::isnan(SumOf(std::vector<double>{kInf, -kInf})));
}

TEST_CASE("a mean survives the overflow of its sum", "[exec]") {
  const double max = std::numeric_limits<double>::max();
  CHECK(MeanOf(std::vector<double>{max, max, max}) == Approx(max));
  CHECK(MeanOf(std::vector<double>{max, -max}) == 0);
  CHECK(MeanOf(std::vector<double>{1, 2, 3, 4}) == 2.5);
}

TEST_CASE("quantiles interpolate and put NaN lowest", "[exec]") {
  CHECK(QuantileOf(0.5, std::vector<double>{3, 1, 2}) == 2);
  CHECK(QuantileOf(0.25, std::vector<double>{4, 1, 3, 2}) == 1.75);
  CHECK(QuantileOf(1, std::vector<double>{kNan, 5}) == 5);
  CHECK(std::isnan(QuantileOf(0, std::vector<double>{kNan, 5})));
  CHECK(QuantileOf(-0.1, std::vector<double>{1}) == -kInf);
  CHECK(QuantileOf(1.1, std::vector<double>{1}) == kInf);
  CHECK(std::isnan(QuantileOf(kNan, std::vector<double>{1})));
  CHECK(std::isnan(QuantileOf(0.5, {})));
}

TEST_CASE("a constant series has no slope and an infinite one no line", "[exec]") {
  const std::vector<int64_t> t = {0, 1000, 2000};
  CHECK(RegressionOf(t, std::vector<double>{1e18, 1e18, 1e18}, 0).slope == 0);
  CHECK(std::isnan(RegressionOf(t, std::vector<double>{kInf, kInf, kInf}, 0).slope));
  const Line line = RegressionOf(t, std::vector<double>{1, 3, 5}, 1000);
  CHECK(line.slope == Approx(2));
  CHECK(line.intercept == Approx(3));
}

TEST_CASE("sliding extremes equal scans of every window", "[exec]") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    base::Dice dice(seed);
    std::vector<double> v(dice.Below(40) + 1);
    for (double& x : v) x = dice.Below(10) == 0 ? kNan : static_cast<double>(dice.Below(8)) - 4;
    std::vector<uint32_t> lo, hi;
    uint32_t low = 0, high = 0;
    for (int i = 0; i < 30; ++i) {
      low = std::min<uint32_t>(low + static_cast<uint32_t>(dice.Below(3)), static_cast<uint32_t>(v.size()));
      high = std::max(low,
                      std::min<uint32_t>(high + static_cast<uint32_t>(dice.Below(4)), static_cast<uint32_t>(v.size())));
      lo.push_back(low);
      hi.push_back(high);
    }
    Column min, max;
    min.Reset(lo.size());
    max.Reset(lo.size());
    SlidingMin(v, lo, hi, min);
    SlidingMax(v, lo, hi, max);
    for (size_t i = 0; i < lo.size(); ++i) {
      const std::span<const double> window = std::span<const double>(v).subspan(lo[i], hi[i] - lo[i]);
      REQUIRE((min.kinds[i] == kNone) == window.empty());
      if (window.empty()) continue;
      REQUIRE(Same(min.values[i], MinOf(window)));
      REQUIRE(Same(max.values[i], MaxOf(window)));
    }
  }
}

TEST_CASE("the lookback is open on the left", "[exec]") {
  std::vector<int32_t> positions;
  LookbackPositions({1000, 2000}, {999, 1000, 1500, 2000, 6999, 7000}, 5000, positions);
  CHECK(positions == std::vector<int32_t>{-1, 0, 0, 1, 1, -1});
  LookbackPositions({}, {1, 2}, 5000, positions);
  CHECK(positions == std::vector<int32_t>{-1, -1});
}

TEST_CASE("classic quantiles level what falls and say so", "[exec]") {
  std::vector<ClassicBucket> buckets = {{0.1, 20}, {1, 10}, {10, 50}, {100, 40}, {1000, 90}, {kInf, 80}};
  const ClassicQuantile answer = QuantileOfClassic(0.5, buckets);
  CHECK(answer.levelled);
  CHECK(answer.low == 1);
  CHECK(answer.high == kInf);
  CHECK(answer.difference == 10);
  CHECK(answer.value == Approx(8.5));
  std::vector<ClassicBucket> unbounded = {{1, 5}, {2, 6}};
  CHECK(std::isnan(QuantileOfClassic(0.5, unbounded).value));
  std::vector<ClassicBucket> twice = {{1, 2}, {1, 3}, {kInf, 10}};
  CHECK(QuantileOfClassic(0.5, twice).value == 1);
}

TEST_CASE("classic fractions do not divide an infinitely wide bucket", "[exec]") {
  std::vector<ClassicBucket> buckets = {{-3, 10}, {-2, 12}, {kInf, 100}};
  CHECK(FractionOfClassic(-4, -2, buckets) == Approx(0.02));
  CHECK(FractionOfClassic(-kInf, kInf, buckets) == 1);
  CHECK(FractionOfClassic(2, 1, buckets) == 0);
  CHECK(std::isnan(FractionOfClassic(kNan, 1, buckets)));
}

}  // namespace
}  // namespace varve::exec
