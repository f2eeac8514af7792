#pragma once
// Native histograms as values: arithmetic, and what it has to say about it. Results are compact.
#include <map>
#include <string_view>
#include <vector>

#include "query/exec/column.h"
#include "query/exec/context.h"
#include "query/exec/kahan.h"

namespace varve::exec {

struct HistogramNotes {
  bool incompatible = false;       // exponential and custom buckets: there is no result
  bool reset_collision = false;    // the hints contradict each other
  bool bounds_reconciled = false;  // custom bounds differed
  // `operation`: "addition", "subtraction" or "aggregation".
  void Annotate(Context& context, promql::PositionRange position, std::string_view operation) const;
};

// Null when incompatible. Notes are added to `notes`. The resolution is the coarser one, the zero bucket the wider one,
// custom bounds those that both have.
HistogramPtr AddHistograms(const HistogramPtr& a, const HistogramPtr& b, HistogramNotes& notes);
HistogramPtr SubHistograms(const HistogramPtr& a, const HistogramPtr& b, HistogramNotes& notes);
HistogramPtr ScaleHistogram(const HistogramPtr& h, double factor);    // a negative factor makes a gauge
HistogramPtr DivideHistogram(const HistogramPtr& h, double divisor);  // likewise; by zero leaves no buckets
HistogramPtr CompactHistogram(const HistogramPtr& h);
bool EqualHistograms(const model::Histogram& a, const model::Histogram& b);  // hints do not count
// True when a counter was reset between `before` and `h`, by h's hint or by looking.
bool DetectReset(const model::Histogram& h, const model::Histogram& before);
HistogramPtr WithHint(const HistogramPtr& h, model::ResetHint hint);
inline bool UsesCustom(const HistogramPtr& h) { return model::UsesCustomBuckets(h->schema); }
model::ResetHint CombineHints(model::ResetHint a, model::ResetHint b, bool& collision);

// A compensated sum of histograms, in input order.
class HistogramSum {
 public:
  void Add(const HistogramPtr& h);
  HistogramPtr Sum() const;   // null when empty or incompatible
  HistogramPtr Mean() const;  // likewise
  // The notes of an aggregation over time or over series; `metric` is "" for the latter.
  void Annotate(Context& context, promql::PositionRange position, std::string_view metric) const;

 private:
  using Side = std::map<int32_t, KahanSum>;
  void AddSide(const model::Histogram& h, bool positive);
  void Reduce(int32_t schema);
  void WidenTo(double threshold);

  std::vector<HistogramPtr> inputs_;
  bool reset_seen_ = false, not_reset_seen_ = false;
  HistogramNotes notes_;
  int32_t schema_ = 0;
  double threshold_ = 0;
  std::vector<double> bounds_;
  model::ResetHint hint_ = model::ResetHint::kUnknown;
  KahanSum count_, sum_, zero_;
  Side positive_, negative_;
};

}  // namespace varve::exec
