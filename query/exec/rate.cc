// rate, increase, delta with extrapolation to the window's edges; irate and idelta; changes and resets.
#include <algorithm>
#include <cmath>

#include "query/exec/float_kernels.h"
#include "query/exec/histogram_ops.h"
#include "query/exec/range_kernels.h"
#include "query/exec/rate_math.h"
#include "storage/base/strings.h"

namespace varve::exec {
namespace {

using model::ResetHint;

// Whether sample i began a new count, going by start times: its start is known, lies before its own time, and after the
// sample before; or at that sample, unless that one has the same start.
bool StartedAnew(std::span<const int64_t> t, std::span<const int64_t> st, size_t i) {
  if (st.empty() || st[i] == 0 || st[i] >= t[i]) return false;
  return st[i] > t[i - 1] || (st[i] == t[i - 1] && st[i] != st[i - 1]);
}

void WarnOverlaps(std::span<const int64_t> t, std::span<const int64_t> st, KernelCall& call) {
  for (size_t i = 1; i < st.size(); ++i) {
    if (st[i] != 0 && st[i] < t[i - 1] && st[i] != st[i - 1]) {
      call.WarnMetric(text::kStartOverlap);
      return;
    }
  }
}

double FloatIncrease(std::span<const int64_t> t, std::span<const double> v, std::span<const int64_t> st, bool counter) {
  double increase = v.back() - v.front();
  if (!counter) return increase;
  for (size_t i = 1; i < v.size(); ++i) {
    if (v[i] < v[i - 1] || StartedAnew(t, st, i)) increase += v[i - 1];
  }
  return increase;
}

}  // namespace

HistogramPtr HistogramIncrease(std::span<const int64_t> t, std::span<const HistogramPtr> h, std::span<const int64_t> st,
                               bool counter, KernelCall& call) {
  HistogramPtr before = h.front();
  const HistogramPtr& last = h.back();
  if (counter && (before->hint == ResetHint::kGauge || last->hint == ResetHint::kGauge)) {
    call.WarnMetric(text::kNotCounter);
  }
  const auto reset = [&](size_t i, const model::Histogram& previous) {
    return model::DetectReset(previous, *h[i]) || StartedAnew(t, st, i);
  };
  bool custom = UsesCustom(before);
  if (counter && h.size() > 1 && reset(1, *before)) {
    // The first sample only counts as what was before the reset, which is not in the window; its layout is irrelevant.
    auto zero = std::make_shared<model::Histogram>();
    zero->schema = h[1]->schema;
    zero->custom_values = h[1]->custom_values;
    custom = UsesCustom(h[1]);
    before = std::move(zero);
  }
  if (UsesCustom(last) != custom) {
    call.WarnMetric(text::kMixedSchemas);
    return nullptr;
  }
  for (size_t i = 1; counter && i + 1 < h.size(); ++i) {
    if (h[i]->hint == ResetHint::kGauge) call.WarnMetric(text::kNotCounter);
    if (UsesCustom(h[i]) != custom) {
      call.WarnMetric(text::kMixedSchemas);
      return nullptr;
    }
  }
  model::Combined notes;
  HistogramPtr result = SubHistograms(last, before, notes);
  if (result == nullptr) {
    call.WarnMetric(text::kMixedSchemas);
    return nullptr;
  }
  if (notes.bounds_reconciled) call.Info(base::StrCat(text::kMismatchedBounds, "subtraction"));
  if (counter) {
    model::Combined added;
    for (size_t i = 1; i < h.size(); ++i) {
      const bool nulled = i == 1 && before != h.front();
      if (!nulled && reset(i, *h[i - 1])) {
        result = AddHistograms(result, h[i - 1], added);
        if (result == nullptr) {
          call.WarnMetric(text::kMixedSchemas);
          return nullptr;
        }
      }
    }
    if (added.bounds_reconciled) call.Info(base::StrCat(text::kMismatchedBounds, "addition"));
  } else if (h.front()->hint != ResetHint::kGauge || last->hint != ResetHint::kGauge) {
    call.WarnMetric(text::kNotGauge);
  }
  return CompactHistogram(WithHint(result, ResetHint::kGauge));
}

void CheckCounterName(KernelCall& call) {
  const std::string_view name = call.metric();
  if (call.context.flags().type_and_unit_labels) {
    const std::string_view type = call.labels.Get("__type__");
    if (type != "counter" && type != "histogram") {
      call.Info(base::StrCat(text::kMightNotBeCounterType, ", got ", base::QuoteGo(type), ": ", base::QuoteGo(name)));
    }
    return;
  }
  if (name.empty() || name.ends_with("_total") || name.ends_with("_sum") || name.ends_with("_count") ||
      name.ends_with("_bucket")) {
    return;
  }
  call.InfoMetric(text::kMightNotBeCounter);
}

namespace {

// Increase over the window with extrapolation to its edges.
void Extrapolated(const Window& w, KernelCall& call, bool counter, bool per_second, size_t step, Column& out) {
  if (counter && !w.t.empty()) CheckCounterName(call);
  if (!w.t.empty() && !w.ht.empty()) return call.WarnMetric(text::kMixedFloatsHistogramsFor);
  const bool floats = !w.t.empty();
  const auto& t = floats ? w.t : w.ht;
  const auto& st = floats ? w.st : w.hst;
  if (counter) WarnOverlaps(t, st, call);
  // The count is known to have been zero inside the window: no extrapolation to the left, and the first value is
  // growth.
  const bool started_inside = counter && !st.empty() && st[0] != 0 && st[0] > w.start_ms && st[0] < t[0];
  if (t.size() < 2 && !started_inside) return;

  double increase = 0, first = 0;
  HistogramPtr histogram;
  if (floats) {
    increase = FloatIncrease(t, w.v, st, counter);
    first = w.v.front();
    if (started_inside) increase += first;
  } else {
    if (t.size() < 2) {
      histogram = WithHint(w.h.front(), ResetHint::kGauge);
    } else {
      histogram = HistogramIncrease(t, w.h, st, counter, call);
      if (histogram == nullptr) return;
      if (started_inside) {
        model::Combined notes;
        histogram = AddHistograms(histogram, w.h.front(), notes);
        if (histogram == nullptr) return call.WarnMetric(text::kMixedSchemas);
      }
    }
    increase = histogram->count;
    first = w.h.front()->count;
  }
  const ExtrapolationEdges edges = Edges(t.front(), t.back(), t.size(), w.start_ms, w.end_ms);
  double factor = 0;
  if (started_inside) {
    const double sampled = static_cast<double>(t.back() - st[0]) / 1000;
    factor = (sampled + edges.to_end) / sampled;
  } else {
    double to_start = edges.to_start;
    if (counter && increase > 0 && first >= 0) to_start = std::min(to_start, edges.sampled * (first / increase));
    factor = (edges.sampled + to_start + edges.to_end) / edges.sampled;
  }
  if (per_second) factor /= call.range_seconds;
  if (floats) {
    out.SetFloat(step, increase * factor);
  } else {
    out.SetHistogram(step, ScaleHistogram(histogram, factor));
  }
}

// The change between the last two samples of whatever kind.
void LastChange(const Window& w, KernelCall& call, bool counter, size_t step, Column& out) {
  if (counter && !w.t.empty()) CheckCounterName(call);
  if (w.size() < 2) return;
  const size_t nf = w.t.size(), nh = w.ht.size();
  const bool last_float = nh == 0 || (nf > 0 && w.t[nf - 1] > w.ht[nh - 1]);
  bool before_float = false;
  if (last_float) {
    before_float = nf >= 2 && (nh == 0 || w.t[nf - 2] > w.ht[nh - 1]);
  } else {
    before_float = nf >= 1 && (nh < 2 || w.t[nf - 1] > w.ht[nh - 2]);
  }
  if (last_float != before_float) return call.WarnMetric(text::kMixedFloatsHistogramsFor);
  if (last_float) {
    const double last = w.v[nf - 1], before = w.v[nf - 2];
    if (counter && !w.st.empty()) {
      WarnOverlaps(w.t.subspan(nf - 2), w.st.subspan(nf - 2), call);
    }
    const bool reset = counter && (last < before || StartedAnew(w.t, w.st, nf - 1));
    const double seconds = static_cast<double>(w.t[nf - 1] - w.t[nf - 2]) / 1000;
    const double change = reset ? last : last - before;
    out.SetFloat(step, counter ? change / seconds : change);
    return;
  }
  const HistogramPtr &last = w.h[nh - 1], &before = w.h[nh - 2];
  if (counter && (last->hint == ResetHint::kGauge || before->hint == ResetHint::kGauge)) {
    call.WarnMetric(text::kNotCounter);
  }
  if (!counter && (last->hint != ResetHint::kGauge || before->hint != ResetHint::kGauge)) {
    call.WarnMetric(text::kNotGauge);
  }
  HistogramPtr change = last;
  if (!counter || !(model::DetectReset(*before, *last) || StartedAnew(w.ht, w.hst, nh - 1))) {
    model::Combined notes;
    change = SubHistograms(last, before, notes);
    if (change == nullptr) return call.WarnMetric(text::kMixedSchemas);
    if (notes.bounds_reconciled) call.Info(base::StrCat(text::kMismatchedBounds, "subtraction"));
  }
  change = CompactHistogram(WithHint(change, ResetHint::kGauge));
  if (counter) change = DivideHistogram(change, static_cast<double>(w.ht[nh - 1] - w.ht[nh - 2]) / 1000);
  out.SetHistogram(step, std::move(change));
}

// Walks floats and histograms together in time order; a change between the two kinds counts.
template <class SameKind>
double CountTransitions(const Window& w, SameKind same_kind) {
  double count = 0;
  size_t f = 0, h = 0;
  enum { kStart, kWasFloat, kWasHistogram } state = kStart;
  while (f < w.t.size() || h < w.ht.size()) {
    const bool is_float = h == w.ht.size() || (f < w.t.size() && w.t[f] < w.ht[h]);
    if (state != kStart) {
      const bool was_float = state == kWasFloat;
      count += was_float != is_float || same_kind(is_float, is_float ? f : h) ? 1 : 0;
    }
    state = is_float ? kWasFloat : kWasHistogram;
    ++(is_float ? f : h);
  }
  return count;
}

}  // namespace

void RateKernel(const Window& w, KernelCall& call, size_t step, Column& out) {
  Extrapolated(w, call, true, true, step, out);
}
void IncreaseKernel(const Window& w, KernelCall& call, size_t step, Column& out) {
  Extrapolated(w, call, true, false, step, out);
}
void DeltaKernel(const Window& w, KernelCall& call, size_t step, Column& out) {
  Extrapolated(w, call, false, false, step, out);
}
void IrateKernel(const Window& w, KernelCall& call, size_t step, Column& out) { LastChange(w, call, true, step, out); }
void IdeltaKernel(const Window& w, KernelCall& call, size_t step, Column& out) {
  LastChange(w, call, false, step, out);
}

void ChangesKernel(const Window& w, KernelCall&, size_t step, Column& out) {
  if (w.ht.empty()) return out.SetFloat(step, ChangesOf(w.v));
  out.SetFloat(step, CountTransitions(w, [&](bool is_float, size_t i) {
                 if (!is_float) return !model::Equals(*w.h[i], *w.h[i - 1]);
                 return w.v[i] != w.v[i - 1] && !(std::isnan(w.v[i]) && std::isnan(w.v[i - 1]));
               }));
}

void ResetsKernel(const Window& w, KernelCall&, size_t step, Column& out) {
  if (w.ht.empty() && w.st.empty()) return out.SetFloat(step, ResetsOf(w.v));
  out.SetFloat(step, CountTransitions(w, [&](bool is_float, size_t i) {
                 if (is_float) return w.v[i] < w.v[i - 1] || StartedAnew(w.t, w.st, i);
                 return model::DetectReset(*w.h[i - 1], *w.h[i]) || StartedAnew(w.ht, w.hst, i);
               }));
}

}  // namespace varve::exec
