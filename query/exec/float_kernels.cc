#include "query/exec/float_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "query/exec/kahan.h"

namespace varve::exec {

double SumOf(std::span<const double> v) {
  KahanSum sum;
  for (const double x : v) sum.Add(x);
  return sum.Value();
}

double MeanOf(std::span<const double> v) {
  KahanMean mean;
  for (const double x : v) mean.Add(x);
  return mean.Value();
}

double MinOf(std::span<const double> v) {
  double best = v[0];
  for (const double x : v) {
    if (x < best || std::isnan(best)) best = x;
  }
  return best;
}

double MaxOf(std::span<const double> v) {
  double best = v[0];
  for (const double x : v) {
    if (x > best || std::isnan(best)) best = x;
  }
  return best;
}

double VarianceOf(std::span<const double> v) {
  KahanSum mean, squares;
  double count = 0;
  for (const double x : v) {
    ++count;
    const double delta = x - (mean.sum + mean.compensation);
    mean.Add(delta / count);
    squares.Add(delta * (x - (mean.sum + mean.compensation)));
  }
  return (squares.sum + squares.compensation) / count;
}

double MedianDeviationOf(std::span<const double> v) {
  for (const double x : v) {
    if (std::isnan(x)) return x;
  }
  std::vector<double> copy(v.begin(), v.end());
  const double median = QuantileInPlace(0.5, copy);
  for (size_t i = 0; i < v.size(); ++i) copy[i] = std::fabs(v[i] - median);
  return QuantileInPlace(0.5, copy);
}

double ChangesOf(std::span<const double> v) {
  double changes = 0;
  for (size_t i = 1; i < v.size(); ++i) {
    if (v[i] != v[i - 1] && !(std::isnan(v[i]) && std::isnan(v[i - 1]))) ++changes;
  }
  return changes;
}

double ResetsOf(std::span<const double> v) {
  double resets = 0;
  for (size_t i = 1; i < v.size(); ++i) resets += v[i] < v[i - 1] ? 1 : 0;
  return resets;
}

double QuantileInPlace(double q, std::span<double> v) {
  if (v.empty() || std::isnan(q)) return std::numeric_limits<double>::quiet_NaN();
  if (q < 0) return -std::numeric_limits<double>::infinity();
  if (q > 1) return std::numeric_limits<double>::infinity();
  const auto less = [](double a, double b) { return std::isnan(a) ? !std::isnan(b) : a < b; };
  const auto n = static_cast<double>(v.size());
  const double rank = q * (n - 1);
  const auto lower = static_cast<size_t>(std::max(0.0, std::floor(rank)));
  const size_t upper = std::min(v.size() - 1, lower + 1);
  const double weight = rank - std::floor(rank);
  std::nth_element(v.begin(), v.begin() + static_cast<ptrdiff_t>(lower), v.end(), less);
  const double low = v[lower];
  const double high =
      upper == lower ? low : *std::min_element(v.begin() + static_cast<ptrdiff_t>(upper), v.end(), less);
  return low * (1 - weight) + high * weight;
}

double QuantileOf(double q, std::span<const double> v) {
  std::vector<double> copy(v.begin(), v.end());
  return QuantileInPlace(q, copy);
}

Line RegressionOf(std::span<const int64_t> t, std::span<const double> v, int64_t origin_ms) {
  KahanSum x_sum, y_sum, xy_sum, xx_sum;
  bool constant = true;
  for (size_t i = 0; i < v.size(); ++i) {
    constant = constant && v[i] == v[0];
    const double x = static_cast<double>(t[i] - origin_ms) / 1000;
    x_sum.Add(x);
    y_sum.Add(v[i]);
    xy_sum.Add(x * v[i]);
    xx_sum.Add(x * x);
  }
  if (constant) {
    if (std::isinf(v[0])) {
      return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
    }
    return {0, v[0]};
  }
  const auto n = static_cast<double>(v.size());
  const double x = x_sum.sum + x_sum.compensation, y = y_sum.sum + y_sum.compensation;
  const double covariance = xy_sum.sum + xy_sum.compensation - x * y / n;
  const double variance = xx_sum.sum + xx_sum.compensation - x * x / n;
  const double slope = covariance / variance;
  return {slope, y / n - slope * x / n};
}

double SmoothedOf(std::span<const double> v, double smoothing, double trend) {
  double before = 0, level = v[0], slope = v[1] - v[0];
  for (size_t i = 1; i < v.size(); ++i) {
    if (i > 1) slope = trend * (level - before) + (1 - trend) * slope;
    const double next = smoothing * v[i] + (1 - smoothing) * (level + slope);
    before = level;
    level = next;
  }
  return level;
}

double ResetCorrection(std::span<const double> v) {
  double correction = 0;
  for (size_t i = 1; i < v.size(); ++i) {
    if (v[i] < v[i - 1]) correction += v[i - 1];
  }
  return correction;
}

}  // namespace varve::exec
