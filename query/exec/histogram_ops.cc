#include "query/exec/histogram_ops.h"

#include <algorithm>
#include <cmath>

#include "query/exec/histogram_buckets.h"
#include "storage/base/strings.h"

namespace varve::exec {
namespace {

using model::Histogram;
using model::ResetHint;

// A histogram taken apart, so that layouts can be moved onto each other.
struct Parts {
  int32_t schema;
  double threshold, zero;
  std::vector<double> bounds;
  IndexedBuckets positive, negative;

  explicit Parts(const Histogram& h)
      : schema(h.schema),
        threshold(h.zero_threshold),
        zero(h.zero_count),
        bounds(h.custom_values),
        positive(Unpack(h.positive_spans, h.positive_buckets)),
        negative(Unpack(h.negative_spans, h.negative_buckets)) {}

  bool custom() const { return model::UsesCustomBuckets(schema); }

  void Widen(const Histogram& h, double to) {
    if (to <= threshold) return;
    const WidenedZero wide = WidenZero(h, to);
    threshold = wide.threshold;
    zero = wide.count;
    for (IndexedBuckets* side : {&positive, &negative}) {
      std::erase_if(*side, [&](const auto& b) { return ExponentialBound(b.first - 1, schema) < threshold; });
    }
  }
  void Reduce(int32_t to) {
    positive = Coarsen(positive, schema, to);
    negative = Coarsen(negative, schema, to);
    schema = std::min(schema, to);
  }
};

IndexedBuckets Merge(const IndexedBuckets& a, const IndexedBuckets& b, double sign) {
  IndexedBuckets out;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && a[i].first < b[j].first)) {
      out.push_back(a[i++]);
    } else if (i == a.size() || b[j].first < a[i].first) {
      out.emplace_back(b[j].first, sign * b[j].second);
      ++j;
    } else {
      out.emplace_back(a[i].first, a[i].second + sign * b[j].second);
      ++i, ++j;
    }
  }
  return out;
}

// The zero buckets are widened in turn until they are equally wide, since widening one may need to go further.
void ReconcileZero(Parts& a, const Histogram& ha, Parts& b, const Histogram& hb) {
  while (a.threshold != b.threshold) {
    if (a.threshold < b.threshold) {
      a.Widen(ha, b.threshold);
    } else {
      b.Widen(hb, a.threshold);
    }
  }
}

HistogramPtr Combine(const HistogramPtr& ha, const HistogramPtr& hb, double sign, HistogramNotes& notes) {
  if (UsesCustom(ha) != UsesCustom(hb)) {
    notes.incompatible = true;
    return nullptr;
  }
  Parts a(*ha), b(*hb);
  auto out = std::make_shared<Histogram>();
  bool collision = false;
  out->hint = CombineHints(ha->hint, hb->hint, collision);
  notes.reset_collision |= collision;
  if (a.custom()) {
    if (a.bounds != b.bounds) {
      notes.bounds_reconciled = true;
      std::vector<double> common = CommonBounds(a.bounds, b.bounds);
      a.positive = Rebound(a.positive, a.bounds, common);
      b.positive = Rebound(b.positive, b.bounds, common);
      a.bounds = std::move(common);
    }
    out->custom_values = a.bounds;
  } else {
    ReconcileZero(a, *ha, b, *hb);
    const int32_t schema = std::min(a.schema, b.schema);
    a.Reduce(schema);
    b.Reduce(schema);
  }
  out->schema = a.schema;
  out->zero_threshold = a.threshold;
  out->zero_count = a.zero + sign * b.zero;
  out->count = ha->count + sign * hb->count;
  out->sum = ha->sum + sign * hb->sum;
  Pack(Merge(a.positive, b.positive, sign), out->positive_spans, out->positive_buckets);
  Pack(Merge(a.negative, b.negative, sign), out->negative_spans, out->negative_buckets);
  return out;
}

// Any bucket that has become smaller or has gone.
bool Shrunk(const IndexedBuckets& now, const IndexedBuckets& before) {
  size_t i = 0;
  for (const auto& [index, count] : before) {
    while (i < now.size() && now[i].first < index) ++i;
    const double current = i < now.size() && now[i].first == index ? now[i].second : 0;
    if (current < count) return true;
  }
  return false;
}

template <class Change>
HistogramPtr Transform(const HistogramPtr& h, bool negative, Change change) {
  auto out = std::make_shared<Histogram>(*h);
  out->integer = false;
  out->zero_count = change(out->zero_count);
  out->count = change(out->count);
  out->sum = change(out->sum);
  for (double& b : out->positive_buckets) b = change(b);
  for (double& b : out->negative_buckets) b = change(b);
  if (negative) out->hint = ResetHint::kGauge;
  return out;
}

}  // namespace

ResetHint CombineHints(ResetHint a, ResetHint b, bool& collision) {
  if (a == b) return a;
  if (a == ResetHint::kGauge || b == ResetHint::kGauge) return ResetHint::kGauge;
  if (a != ResetHint::kUnknown && b != ResetHint::kUnknown) collision = true;
  return ResetHint::kUnknown;
}

void HistogramNotes::Annotate(Context& context, promql::PositionRange position, std::string_view operation) const {
  if (reset_collision) context.annotations().Warn(base::StrCat(text::kResetCollision, operation), position);
  if (bounds_reconciled) context.annotations().Info(base::StrCat(text::kMismatchedBounds, operation), position);
}

HistogramPtr AddHistograms(const HistogramPtr& a, const HistogramPtr& b, HistogramNotes& notes) {
  return Combine(a, b, 1, notes);
}

HistogramPtr SubHistograms(const HistogramPtr& a, const HistogramPtr& b, HistogramNotes& notes) {
  HistogramPtr out = Combine(a, b, -1, notes);
  return out == nullptr ? out : WithHint(out, ResetHint::kGauge);
}

HistogramPtr ScaleHistogram(const HistogramPtr& h, double factor) {
  return Transform(h, factor < 0, [&](double v) { return v * factor; });
}

HistogramPtr DivideHistogram(const HistogramPtr& h, double divisor) {
  HistogramPtr out = Transform(h, divisor < 0, [&](double v) { return v / divisor; });
  if (divisor != 0) return out;
  auto bare = std::make_shared<Histogram>(*out);
  bare->positive_spans.clear();
  bare->negative_spans.clear();
  bare->positive_buckets.clear();
  bare->negative_buckets.clear();
  return bare;
}

HistogramPtr CompactHistogram(const HistogramPtr& h) {
  auto out = std::make_shared<Histogram>(*h);
  Pack(Unpack(h->positive_spans, h->positive_buckets), out->positive_spans, out->positive_buckets);
  Pack(Unpack(h->negative_spans, h->negative_buckets), out->negative_spans, out->negative_buckets);
  return out;
}

bool EqualHistograms(const Histogram& a, const Histogram& b) {
  const auto same = [](double x, double y) { return x == y || model::SameBits(x, y); };
  if (a.schema != b.schema || !same(a.count, b.count) || !same(a.sum, b.sum) || !same(a.zero_count, b.zero_count) ||
      a.zero_threshold != b.zero_threshold || a.custom_values != b.custom_values) {
    return false;
  }
  return Unpack(a.positive_spans, a.positive_buckets) == Unpack(b.positive_spans, b.positive_buckets) &&
         Unpack(a.negative_spans, a.negative_buckets) == Unpack(b.negative_spans, b.negative_buckets);
}

bool DetectReset(const Histogram& h, const Histogram& before) {
  if (h.hint == ResetHint::kReset) return true;
  if (h.hint == ResetHint::kNotReset) return false;
  if (h.count < before.count) return true;
  Parts now(h), then(before);
  if (now.custom() != then.custom()) return true;
  if (now.custom()) {
    if (now.bounds != then.bounds) {
      const std::vector<double> common = CommonBounds(now.bounds, then.bounds);
      now.positive = Rebound(now.positive, now.bounds, common);
      then.positive = Rebound(then.positive, then.bounds, common);
    }
    return Shrunk(now.positive, then.positive);
  }
  if (now.schema > then.schema || now.threshold < then.threshold) return true;
  then.Widen(before, now.threshold);
  if (then.threshold != now.threshold || now.zero < then.zero) return true;
  then.Reduce(now.schema);
  return Shrunk(now.positive, then.positive) || Shrunk(now.negative, then.negative);
}

HistogramPtr WithHint(const HistogramPtr& h, ResetHint hint) {
  if (h->hint == hint) return h;
  auto out = std::make_shared<Histogram>(*h);
  out->hint = hint;
  return out;
}

void HistogramSum::Add(const HistogramPtr& h) {
  reset_seen_ |= h->hint == ResetHint::kReset;
  not_reset_seen_ |= h->hint == ResetHint::kNotReset;
  if (notes_.incompatible) return;
  const bool custom = UsesCustom(h);
  if (inputs_.empty()) {
    schema_ = h->schema;
    threshold_ = h->zero_threshold;
    bounds_ = h->custom_values;
    hint_ = h->hint;
  } else if (custom != model::UsesCustomBuckets(schema_)) {
    notes_.incompatible = true;
    return;
  }
  inputs_.push_back(h);
  bool collision = false;
  hint_ = CombineHints(hint_, h->hint, collision);
  notes_.reset_collision = reset_seen_ && not_reset_seen_;
  count_.Add(h->count);
  sum_.Add(h->sum);
  Parts parts(*h);
  if (custom) {
    if (bounds_ != parts.bounds) {
      notes_.bounds_reconciled = true;
      std::vector<double> common = CommonBounds(bounds_, parts.bounds);
      Side moved;
      for (const auto& [index, value] : positive_) {
        const IndexedBuckets target = Rebound({{index, 1}}, bounds_, common);
        KahanSum& sum = moved[target[0].first];
        sum.Add(value.sum);
        sum.Add(value.compensation);
      }
      positive_ = std::move(moved);
      parts.positive = Rebound(parts.positive, parts.bounds, common);
      bounds_ = std::move(common);
    }
  } else {
    while (parts.threshold != threshold_) {
      if (parts.threshold < threshold_) {
        parts.Widen(*h, threshold_);
      } else {
        WidenTo(parts.threshold);
      }
    }
    zero_.Add(parts.zero);
    Reduce(std::min(schema_, parts.schema));
    parts.Reduce(schema_);
  }
  for (const auto& [index, value] : parts.positive) positive_[index].Add(value);
  for (const auto& [index, value] : parts.negative) negative_[index].Add(value);
}

void HistogramSum::Reduce(int32_t schema) {
  if (schema == schema_) return;
  for (Side* side : {&positive_, &negative_}) {
    Side moved;
    for (const auto& [index, value] : *side) {
      KahanSum& sum = moved[CoarserIndex(index, schema_, schema)];
      sum.Add(value.sum);
      sum.Add(value.compensation);
    }
    *side = std::move(moved);
  }
  schema_ = schema;
}

void HistogramSum::WidenTo(double threshold) {
  bool again = true;
  while (again) {
    again = false;
    for (Side* side : {&positive_, &negative_}) {
      while (!side->empty()) {
        const auto& [index, value] = *side->begin();
        if (ExponentialBound(index - 1, schema_) >= threshold) break;
        const double total = value.sum + value.compensation;
        if (total != 0 && ExponentialBound(index, schema_) > threshold) {
          threshold = ExponentialBound(index, schema_);
          again = true;
        }
        zero_.Add(value.sum);
        zero_.Add(value.compensation);
        side->erase(side->begin());
      }
    }
  }
  threshold_ = threshold;
}

HistogramPtr HistogramSum::Sum() const {
  if (inputs_.empty() || notes_.incompatible) return nullptr;
  auto out = std::make_shared<Histogram>();
  out->schema = schema_;
  out->hint = hint_;
  out->zero_threshold = threshold_;
  out->custom_values = bounds_;
  out->count = count_.Value();
  out->sum = sum_.Value();
  out->zero_count = zero_.Value();
  const auto pack = [](const Side& side, std::vector<model::Span>& spans, std::vector<double>& buckets) {
    IndexedBuckets all;
    for (const auto& [index, value] : side) all.emplace_back(index, value.Value());
    Pack(all, spans, buckets);
  };
  pack(positive_, out->positive_spans, out->positive_buckets);
  pack(negative_, out->negative_spans, out->negative_buckets);
  return out;
}

HistogramPtr HistogramSum::Mean() const {
  HistogramPtr sum = Sum();
  if (sum == nullptr) return nullptr;
  const auto n = static_cast<double>(inputs_.size());
  const bool overflow = !std::isfinite(sum->sum) || !std::isfinite(sum->count);
  const bool finite = std::all_of(inputs_.begin(), inputs_.end(), [](const HistogramPtr& h) {
    return std::isfinite(h->sum) && std::isfinite(h->count);
  });
  if (!overflow || !finite) return DivideHistogram(sum, n);
  HistogramSum shares;  // the sum does not fit into a double, but the mean does
  for (const HistogramPtr& h : inputs_) shares.Add(DivideHistogram(h, n));
  return shares.Sum();
}

void HistogramSum::Annotate(Context& context, promql::PositionRange position, std::string_view metric) const {
  notes_.Annotate(context, position, "aggregation");
  if (notes_.incompatible) context.annotations().Warn(Quoted(text::kMixedSchemas, metric), position);
}

}  // namespace varve::exec
