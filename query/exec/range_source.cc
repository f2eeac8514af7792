#include "query/exec/range_source.h"

#include <algorithm>

#include "query/exec/histogram_ops.h"
#include "storage/base/check.h"

namespace varve::exec {
namespace {

class SelectorRange : public RangeSource {
 public:
  SelectorRange(const plan::Node& node, const RangeGeometry& geometry, Context& context, int64_t before, int64_t after)
      : RangeSource(geometry, false), node_(node), context_(context), before_(before), after_(after) {}

  absl::Status Open() override {
    const model::TimeRange range{geometry_.Start(0) - before_, geometry_.End(geometry_.grid.steps - 1) + after_};
    ASSIGN_OR_RETURN(selection_, context_.Select(node_.matchers, range));
    series_.resize(selection_->size());
    for (size_t i = 0; i < series_.size(); ++i) series_[i].labels = selection_->labels(i);
    return absl::OkStatus();
  }

  absl::Status Next(model::SampleColumns& out) override {
    RETURN_IF_ERROR(context_.Tick());
    RETURN_IF_ERROR(selection_->Read(next_++, &out));
    context_.CountRead(out.size());
    RETURN_IF_ERROR(context_.HoldSamples(out.size()));  // checks the limit against one series at a time
    context_.DropSamples(out.size());
    DropStale(out);
    if (node_.counts_only && !out.histograms.empty()) DetectHints(out.histograms);
    return absl::OkStatus();
  }

 private:
  const plan::Node& node_;
  Context& context_;
  const int64_t before_, after_;
  std::shared_ptr<const model::Selection> selection_;
  size_t next_ = 0;
};

class SubqueryRange : public RangeSource {
 public:
  SubqueryRange(OperatorPtr input, const Grid& inner, const RangeGeometry& geometry, Context& context)
      : RangeSource(geometry, true), input_(std::move(input)), inner_(inner), context_(context) {
    auto times = std::make_shared<std::vector<int64_t>>();
    for (size_t i = 0; i < inner.steps; ++i) times->push_back(inner.At(i));
    all_times_ = std::move(times);
  }

  absl::Status Open() override {
    if (input_ == nullptr) return absl::OkStatus();  // no evaluation time falls into the range
    RETURN_IF_ERROR(input_->Open());
    series_ = input_->TakeSeries();
    return absl::OkStatus();
  }

  absl::Status Next(model::SampleColumns& out) override {
    RETURN_IF_ERROR(context_.Tick());
    RETURN_IF_ERROR(input_->Next(column_));
    out.Clear();
    const bool full = std::find(column_.kinds.begin(), column_.kinds.end(), kNone) == column_.kinds.end();
    if (full && !column_.has_histograms()) {
      out.times = all_times_;
      out.values.assign(column_.values.begin(), column_.values.end());
      return absl::OkStatus();
    }
    auto times = std::make_shared<std::vector<int64_t>>();
    for (size_t i = 0; i < column_.size(); ++i) {
      if (column_.kinds[i] == kNone) continue;
      if (column_.kinds[i] == kHistogram) {
        out.histogram_at.push_back(static_cast<uint32_t>(times->size()));
        out.histograms.push_back(WithoutResetHint(column_.histograms[i]));
        out.values.push_back(column_.histograms[i]->sum);
      } else {
        out.values.push_back(column_.values[i]);
      }
      times->push_back(inner_.At(i));
    }
    out.times = std::move(times);
    return absl::OkStatus();
  }

 private:
  // Neighbours in a subquery are not neighbours in storage, so a stored hint says nothing about them.
  static HistogramPtr WithoutResetHint(const HistogramPtr& h) {
    if (h->hint != model::ResetHint::kReset && h->hint != model::ResetHint::kNotReset) return h;
    auto copy = std::make_shared<model::Histogram>(*h);
    copy->hint = model::ResetHint::kUnknown;
    return copy;
  }

  OperatorPtr input_;
  const Grid inner_;
  Context& context_;
  model::TimeColumn all_times_;
  Column column_;
};

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

}  // namespace

absl::StatusOr<std::unique_ptr<RangeSource>> MakeRangeSource(const plan::Node& node, const Grid& grid, Context& context,
                                                             int64_t margin_before_ms, int64_t margin_after_ms) {
  const RangeGeometry geometry{grid, node.offset_ms, node.range_ms, node.at_ms};
  if (node.kind == plan::NodeKind::kRangeSelector) {
    return std::make_unique<SelectorRange>(node, geometry, context, margin_before_ms, margin_after_ms);
  }
  VARVE_CHECK(node.kind == plan::NodeKind::kSubquery);
  // Multiples of the step, strictly after the first window's start.
  const int64_t step = node.subquery_step_ms;
  const int64_t first = (FloorDiv(geometry.Start(0), step) + 1) * step;
  const int64_t last = geometry.End(grid.steps - 1);
  Grid inner{first, step, first > last ? 0 : static_cast<size_t>((last - first) / step + 1)};
  OperatorPtr input;
  if (inner.steps > 0) {
    Holding probe(context);  // a grid too long for the budget is refused before it is built
    if (inner.steps > kStepsMax) return absl::ResourceExhaustedError("subquery has too many steps");
    RETURN_IF_ERROR(probe.Grow(inner.steps * (sizeof(double) + sizeof(int64_t) + 1)));
    ASSIGN_OR_RETURN(input, BuildOperator(*node.children[0], inner, context));
  }
  return std::make_unique<SubqueryRange>(std::move(input), inner, geometry, context);
}

bool Windows::Update(const model::TimeColumn& times, const RangeGeometry& geometry) {
  if (times == of_ && of_ != nullptr) return false;
  of_ = times;
  const size_t steps = geometry.grid.steps;
  lo.resize(steps);
  hi.resize(steps);
  const std::vector<int64_t>& t = *times;
  uint32_t low = 0, high = 0;
  const auto n = static_cast<uint32_t>(t.size());
  for (size_t i = 0; i < steps; ++i) {
    const int64_t until = geometry.End(i), after = geometry.Start(i);
    while (high < n && t[high] <= until) ++high;
    while (low < n && t[low] <= after) ++low;
    lo[i] = low;
    hi[i] = std::max(low, high);
  }
  return true;
}

void DropStale(model::SampleColumns& samples) {
  bool any = false;
  for (const double v : samples.values) any |= model::IsStaleNan(v);
  if (!any) return;
  model::SampleColumns kept;
  auto times = std::make_shared<std::vector<int64_t>>();
  size_t h = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const bool histogram = h < samples.histogram_at.size() && samples.histogram_at[h] == i;
    const bool stale = model::IsStaleNan(samples.values[i]);
    if (!stale) {
      if (histogram) {
        kept.histogram_at.push_back(static_cast<uint32_t>(times->size()));
        kept.histograms.push_back(samples.histograms[h]);
      }
      times->push_back((*samples.times)[i]);
      kept.values.push_back(samples.values[i]);
      if (!samples.start_times.empty()) kept.start_times.push_back(samples.start_times[i]);
    }
    if (histogram) ++h;
  }
  kept.times = std::move(times);
  samples = std::move(kept);
}

}  // namespace varve::exec
