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
// Replaces unknown hints by what the sample before says, as Prometheus does where it reads counts only.
void DetectHints(std::vector<HistogramPtr>& histograms);
inline bool UsesCustom(const HistogramPtr& h) { return model::UsesCustomBuckets(h->schema); }

// The value at `at_ms` on the line between two histograms; null when incompatible. Of a counter that was reset in
// between it is what was counted since, marked as a reset.
HistogramPtr InterpolateHistograms(int64_t t1_ms, const HistogramPtr& h1, int64_t t2_ms, const HistogramPtr& h2,
                                   int64_t at_ms, bool counter, model::Combined& notes);

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
