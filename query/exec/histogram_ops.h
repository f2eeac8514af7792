#pragma once
// Native histograms as the immutable values that columns hold, over storage/model/histogram_math.h; and the words for
// what arithmetic has to say.
#include <string_view>

#include "query/exec/column.h"
#include "query/exec/context.h"
#include "storage/model/histogram_math.h"

namespace varve::exec {

// Warnings and infos of arithmetic that had a result. `operation`: "addition", "subtraction" or "aggregation".
void AnnotateCombined(const model::Combined& notes, Context& context, promql::PositionRange position,
                      std::string_view operation);

// Null when incompatible. Notes are added to `notes`.
HistogramPtr AddHistograms(const HistogramPtr& a, const HistogramPtr& b, model::Combined& notes);
HistogramPtr SubHistograms(const HistogramPtr& a, const HistogramPtr& b, model::Combined& notes);
HistogramPtr ScaleHistogram(const HistogramPtr& h, double factor);
HistogramPtr DivideHistogram(const HistogramPtr& h, double divisor);
HistogramPtr TrimHistogram(const HistogramPtr& h, double cut, bool upper);  // upper: keep what is at most `cut`
HistogramPtr CompactHistogram(const HistogramPtr& h);
HistogramPtr WithHint(const HistogramPtr& h, model::ResetHint hint);
inline bool UsesCustom(const HistogramPtr& h) { return model::UsesCustomBuckets(h->schema); }

// The sum or mean of histograms, in input order, with what there is to say about it.
class HistogramFold {
 public:
  explicit HistogramFold(bool mean) : is_mean_(mean) {}
  void Add(const HistogramPtr& h);
  HistogramPtr Result() const;  // null when empty or incompatible
  // `metric` is "" for an aggregation over series.
  void Annotate(Context& context, promql::PositionRange position, std::string_view metric) const;

 private:
  const bool is_mean_;
  bool reset_seen_ = false, not_reset_seen_ = false;
  model::Combined notes_;
  model::HistogramSum sum_;
  model::HistogramMean mean_;
};

}  // namespace varve::exec
