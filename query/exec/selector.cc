#include "query/exec/selector.h"

#include <algorithm>

#include "query/exec/histogram_ops.h"
#include "query/exec/labels.h"

namespace varve::exec {
namespace {

class Selector : public Operator {
 public:
  Selector(const plan::Node& node, const Grid& grid, Context& context, SelectorValue value)
      : node_(node), grid_(grid), context_(context), value_(value) {
    at_ms_.reserve(grid.steps);
    for (size_t i = 0; i < grid.steps; ++i) at_ms_.push_back(node.at_ms.value_or(grid.At(i)) - node.offset_ms);
  }

  absl::Status Open() override {
    if (node_.anchored || node_.smoothed) return OpenExtended();
    const model::TimeRange range{at_ms_.front() - context_.lookback_ms(), at_ms_.back()};
    ASSIGN_OR_RETURN(selection_, context_.Select(node_.matchers, range));
    return ListSeries();
  }

  absl::Status Next(Column& out) override {
    RETURN_IF_ERROR(context_.Tick());
    RETURN_IF_ERROR(selection_->Read(next_++, &samples_));
    context_.CountRead(samples_.size());
    if (node_.counts_only && !samples_.histograms.empty()) DetectHints(samples_.histograms);
    if (samples_.times != seen_) {
      seen_ = samples_.times;
      if (smoothed_) {
        LookbackPositions(*seen_, at_ms_, INT64_MAX / 4, positions_);
      } else {
        LookbackPositions(*seen_, at_ms_, context_.lookback_ms(), positions_);
      }
    }
    out.Reset(grid_.steps);
    if (smoothed_) {
      Smooth(out);
      return absl::OkStatus();
    }
    if (samples_.histogram_at.empty() && value_ == SelectorValue::kSample) {
      GatherFloats(out);
    } else {
      GatherAny(out);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ListSeries() {
    series_.resize(selection_->size());
    for (size_t i = 0; i < series_.size(); ++i) {
      series_[i].labels = selection_->labels(i);
      if (smoothed_) series_names_.emplace_back(series_[i].labels.Get(model::kMetricName));
    }
    distinct_ = value_ == SelectorValue::kSample;
    if (value_ != SelectorValue::kSample) DropNames(series_, context_.flags().delayed_name_removal);
    return absl::OkStatus();
  }

  // A bare selector with `anchored` is a plain one; `smoothed` interpolates between the neighbours of the time.
  absl::Status OpenExtended() {
    smoothed_ = node_.smoothed;
    const int64_t ahead = smoothed_ ? context_.lookback_ms() : 0;
    const model::TimeRange range{at_ms_.front() - context_.lookback_ms(), at_ms_.back() + ahead};
    ASSIGN_OR_RETURN(selection_, context_.Select(node_.matchers, range));
    return ListSeries();
  }

  void GatherFloats(Column& out) {
    const double* values = samples_.values.data();
    uint64_t found = 0;
    for (size_t i = 0; i < positions_.size(); ++i) {
      const int32_t p = positions_[i];
      if (p < 0 || model::IsStaleNan(values[p])) continue;
      out.values[i] = values[p];
      out.kinds[i] = kFloat;
      ++found;
    }
    context_.CountQueried(found);
  }

  void GatherAny(Column& out) {
    for (size_t i = 0; i < positions_.size(); ++i) {
      const int32_t p = positions_[i];
      if (p < 0 || model::IsStaleNan(samples_.values[p])) continue;
      if (value_ == SelectorValue::kTime) {
        out.SetFloat(i, static_cast<double>((*samples_.times)[p]) / 1000);
      } else if (value_ == SelectorValue::kStartTime) {
        const int64_t start_ms = samples_.start_times.empty() ? 0 : samples_.start_times[p];
        out.SetFloat(i, static_cast<double>(start_ms) / 1000);  // 0: unknown
      } else if (const auto h = std::lower_bound(samples_.histogram_at.begin(), samples_.histogram_at.end(),
                                                 static_cast<uint32_t>(p));
                 h != samples_.histogram_at.end() && *h == static_cast<uint32_t>(p)) {
        out.SetHistogram(i, samples_.histograms[h - samples_.histogram_at.begin()]);
      } else {
        out.SetFloat(i, samples_.values[p]);
      }
    }
    context_.CountQueried(positions_.size());
  }

  // The histogram at a position; null: a float.
  const HistogramPtr* HistogramAt(size_t p) const {
    const auto h =
        std::lower_bound(samples_.histogram_at.begin(), samples_.histogram_at.end(), static_cast<uint32_t>(p));
    if (h == samples_.histogram_at.end() || *h != p) return nullptr;
    return &samples_.histograms[static_cast<size_t>(h - samples_.histogram_at.begin())];
  }

  void Smooth(Column& out) {
    const std::vector<int64_t>& times = *samples_.times;
    for (size_t i = 0; i < positions_.size(); ++i) {
      const int64_t t = at_ms_[i];
      if (positions_[i] < 0) continue;
      const auto before = static_cast<size_t>(positions_[i]);
      const size_t after = before + 1;
      if (times[before] <= t - context_.lookback_ms() || model::IsStaleNan(samples_.values[before])) continue;
      const HistogramPtr* h1 = HistogramAt(before);
      const bool alone = times[before] == t || after == times.size() || times[after] > t + context_.lookback_ms() ||
                         model::IsStaleNan(samples_.values[after]) ||
                         (HistogramAt(after) == nullptr) != (h1 == nullptr);
      if (h1 != nullptr) {
        model::Combined notes;
        HistogramPtr h =
            alone ? *h1 : InterpolateHistograms(times[before], *h1, times[after], *HistogramAt(after), t, false, notes);
        if (h == nullptr) {
          context_.annotations().Warn(Quoted(text::kMixedSchemas, series_names_[next_ - 1]), node_.position);
        } else {
          out.SetHistogram(i, std::move(h));
        }
        continue;
      }
      const double v = samples_.values[before];
      if (alone) {
        out.SetFloat(i, v);
        continue;
      }
      const double share = static_cast<double>(t - times[before]) / static_cast<double>(times[after] - times[before]);
      out.SetFloat(i, v + (samples_.values[after] - v) * share);
    }
  }

  const plan::Node& node_;
  const Grid grid_;
  Context& context_;
  const SelectorValue value_;
  bool smoothed_ = false;
  std::vector<int64_t> at_ms_;
  std::shared_ptr<const model::Selection> selection_;
  size_t next_ = 0;
  model::SampleColumns samples_;
  model::TimeColumn seen_;  // whose positions_ these are
  std::vector<int32_t> positions_;
  std::vector<std::string> series_names_;  // of a smoothed selector, for its warnings
};

}  // namespace

void LookbackPositions(const std::vector<int64_t>& times, const std::vector<int64_t>& at_ms, int64_t lookback_ms,
                       std::vector<int32_t>& positions) {
  positions.resize(at_ms.size());
  size_t p = 0;  // first sample after the step's time
  for (size_t i = 0; i < at_ms.size(); ++i) {
    while (p < times.size() && times[p] <= at_ms[i]) ++p;
    positions[i] = p > 0 && times[p - 1] > at_ms[i] - lookback_ms ? static_cast<int32_t>(p) - 1 : -1;
  }
}

OperatorPtr MakeSelector(const plan::Node& node, const Grid& grid, Context& context, SelectorValue value) {
  return std::make_unique<Selector>(node, grid, context, value);
}

}  // namespace varve::exec
