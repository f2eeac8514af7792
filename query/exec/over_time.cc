// The *_over_time family and its neighbours, and the table of all functions over ranges.
#include <algorithm>
#include <array>
#include <cmath>

#include "query/exec/float_kernels.h"
#include "query/exec/histogram_ops.h"
#include "query/exec/range_kernels.h"
#include "storage/base/strings.h"

namespace varve::exec {
namespace {

bool Mixed(const Window& w) { return !w.t.empty() && !w.ht.empty(); }

// For functions that know only floats: tells of histograms that lie beside them. False when there is no float.
bool FloatsOnly(const Window& w, KernelCall& call) {
  if (w.t.empty()) return false;
  if (!w.ht.empty()) call.InfoMetric(text::kIgnoredInMixedRange);
  return true;
}

void SumKernel(const Window& w, KernelCall& call, size_t step, Column& out) {
  if (Mixed(w)) return call.WarnMetric(text::kMixedFloatsHistogramsFor);
  if (!w.t.empty()) return out.SetFloat(step, SumOf(w.v));
  HistogramFold sum(false);
  for (const HistogramPtr& h : w.h) sum.Add(h);
  sum.Annotate(call.context, call.position, call.metric());
  if (HistogramPtr result = sum.Result(); result != nullptr) out.SetHistogram(step, std::move(result));
}

void AvgKernel(const Window& w, KernelCall& call, size_t step, Column& out) {
  if (Mixed(w)) return call.WarnMetric(text::kMixedFloatsHistogramsFor);
  if (!w.t.empty()) return out.SetFloat(step, MeanOf(w.v));
  HistogramFold mean(true);
  for (const HistogramPtr& h : w.h) mean.Add(h);
  mean.Annotate(call.context, call.position, call.metric());
  if (HistogramPtr result = mean.Result(); result != nullptr) out.SetHistogram(step, std::move(result));
}

void CountKernel(const Window& w, KernelCall&, size_t step, Column& out) {
  out.SetFloat(step, static_cast<double>(w.size()));
}

void PresentKernel(const Window&, KernelCall&, size_t step, Column& out) { out.SetFloat(step, 1); }

void LastKernel(const Window& w, KernelCall&, size_t step, Column& out) {
  if (w.ht.empty() || (!w.t.empty() && w.t.back() > w.ht.back())) {
    out.SetFloat(step, w.v.back());
  } else {
    out.SetHistogram(step, w.h.back());
  }
}

void FirstKernel(const Window& w, KernelCall&, size_t step, Column& out) {
  if (w.ht.empty() || (!w.t.empty() && w.t.front() < w.ht.front())) {
    out.SetFloat(step, w.v.front());
  } else {
    out.SetHistogram(step, w.h.front());
  }
}

template <double (*kFunction)(std::span<const double>)>
void FloatKernel(const Window& w, KernelCall& call, size_t step, Column& out) {
  if (FloatsOnly(w, call)) out.SetFloat(step, kFunction(w.v));
}

double StddevOf(std::span<const double> v) { return std::sqrt(VarianceOf(v)); }

void QuantileKernel(const Window& w, KernelCall& call, size_t step, Column& out) {
  if (!FloatsOnly(w, call)) return;
  const double q = call.parameters[0][step];
  if (std::isnan(q) || q < 0 || q > 1) {
    call.context.annotations().Warn(base::StrCat("quantile value should be between 0 and 1, got ", FormatG(q)),
                                    call.first_position);
  }
  out.SetFloat(step, QuantileOf(q, w.v));
}

void DerivKernel(const Window& w, KernelCall& call, size_t step, Column& out) {
  if (!w.ht.empty() && !w.t.empty()) call.InfoMetric(text::kIgnoredInMixedRange);
  if (w.t.size() < 2) return;
  out.SetFloat(step, RegressionOf(w.t, w.v, w.t[0]).slope);
}

void PredictKernel(const Window& w, KernelCall& call, size_t step, Column& out) {
  if (!w.ht.empty() && !w.t.empty()) call.InfoMetric(text::kIgnoredInMixedRange);
  if (w.t.size() < 2) return;
  const Line line = RegressionOf(w.t, w.v, w.eval_ms);
  out.SetFloat(step, line.slope * call.parameters[0][step] + line.intercept);
}

void SmoothingKernel(const Window& w, KernelCall& call, size_t step, Column& out) {
  const double smoothing = call.parameters[0][step], trend = call.parameters[1][step];
  const auto bad = [&](std::string_view what, std::string_view name, double v) {
    call.status = ExecutionError(
        base::StrCat("invalid ", what, " factor. Expected: 0 < ", name, " < 1, got: ", std::to_string(v)));
  };
  if (!(smoothing > 0 && smoothing < 1)) return bad("smoothing", "sf", smoothing);
  if (!(trend > 0 && trend < 1)) return bad("trend", "tf", trend);
  if (!w.ht.empty() && !w.t.empty()) call.InfoMetric(text::kIgnoredInMixedRange);
  if (w.t.size() < 2) return;
  out.SetFloat(step, SmoothedOf(w.v, smoothing, trend));
}

void FirstTimeKernel(const Window& w, KernelCall&, size_t step, Column& out) {
  int64_t t = w.t.empty() ? w.ht.front() : w.t.front();
  if (!w.ht.empty()) t = std::min(t, w.ht.front());
  out.SetFloat(step, static_cast<double>(t) / 1000);
}

void LastTimeKernel(const Window& w, KernelCall&, size_t step, Column& out) {
  int64_t t = w.t.empty() ? w.ht.back() : w.t.back();
  if (!w.ht.empty()) t = std::max(t, w.ht.back());
  out.SetFloat(step, static_cast<double>(t) / 1000);
}

// The last of several equal extremes counts.
template <bool kMax>
void ExtremeTimeKernel(const Window& w, KernelCall& call, size_t step, Column& out) {
  if (!FloatsOnly(w, call)) return;
  size_t best = 0;
  for (size_t i = 0; i < w.v.size(); ++i) {
    if ((kMax ? w.v[i] >= w.v[best] : w.v[i] <= w.v[best]) || std::isnan(w.v[best])) best = i;
  }
  out.SetFloat(step, static_cast<double>(w.t[best]) / 1000);
}

constexpr std::array kFunctions = {
    RangeFunction{"rate", RateKernel},
    RangeFunction{"increase", IncreaseKernel},
    RangeFunction{"delta", DeltaKernel},
    RangeFunction{"irate", IrateKernel, false, 2},
    RangeFunction{"idelta", IdeltaKernel, false, 2},
    RangeFunction{"changes", ChangesKernel},
    RangeFunction{"resets", ResetsKernel},
    RangeFunction{"sum_over_time", SumKernel},
    RangeFunction{"avg_over_time", AvgKernel},
    RangeFunction{"count_over_time", CountKernel},
    RangeFunction{"present_over_time", PresentKernel},
    RangeFunction{"last_over_time", LastKernel, true},
    RangeFunction{"first_over_time", FirstKernel, true},
    RangeFunction{"min_over_time", FloatKernel<MinOf>},
    RangeFunction{"max_over_time", FloatKernel<MaxOf>},
    RangeFunction{"stdvar_over_time", FloatKernel<VarianceOf>},
    RangeFunction{"stddev_over_time", FloatKernel<StddevOf>},
    RangeFunction{"mad_over_time", FloatKernel<MedianDeviationOf>},
    RangeFunction{"quantile_over_time", QuantileKernel},
    RangeFunction{"deriv", DerivKernel},
    RangeFunction{"predict_linear", PredictKernel},
    RangeFunction{"double_exponential_smoothing", SmoothingKernel},
    RangeFunction{"ts_of_first_over_time", FirstTimeKernel},
    RangeFunction{"ts_of_last_over_time", LastTimeKernel},
    RangeFunction{"ts_of_min_over_time", ExtremeTimeKernel<false>},
    RangeFunction{"ts_of_max_over_time", ExtremeTimeKernel<true>},
};

}  // namespace

const RangeFunction* FindRangeFunction(std::string_view name) {
  const auto found =
      std::find_if(kFunctions.begin(), kFunctions.end(), [&](const RangeFunction& f) { return f.name == name; });
  return found == kFunctions.end() ? nullptr : &*found;
}

}  // namespace varve::exec
