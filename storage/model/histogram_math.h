#pragma once
// What PromQL does with native histograms: addition, scaling, resolution, resets, quantiles, trimming. Values in,
// values out. Functions that can meet something a user should hear of say so with flags; the words are the query
// engine's. Bucket bounds are exact (a table of 2^(k/256) and ldexp), so that they are equal on every machine.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "storage/model/histogram.h"

namespace varve::model {

// --- Bounds and buckets ---

// The upper bound of a bucket on the positive side; its lower bound is that of index - 1. 2^(index * 2^-schema), where
// the last finite bound is the largest double and +Inf lies beyond; for the custom schema custom_values[index], -Inf
// before the first and +Inf after the last.
double UpperBound(int64_t index, int32_t schema, std::span<const double> custom_values);

struct Bucket {
  double lower = 0, upper = 0;
  bool lower_inclusive = false, upper_inclusive = false;
  double count = 0;
  int64_t index = 0;  // 0 for the zero bucket
};

// Walks buckets, those with a count of 0 included. Borrows the histogram.
class BucketIterator {
 public:
  // kPositive and kNegative go by ascending index, that is away from zero. kAll goes by ascending value and includes
  // the zero bucket if it has a count; buckets that overlap it are cut at its edges.
  enum class Which { kPositive, kNegative, kAll };
  enum class Order { kForward, kReverse };
  BucketIterator(const Histogram& histogram, Which which, Order order = Order::kForward);

  bool Next();
  const Bucket& at() const { return bucket_; }

 private:
  struct Side {
    const std::vector<Span>* spans;
    const std::vector<double>* counts;
    bool negative, descending;
    size_t span = 0, left_in_span = 0, position = 0;
    int64_t index = 0;
    bool started = false;
  };
  void StartSide(bool negative, bool descending);
  bool NextOfSide();
  void CutAtZeroBucket();

  const Histogram& histogram_;
  Which which_;
  bool reverse_;
  int stage_ = 0;
  Side side_;
  Bucket bucket_;
};

Bucket ZeroBucket(const Histogram& histogram);

// --- Shape ---

// Drops buckets whose count is 0, except in gaps of at most `empty_max` between others, and joins spans.
void Compact(Histogram& histogram, int empty_max = 0);
// The same histogram at a lower (or the same) exponential schema. Custom buckets stay as they are.
Histogram CopyToSchema(const Histogram& histogram, int32_t schema);
void ReduceToSchema(Histogram& histogram, int32_t schema);
// Lowers the resolution until there are at most `buckets_max` buckets. False when that does not suffice (or buckets are
// custom): the histogram is then as small as it gets.
bool ReduceToLimit(Histogram& histogram, size_t buckets_max);
// Equal in what they mean: layout does not count, nor do empty buckets, hints and the integer mark. NaNs are equal when
// their bits are.
bool Equals(const Histogram& a, const Histogram& b);
// Some count or the sum is infinite.
bool HasOverflow(const Histogram& histogram);

// --- Arithmetic ---

struct Combined {
  bool compatible = true;          // false: exponential met custom buckets, nothing was done
  bool reset_conflict = false;     // a "reset" met a "not reset"
  bool bounds_reconciled = false;  // custom bounds differed; the result has those they share
  void Merge(const Combined& other) {
    compatible &= other.compatible;
    reset_conflict |= other.reset_conflict;
    bounds_reconciled |= other.bounds_reconciled;
  }
};

// Equal hints stay; gauge wins; unknown wins over the others; reset and not_reset become unknown, with a conflict.
ResetHint CombineHints(ResetHint a, ResetHint b, bool* conflict);

// a += b. Resolution goes to the smaller schema, the zero threshold to the larger one (and on, to the edge of a
// populated bucket that it would cut), custom bounds to those that both have.
Combined Add(Histogram& a, const Histogram& b);
// a -= b; the result is a gauge.
Combined Subtract(Histogram& a, const Histogram& b);
// A negative factor makes a gauge. Division by 0 leaves no buckets: only count, sum and zero count can be told.
void Multiply(Histogram& histogram, double factor);
void Divide(Histogram& histogram, double divisor);

// Compensated (Kahan-Neumaier) sum and mean of many histograms, for aggregations.
class HistogramSum {
 public:
  // When incompatible, the sum stays as it was.
  Combined Add(const Histogram& histogram);
  bool empty() const { return count_ == 0; }
  uint64_t count() const { return count_; }
  Histogram Total() const;

 private:
  friend class HistogramMean;
  Histogram sum_, rest_;  // of one layout; rest_ holds what rounding lost
  uint64_t count_ = 0;
};

// As long as the sum does not overflow, the sum divided by the count; from then on a running mean.
class HistogramMean {
 public:
  Combined Add(const Histogram& histogram);
  bool empty() const { return sum_.empty(); }
  Histogram Mean() const;

 private:
  HistogramSum sum_;
  bool running_ = false;  // sum_ holds the mean
};

// True when `next`, which follows `previous`, cannot have grown out of it: the counter began anew in between.
bool DetectReset(const Histogram& previous, const Histogram& next);

// --- Questions ---

struct QuantileAnswer {
  double value = 0;
  bool nan_result = false;  // observations of NaN made the result NaN
  bool nan_skewed = false;  // observations of NaN skewed the result
};
// Interpolates exponentially in exponential buckets; linearly in custom ones and in the zero bucket.
QuantileAnswer Quantile(double q, const Histogram& histogram);

struct FractionAnswer {
  double value = 0;
  bool nan_excluded = false;  // there may be observations of NaN; they are in no fraction
};
// The share of observations in (lower, upper].
FractionAnswer Fraction(double lower, double upper, const Histogram& histogram);

double Average(const Histogram& histogram);   // sum / count
double Variance(const Histogram& histogram);  // of the buckets' middles about the average

// What lies at or below (above) `cut`: buckets beyond it go, the one it cuts is interpolated, count and sum are
// estimated anew from what stays. A cut that touches nothing changes nothing.
void TrimAbove(Histogram& histogram, double cut);  // h </ cut
void TrimBelow(Histogram& histogram, double cut);  // h >/ cut

// Prometheus' text: {count:4, sum:5, (0.5,1]:1, (1,2]:2}
std::string ToString(const Histogram& histogram);

}  // namespace varve::model
