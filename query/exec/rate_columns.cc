#include "query/exec/rate_columns.h"

#include <cmath>

#include "query/exec/float_kernels.h"
#include "query/exec/rate_math.h"

namespace varve::exec {
namespace {

class RateColumn : public ColumnKernel {
 public:
  RateColumn(bool counter, bool per_second) : counter_(counter), per_second_(per_second) {}

  void Prepare(std::span<const int64_t> t, const Windows& w, const RangeGeometry& geometry) override {
    steps_.clear();
    range_seconds_ = static_cast<double>(geometry.range_ms) / 1000;
    any_ = false;
    for (size_t i = 0; i < w.lo.size(); ++i) {
      any_ |= w.hi[i] > w.lo[i];
      if (w.hi[i] < w.lo[i] + 2) continue;
      const uint32_t first = w.lo[i], last = w.hi[i] - 1;
      const ExtrapolationEdges edges = Edges(t[first], t[last], last - first + 1, geometry.Start(i), geometry.End(i));
      double factor = (edges.sampled + edges.to_start + edges.to_end) / edges.sampled;
      if (per_second_) factor /= range_seconds_;
      steps_.push_back({static_cast<uint32_t>(i), first, last, edges, factor});
    }
  }

  void Run(std::span<const int64_t>, std::span<const double> v, const Windows&, KernelCall& call,
           Column& out) override {
    if (counter_ && any_) CheckCounterName(call);
    resets_.clear();
    if (counter_) {
      bool any = false;
      for (size_t i = 1; i < v.size(); ++i) any |= v[i] < v[i - 1];
      for (size_t i = 1; any && i < v.size(); ++i) {
        if (v[i] < v[i - 1]) resets_.push_back(static_cast<uint32_t>(i));
      }
    }
    size_t reset = 0;  // first reset behind the window's first sample
    for (const Step& step : steps_) {
      const double first = v[step.first];
      double increase = v[step.last] - first;
      if (!resets_.empty()) {
        while (reset < resets_.size() && resets_[reset] <= step.first) ++reset;
        for (size_t r = reset; r < resets_.size() && resets_[r] <= step.last; ++r) increase += v[resets_[r] - 1];
      }
      double factor = step.factor;
      if (counter_ && increase > 0 && first >= 0) {
        const double to_zero = step.edges.sampled * (first / increase);
        if (to_zero < step.edges.to_start) {
          factor = (step.edges.sampled + to_zero + step.edges.to_end) / step.edges.sampled;
          if (per_second_) factor /= range_seconds_;
        }
      }
      out.values[step.index] = increase * factor;
      out.kinds[step.index] = kFloat;
    }
  }

 private:
  struct Step {
    uint32_t index, first, last;
    ExtrapolationEdges edges;
    double factor;  // when the series did not start inside the window
  };
  const bool counter_, per_second_;
  double range_seconds_ = 0;
  bool any_ = false;
  std::vector<Step> steps_;  // with two samples or more
  std::vector<uint32_t> resets_;
};

template <bool kMax>
void SlidingExtreme(std::span<const double> v, std::span<const uint32_t> lo, std::span<const uint32_t> hi,
                    Column& out) {
  // Positions whose values get worse from front to back; the front is the best of the window. NaN is worse than all.
  std::vector<uint32_t> queue;
  size_t front = 0;
  uint32_t next = 0;
  const auto worse = [](double a, double b) {  // a may be forgotten once b is there
    return std::isnan(a) || (kMax ? a < b : a > b);
  };
  for (size_t i = 0; i < lo.size(); ++i) {
    for (next = std::max(next, lo[i]); next < hi[i]; ++next) {
      while (queue.size() > front && worse(v[queue.back()], v[next])) queue.pop_back();
      queue.push_back(next);
    }
    while (front < queue.size() && queue[front] < lo[i]) ++front;
    if (hi[i] > lo[i]) out.SetFloat(i, v[queue[front]]);
  }
}

template <bool kMax>
class ExtremeColumn : public ColumnKernel {
 public:
  void Prepare(std::span<const int64_t>, const Windows&, const RangeGeometry&) override {}
  void Run(std::span<const int64_t>, std::span<const double> v, const Windows& w, KernelCall&, Column& out) override {
    SlidingExtreme<kMax>(v, w.lo, w.hi, out);
  }
};

template <double (*kFunction)(std::span<const double>)>
class RescanColumn : public ColumnKernel {
 public:
  void Prepare(std::span<const int64_t>, const Windows&, const RangeGeometry&) override {}
  void Run(std::span<const int64_t>, std::span<const double> v, const Windows& w, KernelCall&, Column& out) override {
    for (size_t i = 0; i < w.lo.size(); ++i) {
      if (w.hi[i] > w.lo[i]) out.SetFloat(i, kFunction(v.subspan(w.lo[i], w.hi[i] - w.lo[i])));
    }
  }
};

double CountOf(std::span<const double> v) { return static_cast<double>(v.size()); }
double OneOf(std::span<const double>) { return 1; }
double LastOf(std::span<const double> v) { return v.back(); }
double FirstOf(std::span<const double> v) { return v.front(); }

}  // namespace

void SlidingMin(std::span<const double> v, std::span<const uint32_t> lo, std::span<const uint32_t> hi, Column& out) {
  SlidingExtreme<false>(v, lo, hi, out);
}
void SlidingMax(std::span<const double> v, std::span<const uint32_t> lo, std::span<const uint32_t> hi, Column& out) {
  SlidingExtreme<true>(v, lo, hi, out);
}

std::unique_ptr<ColumnKernel> FindColumnKernel(std::string_view function) {
  if (function == "rate") return std::make_unique<RateColumn>(true, true);
  if (function == "increase") return std::make_unique<RateColumn>(true, false);
  if (function == "delta") return std::make_unique<RateColumn>(false, false);
  if (function == "min_over_time") return std::make_unique<ExtremeColumn<false>>();
  if (function == "max_over_time") return std::make_unique<ExtremeColumn<true>>();
  if (function == "sum_over_time") return std::make_unique<RescanColumn<SumOf>>();
  if (function == "avg_over_time") return std::make_unique<RescanColumn<MeanOf>>();
  if (function == "count_over_time") return std::make_unique<RescanColumn<CountOf>>();
  if (function == "present_over_time") return std::make_unique<RescanColumn<OneOf>>();
  if (function == "last_over_time") return std::make_unique<RescanColumn<LastOf>>();
  if (function == "first_over_time") return std::make_unique<RescanColumn<FirstOf>>();
  return nullptr;
}

}  // namespace varve::exec
