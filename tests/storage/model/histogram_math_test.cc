#include "storage/model/histogram_math.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>

#include "storage/base/dice.h"

namespace varve::model {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Histogram Exponential(int32_t schema, int32_t offset, std::vector<double> buckets, double sum = 0) {
  Histogram h;
  h.schema = schema;
  h.sum = sum;
  for (const double b : buckets) h.count += b;
  h.positive_spans = {{offset, static_cast<uint32_t>(buckets.size())}};
  h.positive_buckets = std::move(buckets);
  return h;
}

Histogram Custom(std::vector<double> bounds, std::vector<double> buckets, double sum = 0) {
  Histogram h = Exponential(kCustomBucketsSchema, 0, std::move(buckets), sum);
  h.custom_values = std::move(bounds);
  return h;
}

std::vector<double> Counts(const Histogram& h) {
  std::vector<double> counts;
  for (BucketIterator it(h, BucketIterator::Which::kAll); it.Next();) counts.push_back(it.at().count);
  return counts;
}

TEST_CASE("bounds are powers of two to the last bit") {
  for (int32_t schema = kExponentialSchemaMin; schema <= kExponentialSchemaMax; ++schema) {
    for (int64_t index = -1100; index <= 1100; ++index) {
      const long double exponent = std::ldexp(static_cast<long double>(index), -schema);
      if (exponent < -1022 || exponent >= 1024) continue;
      const auto want = static_cast<double>(std::exp2(exponent));
      const double bound = UpperBound(index, schema, {});
      INFO(schema << " " << index);
      REQUIRE(bound >= std::nextafter(want, 0));
      REQUIRE(bound <= std::nextafter(want, kInf));
      if (index % (int64_t{1} << std::max(schema, 0)) == 0) REQUIRE(bound == want);
    }
  }
  CHECK(UpperBound(1024, 0, {}) == std::numeric_limits<double>::max());
  CHECK(UpperBound(1025, 0, {}) == kInf);
  CHECK(UpperBound(64, -4, {}) == std::numeric_limits<double>::max());
  CHECK(UpperBound(65, -4, {}) == kInf);
  CHECK(UpperBound(1024 * 256, 8, {}) == std::numeric_limits<double>::max());
  CHECK(UpperBound(std::numeric_limits<int64_t>::max(), 3, {}) == kInf);
  CHECK(UpperBound(std::numeric_limits<int64_t>::min(), -3, {}) == 0);
  const std::vector<double> custom = {1, 5};
  CHECK(UpperBound(-1, kCustomBucketsSchema, custom) == -kInf);
  CHECK(UpperBound(1, kCustomBucketsSchema, custom) == 5);
  CHECK(UpperBound(2, kCustomBucketsSchema, custom) == kInf);
}

TEST_CASE("iterators go both ways over gaps and empty spans") {
  Histogram h;
  h.schema = 0;
  h.positive_spans = {{-2, 1}, {0, 0}, {3, 2}, {1, 0}};
  h.positive_buckets = {1, 2, 3};
  h.negative_spans = {{1, 2}};
  h.negative_buckets = {4, 5};
  h.zero_threshold = 0.001;
  h.zero_count = 6;
  const auto walk = [&h](BucketIterator::Which which, BucketIterator::Order order) {
    std::vector<std::pair<double, double>> seen;
    for (BucketIterator it(h, which, order); it.Next();) seen.emplace_back(it.at().upper, it.at().count);
    return seen;
  };
  using Which = BucketIterator::Which;
  using Order = BucketIterator::Order;
  const std::vector<std::pair<double, double>> positive = {{0.25, 1}, {4, 2}, {8, 3}};
  const std::vector<std::pair<double, double>> negative = {{-1, 4}, {-2, 5}};
  std::vector<std::pair<double, double>> all = {{-2, 5}, {-1, 4}, {0.001, 6}, {0.25, 1}, {4, 2}, {8, 3}};
  CHECK(walk(Which::kPositive, Order::kForward) == positive);
  CHECK(walk(Which::kNegative, Order::kForward) == negative);
  CHECK(walk(Which::kAll, Order::kForward) == all);
  const auto reversed = [](auto v) { return std::reverse(v.begin(), v.end()), v; };
  CHECK(walk(Which::kPositive, Order::kReverse) == reversed(positive));
  CHECK(walk(Which::kNegative, Order::kReverse) == reversed(negative));
  CHECK(walk(Which::kAll, Order::kReverse) == reversed(all));
  h.positive_buckets.pop_back();  // fewer counts than spans promise: no overrun
  CHECK(walk(Which::kPositive, Order::kReverse).size() == 2);
  CHECK(walk(Which::kPositive, Order::kForward).size() == 2);
}

TEST_CASE("a wide zero bucket cuts its neighbours") {
  Histogram h = Exponential(0, 1, {4});
  h.zero_threshold = 1.5;
  h.zero_count = 1;
  BucketIterator it(h, BucketIterator::Which::kAll);
  REQUIRE(it.Next());
  REQUIRE(it.Next());
  CHECK(it.at().lower == 1.5);
  CHECK(it.at().upper == 2);
}

TEST_CASE("compaction drops empty buckets and keeps small gaps when asked") {
  Histogram h = Exponential(0, 0, {0, 1, 0, 0, 2, 0, 3, 0});
  Histogram tight = h;
  Compact(tight);
  CHECK(tight.positive_spans == std::vector<Span>{{1, 1}, {2, 1}, {1, 1}});
  CHECK(tight.positive_buckets == std::vector<double>{1, 2, 3});
  Compact(h, 1);
  CHECK(h.positive_spans == std::vector<Span>{{1, 1}, {2, 3}});
  CHECK(h.positive_buckets == std::vector<double>{1, 2, 0, 3});
  CHECK(Equals(h, tight));
}

TEST_CASE("lower resolution sums neighbours and keeps every observation") {
  const Histogram h = Exponential(1, -3, {1, 2, 3, 4, 5, 6});  // indexes -3 to 2
  const Histogram low = CopyToSchema(h, 0);
  CHECK(low.positive_spans == std::vector<Span>{{-1, 3}});  // -3 and -2; -1 and 0; 1 and 2
  CHECK(low.positive_buckets == std::vector<double>{3, 7, 11});
  Histogram limited = h;
  CHECK(ReduceToLimit(limited, 2));
  CHECK(limited.positive_buckets.size() <= 2);
  CHECK(limited.count == h.count);
  CHECK_FALSE(ReduceToLimit(limited, 0));
}

TEST_CASE("addition goes to the lower resolution") {
  Histogram a = Exponential(0, 1, {3, 4}, 10);
  const Histogram b = Exponential(1, 1, {1, 1, 5}, 2.5);  // (1,1.41] (1.41,2] (2,2.83]
  const Combined result = Add(a, b);
  CHECK(result.compatible);
  CHECK(a.schema == 0);
  CHECK(a.count == 14);
  CHECK(a.sum == 12.5);
  CHECK(Counts(a) == std::vector<double>{5, 9});
  Histogram c = b;
  Add(c, Exponential(0, 1, {3, 4}, 10));
  CHECK(Equals(a, c));
}

TEST_CASE("addition equals that of a map of buckets") {
  base::Dice dice(1);
  for (int round = 0; round < 300; ++round) {
    const auto make = [&dice] {
      std::vector<double> buckets(1 + dice.Below(12));
      for (double& v : buckets) v = static_cast<double>(dice.Below(5));
      Histogram h = Exponential(static_cast<int32_t>(dice.Between(-2, 3)), static_cast<int32_t>(dice.Between(-9, 9)),
                                std::move(buckets));
      if (dice.OneIn(2)) Compact(h);
      return h;
    };
    const Histogram a = make(), b = make();
    const int32_t schema = std::min(a.schema, b.schema);
    std::map<double, double> want, got;
    for (const Histogram* h : {&a, &b}) {
      for (BucketIterator it(*h, BucketIterator::Which::kPositive); it.Next();) {
        if (it.at().count == 0) continue;
        // the bucket of the coarser schema that ends at or above this one's end
        int64_t index = -100;
        while (UpperBound(index, schema, {}) < it.at().upper) ++index;
        want[UpperBound(index, schema, {})] += it.at().count;
      }
    }
    Histogram sum = a;
    Add(sum, b);
    for (BucketIterator it(sum, BucketIterator::Which::kPositive); it.Next();) {
      if (it.at().count != 0) got[it.at().upper] += it.at().count;
    }
    REQUIRE(got == want);
    REQUIRE(sum.count == a.count + b.count);
    HistogramSum compensated;
    compensated.Add(a);
    compensated.Add(b);
    REQUIRE(Equals(compensated.Total(), sum));
    Subtract(sum, b);
    Compact(sum);
    Histogram back = CopyToSchema(a, schema);
    Compact(back);
    REQUIRE(Equals(sum, back));
  }
}

TEST_CASE("zero thresholds are reconciled to the edge of a populated bucket") {
  Histogram a = Exponential(0, 0, {7, 2, 3}, 20);  // (0.5,1] (1,2] (2,4]
  a.zero_threshold = 0.25;
  a.zero_count = 1;
  a.count += 1;
  Histogram b = Exponential(0, 2, {5}, 15);  // (2,4]
  b.zero_threshold = 1.5;
  b.zero_count = 10;
  b.count += 10;
  Histogram sum = a;
  Add(sum, b);
  CHECK(sum.zero_threshold == 2);  // 1.5 cuts (1,2], which holds 2
  CHECK(sum.zero_count == 20);
  CHECK(Counts(sum) == std::vector<double>{20, 8});
  CHECK(sum.count == 28);
  Histogram other = b;
  Add(other, a);
  CHECK(Equals(sum, other));
  // An empty bucket may be cut.
  a.positive_buckets[1] = 0;
  sum = a;
  Add(sum, b);
  CHECK(sum.zero_threshold == 1.5);
  CHECK(sum.zero_count == 18);
}

TEST_CASE("negative buckets move the zero threshold as well") {
  Histogram a;
  a.negative_spans = {{1, 2}};
  a.negative_buckets = {3, 4};
  a.count = 7;
  Histogram b;
  b.zero_threshold = 1.25;
  b.zero_count = b.count = 1;
  Add(a, b);
  CHECK(a.zero_threshold == 2);
  CHECK(a.zero_count == 4);
  CHECK(a.negative_spans == std::vector<Span>{{2, 1}});
}

TEST_CASE("custom bounds are reconciled to those shared") {
  Histogram a = Custom({1, 2, 5, 10}, {1, 2, 3, 4, 5}, 60);
  const Histogram b = Custom({2, 3, 10}, {10, 20, 30, 40}, 700);
  const Combined result = Add(a, b);
  CHECK(result.compatible);
  CHECK(result.bounds_reconciled);
  CHECK(a.custom_values == std::vector<double>{2, 10});
  CHECK(a.positive_buckets == std::vector<double>{13, 57, 45});
  CHECK(a.count == 115);
  CHECK_FALSE(Add(a, Custom({2, 10}, {1, 1, 1})).bounds_reconciled);
  Histogram c = Custom({1}, {1, 2});
  CHECK(Add(c, Custom({7}, {3, 4})).bounds_reconciled);
  CHECK(c.custom_values.empty());
  CHECK(c.positive_buckets == std::vector<double>{10});
  const Histogram before = c;
  CHECK_FALSE(Add(c, Exponential(0, 0, {1})).compatible);
  CHECK(Identical(before, c));
}

TEST_CASE("hints combine by rank and tell of conflicts") {
  using H = ResetHint;
  bool conflict = false;
  for (const H h : {H::kUnknown, H::kReset, H::kNotReset, H::kGauge}) {
    CHECK(CombineHints(h, h, &conflict) == h);
    CHECK(CombineHints(h, H::kGauge, &conflict) == H::kGauge);
    CHECK(CombineHints(H::kGauge, h, &conflict) == H::kGauge);
    if (h != H::kGauge) CHECK(CombineHints(H::kUnknown, h, &conflict) == H::kUnknown);
  }
  CHECK_FALSE(conflict);
  CHECK(CombineHints(H::kReset, H::kNotReset, &conflict) == H::kUnknown);
  CHECK(conflict);
  Histogram a = Exponential(0, 0, {1}), b = a;
  a.hint = H::kReset;
  b.hint = H::kNotReset;
  CHECK(Add(a, b).reset_conflict);
  CHECK(a.hint == H::kUnknown);
  CHECK_FALSE(Subtract(a, b).reset_conflict);
  CHECK(a.hint == H::kGauge);
}

TEST_CASE("scaling by nothing and by less than nothing") {
  Histogram h = Exponential(0, 0, {3, 6}, 33);
  h.zero_count = 3;
  Histogram third = h;
  Divide(third, 3);
  CHECK(third.positive_buckets == std::vector<double>{1, 2});
  CHECK(third.sum == 11);
  CHECK(third.hint == ResetHint::kUnknown);
  Multiply(third, -1);
  CHECK(third.sum == -11);
  CHECK(third.hint == ResetHint::kGauge);
  Divide(h, 0);
  CHECK(h.positive_buckets.empty());
  CHECK(h.count == kInf);
  CHECK(h.zero_count == kInf);
  CHECK(HasOverflow(h));
}

TEST_CASE("sums keep what large numbers would swallow") {
  HistogramSum sum;
  for (const double v : {1.0, 1e100, 1.0, -1e100}) sum.Add(Exponential(0, 0, {v}, v));
  CHECK(sum.Total().sum == 2);
  CHECK(sum.Total().positive_buckets == std::vector<double>{2});
  // across layouts too
  HistogramSum mixed;
  mixed.Add(Exponential(0, 0, {1}, 1));
  mixed.Add(Exponential(0, 0, {1e100, 5}, 1e100));
  mixed.Add(Exponential(0, 0, {1}, 1));
  mixed.Add(Exponential(0, -1, {4, -1e100}, -1e100));
  CHECK(mixed.Total().positive_buckets == std::vector<double>{4, 2, 5});
}

TEST_CASE("means survive an overflow of the sum") {
  HistogramMean mean;
  for (const double v : {1e308, 1.2e308, 1.7e308}) mean.Add(Exponential(0, 0, {v}, 6));
  CHECK(mean.Mean().count == Approx(1.3e308));
  CHECK(mean.Mean().sum == Approx(6));
  HistogramMean plain;
  plain.Add(Exponential(0, 0, {1}, 1));
  plain.Add(Exponential(0, 0, {4}, 2));
  CHECK(plain.Mean().count == 2.5);
  CHECK_FALSE(plain.Add(Custom({1}, {1, 1})).compatible);
  CHECK(plain.Mean().sum == 1.5);
}

TEST_CASE("resets are seen in the order of the rules") {
  const Histogram base = Exponential(1, 0, {4, 5, 6}, 10);
  CHECK_FALSE(DetectReset(base, base));
  Histogram next = base;
  next.count = 14;
  CHECK(DetectReset(base, next));
  next.hint = ResetHint::kNotReset;
  CHECK_FALSE(DetectReset(base, next));
  next = base;
  next.hint = ResetHint::kReset;
  CHECK(DetectReset(base, next));
  next = base;
  next.hint = ResetHint::kGauge;
  CHECK_FALSE(DetectReset(base, next));
  next = base;
  next.positive_buckets = {4, 4, 7};  // one bucket fell, the count did not
  CHECK(DetectReset(base, next));
  CHECK(DetectReset(base, Exponential(1, 0, {15, 5})));        // a populated bucket is gone
  CHECK(DetectReset(base, Exponential(2, 0, {15, 5, 6, 9})));  // finer
  Histogram coarse = CopyToSchema(base, 0);
  CHECK_FALSE(DetectReset(base, coarse));
  coarse.positive_buckets.back() -= 1;
  coarse.positive_buckets.front() += 1;
  CHECK(DetectReset(base, coarse));
  CHECK(DetectReset(base, Custom({1, 2}, {90, 90, 90})));
}

TEST_CASE("resets and the zero bucket") {
  Histogram before = Exponential(0, 0, {4, 5});  // (0.5,1] (1,2]
  before.zero_threshold = 0.25;
  before.zero_count = 2;
  before.count += 2;
  Histogram next = Exponential(0, 1, {5});
  next.zero_threshold = 1;
  next.zero_count = 6;
  next.count = 11;
  CHECK_FALSE(DetectReset(before, next));
  next.zero_count = 5;  // 2 + 4 were there
  next.positive_buckets = {6};
  CHECK(DetectReset(before, next));
  next.zero_count = 6;
  next.positive_buckets = {5};
  next.zero_threshold = 0.75;  // cuts a populated bucket
  CHECK(DetectReset(before, next));
  CHECK(DetectReset(next, before));  // narrower
}

TEST_CASE("layout does not matter for resets") {
  base::Dice dice(5);
  int resets = 0;
  for (int round = 0; round < 500; ++round) {
    const auto make = [&dice](double bias) {
      std::vector<double> buckets(6);
      for (double& v : buckets) v = bias + static_cast<double>(dice.Below(3));
      Histogram h = Exponential(0, 0, std::move(buckets));
      h.zero_count = static_cast<double>(dice.Below(2));
      h.count = 100;
      return h;
    };
    const Histogram before = make(0), after = make(static_cast<double>(dice.Below(3)));
    Histogram loose_before = before, loose_after = after;
    loose_before.positive_spans = {{0, 2}, {0, 0}, {0, 4}};  // the same buckets in other spans
    Compact(loose_after);
    const bool reset = DetectReset(before, after);
    resets += reset;
    REQUIRE(DetectReset(loose_before, after) == reset);
    REQUIRE(DetectReset(before, loose_after) == reset);
  }
  CHECK(resets > 50);
  CHECK(resets < 450);
}

TEST_CASE("resets between custom bounds look at those shared") {
  const Histogram before = Custom({2, 4, 6}, {1, 2, 5, 7});
  CHECK(DetectReset(before, Custom({2, 3, 4, 6}, {1, 0, 1, 5, 8})));
  CHECK_FALSE(DetectReset(before, Custom({2, 3, 4, 6}, {1, 1, 1, 5, 7})));
  CHECK_FALSE(DetectReset(before, Custom({}, {15})));
}

TEST_CASE("quantiles interpolate on the scale of their buckets") {
  const Histogram h = Exponential(0, 0, {1, 2, 1}, 5);  // (0.5,1] (1,2] (2,4]
  CHECK(Quantile(0.5, h).value == Approx(std::sqrt(2.0)).epsilon(1e-14));
  CHECK(Quantile(0, h).value == Approx(0.5));
  CHECK(Quantile(1, h).value == Approx(4));
  CHECK(Quantile(-0.1, h).value == -kInf);
  CHECK(Quantile(1.1, h).value == kInf);
  CHECK(std::isnan(Quantile(kNan, h).value));
  CHECK(std::isnan(Quantile(0.5, Histogram()).value));
  Histogram mirrored = h;
  std::swap(mirrored.positive_spans, mirrored.negative_spans);
  std::swap(mirrored.positive_buckets, mirrored.negative_buckets);
  for (const double q : {0.1, 0.25, 0.6, 0.9}) {
    CHECK(Quantile(q, mirrored).value == Approx(-Quantile(1 - q, h).value).epsilon(1e-12));
  }
  Histogram zero = Exponential(0, 0, {6});
  zero.zero_threshold = 0.01;
  zero.zero_count = 4;
  zero.count = 10;
  CHECK(Quantile(0.1, zero).value == Approx(0.0025));  // one-sided
  zero.negative_spans = {{0, 1}};
  zero.negative_buckets = {0};
  CHECK(Quantile(0.1, zero).value == Approx(-0.005));
}

TEST_CASE("quantiles of custom buckets") {
  const Histogram h = Custom({5, 10}, {1, 2, 1}, 5);
  CHECK(Quantile(0.5, h).value == 7.5);
  CHECK(Quantile(0.1, h).value == 2);    // the first begins at 0
  CHECK(Quantile(0.99, h).value == 10);  // the last has no end
  CHECK(Quantile(0.1, Custom({-5, 10}, {1, 2, 1})).value == -5);
}

TEST_CASE("observations of NaN") {
  Histogram h = Exponential(0, 0, {12}, kNan);
  h.count = 15;
  CHECK(std::isnan(Quantile(0.81, h).value));
  CHECK(Quantile(0.81, h).nan_result);
  CHECK(Quantile(0.8, h).value == Approx(1));
  CHECK(Quantile(0.8, h).nan_skewed);
  CHECK(Fraction(-kInf, kInf, h).value == Approx(0.8));
  CHECK(Fraction(-kInf, std::sqrt(0.5), h).value == Approx(0.4));
  CHECK(Fraction(-kInf, kInf, h).nan_excluded);
  Histogram only;
  only.sum = kNan;
  only.count = 3;
  CHECK(Fraction(-kInf, kInf, only).value == 0);
  CHECK(Quantile(0, only).nan_result);
}

TEST_CASE("fractions undo quantiles") {
  Histogram h = Exponential(0, 0, {2, 3, 0, 1, 4}, 100);
  h.negative_spans = {{0, 3}};
  h.negative_buckets = {1, 0, 5};
  h.zero_threshold = 0.001;
  h.zero_count = 2;
  h.count = 18;
  for (double q = 0.05; q < 1; q += 0.07) {
    INFO(q);
    CHECK(Fraction(-kInf, Quantile(q, h).value, h).value == Approx(q).epsilon(1e-12));
  }
  CHECK(Fraction(1, 2, h).value == Approx(3.0 / 18));
  CHECK(Fraction(2, 1, h).value == 0);
  CHECK(Fraction(3, 3, h).value == 0);
  CHECK(std::isnan(Fraction(kNan, 3, h).value));
  CHECK(std::isnan(Fraction(0, 1, Histogram()).value));
}

TEST_CASE("the variance is that of the middles") {
  const Histogram h = Exponential(0, 1, {2, 2}, 4 * std::sqrt(2.0) * 1.5);  // at sqrt(2) and 2 sqrt(2)
  CHECK(Average(h) == Approx(1.5 * std::sqrt(2.0)));
  CHECK(Variance(h) == Approx(0.5));
  CHECK(std::isnan(Variance(Histogram())));
}

TEST_CASE("trimming estimates count and sum anew") {
  Histogram h = Exponential(0, 0, {2, 4, 8}, 1000);
  Histogram same = h;
  TrimAbove(same, 4);
  CHECK(Identical(same, h));
  Histogram below = h, above = h;
  TrimAbove(below, 2);
  CHECK(below.count == 6);
  CHECK(below.sum == Approx(2 * std::sqrt(0.5) + 4 * std::sqrt(2.0)));
  TrimBelow(above, 2);
  CHECK(above.count == 8);
  CHECK(above.sum == Approx(8 * std::sqrt(8.0)));
  TrimAbove(h, std::sqrt(2.0));
  CHECK(h.count == Approx(4));
  CHECK(h.positive_buckets.back() == Approx(2));
  for (const double cut : {-kInf, 0.3, 0.7, 1.5, 3.0, 9.0, kInf}) {
    const Histogram whole = Exponential(0, 0, {2, 4, 8}, 1000);
    Histogram low = whole, high = whole;
    TrimAbove(low, cut);
    TrimBelow(high, cut);
    CHECK(low.count + high.count == Approx(14));
    CHECK(low.count / 14 == Approx(Fraction(-kInf, cut, whole).value));
  }
}

TEST_CASE("trimming where bounds are infinite") {
  const Histogram h = Custom({-5, 5}, {1, 10, 100}, 33);
  const auto trimmed = [&h](auto trim, double cut) {
    Histogram copy = h;
    trim(copy, cut);
    return std::pair(copy.count, copy.sum);
  };
  CHECK(trimmed(TrimAbove, 20) == std::pair(11.0, -5.0));
  CHECK(trimmed(TrimAbove, kInf) == std::pair(111.0, 33.0));
  CHECK(trimmed(TrimAbove, -10) == std::pair(1.0, -10.0));
  CHECK(trimmed(TrimAbove, -kInf) == std::pair(0.0, 0.0));
  CHECK(trimmed(TrimBelow, -10) == std::pair(110.0, 500.0));
  CHECK(trimmed(TrimBelow, 20) == std::pair(100.0, 2000.0));
  CHECK(trimmed(TrimBelow, -kInf) == std::pair(111.0, 33.0));
  Histogram one = Custom({}, {100}, 7);
  TrimBelow(one, 10);
  CHECK(one.count == 0);
}

TEST_CASE("histograms as text") {
  Histogram h = Exponential(0, 0, {1, 0, 2}, 5);
  h.count = 4;
  h.zero_count = 1;
  h.zero_threshold = 0.001;
  h.negative_spans = {{1, 2}};
  h.negative_buckets = {0.5, 3e7};
  CHECK(ToString(h) == "{count:4, sum:5, [-4,-2):3e+07, [-2,-1):0.5, [-0.001,0.001]:1, (0.5,1]:1, (2,4]:2}");
  CHECK(ToString(Custom({1}, {1, 2}, -kInf)) == "{count:3, sum:-Inf, [-Inf,1]:1, (1,+Inf]:2}");
}

TEST_CASE("spans at the ends of the integers survive arithmetic") {
  Histogram a;
  a.positive_spans = {{std::numeric_limits<int32_t>::min(), 1},
                      {std::numeric_limits<int32_t>::max(), 1},
                      {std::numeric_limits<int32_t>::max(), 1}};
  a.positive_buckets = {1, 0, 2};
  a.count = 3;
  Histogram b = a;
  Compact(b);
  CHECK(Equals(a, b));
  Add(a, Exponential(0, 0, {5}));
  CHECK(a.count == 8);
  double total = 0;
  for (const double c : a.positive_buckets) total += c;
  CHECK(total == 8);
}

}  // namespace
}  // namespace varve::model
