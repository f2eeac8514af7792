#include "query/exec/histogram_ops.h"

#include "storage/base/strings.h"

namespace varve::exec {
namespace {

template <class Change>
HistogramPtr Changed(const HistogramPtr& h, Change change) {
  auto out = std::make_shared<model::Histogram>(*h);
  out->integer = false;
  change(*out);
  return out;
}

}  // namespace

void AnnotateCombined(const model::Combined& notes, Context& context, promql::PositionRange position,
                      std::string_view operation) {
  if (notes.reset_conflict) context.annotations().Warn(base::StrCat(text::kResetCollision, operation), position);
  if (notes.bounds_reconciled) context.annotations().Info(base::StrCat(text::kMismatchedBounds, operation), position);
}

HistogramPtr AddHistograms(const HistogramPtr& a, const HistogramPtr& b, model::Combined& notes) {
  model::Combined now;
  HistogramPtr out = Changed(a, [&](model::Histogram& h) { now = model::Add(h, *b); });
  notes.Merge(now);
  return now.compatible ? out : nullptr;
}

HistogramPtr SubHistograms(const HistogramPtr& a, const HistogramPtr& b, model::Combined& notes) {
  model::Combined now;
  HistogramPtr out = Changed(a, [&](model::Histogram& h) { now = model::Subtract(h, *b); });
  notes.Merge(now);
  return now.compatible ? out : nullptr;
}

HistogramPtr ScaleHistogram(const HistogramPtr& h, double factor) {
  return Changed(h, [&](model::Histogram& out) { model::Multiply(out, factor); });
}

HistogramPtr DivideHistogram(const HistogramPtr& h, double divisor) {
  return Changed(h, [&](model::Histogram& out) { model::Divide(out, divisor); });
}

HistogramPtr TrimHistogram(const HistogramPtr& h, double cut, bool upper) {
  return Changed(h, [&](model::Histogram& out) { upper ? model::TrimAbove(out, cut) : model::TrimBelow(out, cut); });
}

HistogramPtr CompactHistogram(const HistogramPtr& h) {
  return Changed(h, [](model::Histogram& out) { model::Compact(out); });
}

HistogramPtr WithHint(const HistogramPtr& h, model::ResetHint hint) {
  if (h->hint == hint) return h;
  return Changed(h, [&](model::Histogram& out) { out.hint = hint; });
}

void DetectHints(std::vector<HistogramPtr>& histograms) {
  HistogramPtr before;
  for (HistogramPtr& h : histograms) {
    HistogramPtr original = h;
    if (h->hint == model::ResetHint::kUnknown && before != nullptr && !h->IsStale() && !before->IsStale()) {
      h = WithHint(h, model::DetectReset(*before, *h) ? model::ResetHint::kReset : model::ResetHint::kNotReset);
    }
    before = std::move(original);
  }
}

HistogramPtr InterpolateHistograms(int64_t t1_ms, const HistogramPtr& h1, int64_t t2_ms, const HistogramPtr& h2,
                                   int64_t at_ms, bool counter, model::Combined& notes) {
  const double share = static_cast<double>(at_ms - t1_ms) / static_cast<double>(t2_ms - t1_ms);
  if (counter && model::DetectReset(*h1, *h2)) return WithHint(ScaleHistogram(h2, share), model::ResetHint::kReset);
  const HistogramPtr difference = SubHistograms(h2, h1, notes);
  if (difference == nullptr) return nullptr;
  model::Combined ignored;
  return AddHistograms(h1, WithHint(ScaleHistogram(difference, share), h1->hint), ignored);
}

void HistogramFold::Add(const HistogramPtr& h) {
  reset_seen_ |= h->hint == model::ResetHint::kReset;
  not_reset_seen_ |= h->hint == model::ResetHint::kNotReset;
  notes_.Merge(is_mean_ ? mean_.Add(*h) : sum_.Add(*h));
  // A pair of hints may hide behind an unknown one in between.
  notes_.reset_conflict |= reset_seen_ && not_reset_seen_;
}

HistogramPtr HistogramFold::Result() const {
  if ((is_mean_ ? mean_.empty() : sum_.empty()) || !notes_.compatible) return nullptr;
  auto out = std::make_shared<model::Histogram>(is_mean_ ? mean_.Mean() : sum_.Total());
  out->integer = false;
  model::Compact(*out);
  return out;
}

void HistogramFold::Annotate(Context& context, promql::PositionRange position, std::string_view metric) const {
  AnnotateCombined(notes_, context, position, "aggregation");
  if (!notes_.compatible) context.annotations().Warn(Quoted(text::kMixedSchemas, metric), position);
}

}  // namespace varve::exec
