#pragma once
// Functions over the floats of one window, as free functions over spans.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace varve::exec {

struct Line {
  double slope = 0, intercept = 0;
};

// Spans are never empty unless said otherwise.
double SumOf(std::span<const double> v);
double MeanOf(std::span<const double> v);
double MinOf(std::span<const double> v);  // NaN only if there is nothing else
double MaxOf(std::span<const double> v);
double VarianceOf(std::span<const double> v);  // population variance
double MedianDeviationOf(std::span<const double> v);
double ChangesOf(std::span<const double> v);  // NaN to NaN is no change
double ResetsOf(std::span<const double> v);
// Rank q * (n - 1), linear between neighbours, NaN lowest. Empty or q NaN: NaN; q < 0: -Inf; q > 1: +Inf. Sorts in
// place.
double QuantileInPlace(double q, std::span<double> v);
double QuantileOf(double q, std::span<const double> v);
// Least squares over (t - origin) in seconds.
Line RegressionOf(std::span<const int64_t> t, std::span<const double> v, int64_t origin_ms);
// At least two values; 0 < smoothing < 1, 0 < trend < 1.
double SmoothedOf(std::span<const double> v, double smoothing, double trend);
// What the resets inside add to last - first: the value before each drop.
double ResetCorrection(std::span<const double> v);

}  // namespace varve::exec
