// `anchored` and `smoothed` range selectors: no extrapolation, but a look beyond the window's edges.
#include <algorithm>
#include <cmath>

#include "query/exec/float_kernels.h"
#include "query/exec/histogram_ops.h"
#include "query/exec/range_kernels.h"
#include "storage/base/strings.h"

namespace varve::exec {
namespace {

// Value at `at` on the line between two samples. A counter that was reset in between rose from zero after it: seen from
// the left edge of a window the value starts at zero, seen from the right edge it goes on above the old value.
double Interpolate(int64_t t1, double v1, int64_t t2, double v2, int64_t at, bool counter, bool left_edge) {
  if (counter && v2 < v1) {
    if (left_edge) {
      v1 = 0;
    } else {
      v2 += v1;
    }
  }
  return v1 + (v2 - v1) * static_cast<double>(at - t1) / static_cast<double>(t2 - t1);
}

// [first, last]: first is the last sample at or before the start, else the first one; last is the last sample, or for a
// smoothed window the first one at or after the end. False when nothing lies inside.
bool Bounds(std::span<const int64_t> t, const Window& w, Extension extension, size_t& first, size_t& last) {
  if (t.empty()) return false;
  first = static_cast<size_t>(std::upper_bound(t.begin(), t.end(), w.start_ms) - t.begin());
  if (first > 0) --first;
  if (extension == Extension::kSmoothed) {
    last = std::min(static_cast<size_t>(std::lower_bound(t.begin(), t.end(), w.end_ms) - t.begin()), t.size() - 1);
  } else {
    const auto after = static_cast<size_t>(std::upper_bound(t.begin(), t.end(), w.end_ms) - t.begin());
    if (after == 0) return false;
    last = after - 1;
  }
  return t[last] > w.start_ms && t[first] <= w.end_ms;
}

void HistogramRate(const Window& w, Extension extension, bool counter, bool per_second, KernelCall& call, size_t step,
                   Column& out) {
  size_t first = 0, last = 0;
  if (!Bounds(w.ht, w, extension, first, last)) return;
  const bool custom = UsesCustom(w.h[first]);
  for (size_t i = first; i <= last; ++i) {
    if (UsesCustom(w.h[i]) != custom) return call.WarnMetric(text::kMixedSchemas);
    if (counter && w.h[i]->hint == model::ResetHint::kGauge) call.WarnMetric(text::kNotCounter);
  }
  model::Combined notes;
  HistogramPtr left = w.h[first], right = w.h[last];
  bool right_is_copy = true;
  if (extension == Extension::kSmoothed && w.ht[first] < w.start_ms && first < last) {
    left = InterpolateHistograms(w.ht[first], w.h[first], w.ht[first + 1], w.h[first + 1], w.start_ms, counter, notes);
  }
  if (extension == Extension::kSmoothed && last > 0 && w.ht[last] > w.end_ms && last > first) {
    right_is_copy = false;
    right = InterpolateHistograms(w.ht[last - 1], w.h[last - 1], w.ht[last], w.h[last], w.end_ms, counter, notes);
  }
  if (left == nullptr || right == nullptr) return call.WarnMetric(text::kMixedSchemas);
  HistogramPtr result = SubHistograms(right, left, notes);
  if (result == nullptr) return call.WarnMetric(text::kMixedSchemas);
  if (notes.bounds_reconciled) call.Info(base::StrCat(text::kMismatchedBounds, "subtraction"));
  if (counter) {
    size_t from = first, to = last;  // the samples strictly inside
    if (w.ht[from] <= w.start_ms) ++from;
    HistogramPtr before = left;
    // A copied right edge is the last sample itself and is compared as such.
    const size_t inside_end = right_is_copy && w.ht[to] <= w.end_ms ? to + 1 : to;
    if (from == first && from < inside_end) ++from;  // the left edge is this sample
    model::Combined added;
    const auto account = [&](const HistogramPtr& h) {
      if (model::DetectReset(*before, *h)) result = AddHistograms(result, before, added);
      before = h;
      return result != nullptr;
    };
    for (size_t i = from; i < inside_end; ++i) {
      if (!account(w.h[i])) return call.WarnMetric(text::kMixedSchemas);
    }
    if (!right_is_copy && !account(right)) return call.WarnMetric(text::kMixedSchemas);
    if (added.bounds_reconciled) call.Info(base::StrCat(text::kMismatchedBounds, "addition"));
  }
  if (per_second) result = DivideHistogram(result, call.range_seconds);
  out.SetHistogram(step, CompactHistogram(WithHint(result, model::ResetHint::kGauge)));
}

}  // namespace

void ExtendedRate(const Window& w, Extension extension, bool counter, bool per_second, KernelCall& call, size_t step,
                  Column& out) {
  if (counter && !w.t.empty()) CheckCounterName(call);
  if (w.t.empty()) return HistogramRate(w, extension, counter, per_second, call, step, out);
  if (!w.ht.empty()) {
    size_t first = 0, last = 0;
    const bool histograms_inside = Bounds(w.ht, w, extension, first, last);
    if (Bounds(w.t, w, extension, first, last)) {
      if (histograms_inside) return call.WarnMetric(text::kMixedFloatsHistogramsFor);
    } else {
      return HistogramRate(w, extension, counter, per_second, call, step, out);
    }
  }
  size_t first = 0, last = 0;
  if (!Bounds(w.t, w, extension, first, last)) return;
  double left = w.v[first], right = w.v[last];
  if (extension == Extension::kSmoothed) {
    if (w.t[first] < w.start_ms && first < last) {
      left = Interpolate(w.t[first], w.v[first], w.t[first + 1], w.v[first + 1], w.start_ms, counter, true);
    }
    if (w.t[last] > w.end_ms) {
      if (last == 0) return;
      right = Interpolate(w.t[last - 1], w.v[last - 1], w.t[last], w.v[last], w.end_ms, counter, false);
    }
  }
  double result = right - left;
  if (counter) {
    // The samples strictly inside; the edges are `left` and `right`.
    double before = left;
    for (size_t i = first; i <= last; ++i) {
      if (w.t[i] <= w.start_ms || w.t[i] >= w.end_ms) continue;
      if (w.v[i] < before) result += before;
      before = w.v[i];
    }
    if (right < before) result += before;
  }
  out.SetFloat(step, per_second ? result / call.range_seconds : result);
}

void AnchoredCount(const Window& w, bool resets, KernelCall& call, size_t step, Column& out) {
  const auto inside = [&](std::span<const int64_t> t) {
    return std::any_of(t.begin(), t.end(), [&](int64_t x) { return w.start_ms < x && x <= w.end_ms; });
  };
  if (!inside(w.t) && !inside(w.ht)) return;
  // The anchor is the last sample of either kind at or before the start.
  int64_t anchor = INT64_MIN;
  for (const int64_t t : w.t) {
    if (t <= w.start_ms) anchor = std::max(anchor, t);
  }
  for (const int64_t t : w.ht) {
    if (t <= w.start_ms) anchor = std::max(anchor, t);
  }
  const auto cut = [&](std::span<const int64_t> t) {
    const auto from = static_cast<size_t>(std::lower_bound(t.begin(), t.end(), anchor) - t.begin());
    const auto to = static_cast<size_t>(std::upper_bound(t.begin(), t.end(), w.end_ms) - t.begin());
    return std::pair(from, to - from);
  };
  Window narrow = w;
  const auto [f, nf] = cut(w.t);
  const auto [h, nh] = cut(w.ht);
  narrow.t = w.t.subspan(f, nf);
  narrow.v = w.v.subspan(f, nf);
  narrow.st = {};
  narrow.ht = w.ht.subspan(h, nh);
  narrow.h = w.h.subspan(h, nh);
  narrow.hst = {};
  return resets ? ResetsKernel(narrow, call, step, out) : ChangesKernel(narrow, call, step, out);
}

}  // namespace varve::exec
