#pragma once
// Compensated summation (Neumaier's variant), as Prometheus sums. The order of additions is part of the result.
#include <cmath>

namespace varve::exec {

struct KahanSum {
  double sum = 0, compensation = 0;
  void Add(double v) {
    const double t = sum + v;
    if (std::isinf(t)) {
      compensation = 0;
    } else if (std::fabs(sum) >= std::fabs(v)) {
      compensation += (sum - t) + v;
    } else {
      compensation += (v - t) + sum;
    }
    sum = t;
  }
  double Value() const { return std::isinf(sum) ? sum : sum + compensation; }
};

// The mean as sum / count, until the sum would overflow; from then on an incremental mean.
struct KahanMean {
  KahanSum sum;
  double count = 0;
  bool incremental = false;
  void Add(double v) {
    if (count++ == 0) {
      sum.sum = v;
      return;
    }
    if (!incremental) {
      KahanSum next = sum;
      next.Add(v);
      if (!std::isinf(next.sum)) {
        sum = next;
        return;
      }
      incremental = true;
      sum.sum /= count - 1;
      sum.compensation /= count - 1;
    }
    const double share = (count - 1) / count;
    sum.sum *= share;
    sum.compensation *= share;
    sum.Add(v / count);
  }
  double Value() const {
    if (incremental) return sum.sum + sum.compensation;
    return sum.sum / count + sum.compensation / count;
  }
};

}  // namespace varve::exec
