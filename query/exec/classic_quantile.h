#pragma once
// Quantiles and fractions of classic histograms: cumulative counts under rising bounds.
#include <vector>

namespace varve::exec {

struct ClassicBucket {
  double upper = 0;
  double count = 0;  // cumulative
};

struct ClassicQuantile {
  double value = 0;
  // Counts that fell were levelled: bounds of the buckets concerned and the largest fall.
  bool levelled = false;
  double low = 0, high = 0, difference = 0;
};
// The buckets are sorted and changed.
ClassicQuantile QuantileOfClassic(double q, std::vector<ClassicBucket>& buckets);
double FractionOfClassic(double lower, double upper, std::vector<ClassicBucket>& buckets);

}  // namespace varve::exec
