#pragma once
// What flows between operators: the values of one series at every step of the query.
#include <cstdint>
#include <memory>
#include <vector>

#include "storage/model/histogram.h"

namespace varve::exec {

using HistogramPtr = std::shared_ptr<const model::Histogram>;

// The times at which an operator is evaluated: start + i * step for i < steps.
struct Grid {
  int64_t start_ms = 0, step_ms = 0;
  size_t steps = 1;
  int64_t At(size_t i) const { return start_ms + static_cast<int64_t>(i) * step_ms; }
};

enum Kind : uint8_t { kNone = 0, kFloat = 1, kHistogram = 2 };

// values[i] counts when kinds[i] is kFloat, histograms[i] when it is kHistogram. `histograms` is empty as long as there
// has been none since the last Reset, so that float queries never touch it.
struct Column {
  std::vector<double> values;
  std::vector<uint8_t> kinds;
  std::vector<HistogramPtr> histograms;

  size_t size() const { return kinds.size(); }
  void Reset(size_t steps) {
    values.resize(steps);
    kinds.assign(steps, kNone);
    histograms.clear();
  }
  void SetFloat(size_t i, double v) {
    values[i] = v;
    kinds[i] = kFloat;
  }
  void SetHistogram(size_t i, HistogramPtr h) {
    if (histograms.empty()) histograms.resize(kinds.size());
    histograms[i] = std::move(h);
    kinds[i] = kHistogram;
  }
  bool has_histograms() const { return !histograms.empty(); }
  // Takes over the value that `from` has at step j.
  void CopyFrom(size_t i, const Column& from, size_t j) {
    if (from.kinds[j] == kFloat) {
      SetFloat(i, from.values[j]);
    } else if (from.kinds[j] == kHistogram) {
      SetHistogram(i, from.histograms[j]);
    } else {
      kinds[i] = kNone;
    }
  }
  bool AllEmpty() const {
    for (const uint8_t kind : kinds) {
      if (kind != kNone) return false;
    }
    return true;
  }
  size_t Bytes() const {
    return values.capacity() * sizeof(double) + kinds.capacity() + histograms.capacity() * sizeof(HistogramPtr);
  }
};

}  // namespace varve::exec
