// Runs a kernel over the windows of every series of a range.
#include <algorithm>

#include "query/exec/labels.h"
#include "query/exec/range_kernels.h"
#include "query/exec/range_source.h"
#include "query/exec/rate_columns.h"
#include "query/exec/repeat.h"

namespace varve::exec {
namespace {

class RangeFunctionOperator : public Operator {
 public:
  RangeFunctionOperator(const CallArguments& call, const RangeFunction& function, std::unique_ptr<RangeSource> source,
                        std::vector<OperatorPtr> parameters, size_t range_argument, Extension extension)
      : context_(call.context),
        function_(function),
        source_(std::move(source)),
        parameters_(std::move(parameters)),
        extension_(extension),
        column_kernel_(FindColumnKernel(function.name)),
        kernel_call_{call.context,
                     function.name,
                     call.position(range_argument),
                     call.position(0),
                     static_cast<double>(source_->geometry().range_ms) / 1000,
                     {},
                     {},
                     {}} {}

  absl::Status Open() override {
    for (const OperatorPtr& parameter : parameters_) {
      ASSIGN_OR_RETURN(std::vector<double> values, ReadScalar(*parameter));
      kernel_call_.parameters.push_back(std::move(values));
    }
    RETURN_IF_ERROR(source_->Open());
    series_ = source_->TakeSeries();
    // The kernels speak of the metric by name, which is about to go.
    const bool same_names = SameNames(series_);
    for (const SeriesInfo& one : series_) {
      names_.push_back(one.labels);
      if (same_names) break;
    }
    distinct_ = !source_->is_subquery() && (function_.keeps_name || same_names);
    if (!function_.keeps_name) DropNames(series_, context_.flags().delayed_name_removal);
    return absl::OkStatus();
  }

  absl::Status Next(Column& out) override {
    RETURN_IF_ERROR(source_->Next(samples_));
    const RangeGeometry& geometry = source_->geometry();
    out.Reset(geometry.grid.steps);
    kernel_call_.labels = names_[std::min(next_++, names_.size() - 1)];
    if (!context_.flags().start_timestamps) samples_.start_times.clear();
    if (samples_.size() == 0) return absl::OkStatus();
    if (column_kernel_ != nullptr && extension_ == Extension::kNone && samples_.histogram_at.empty() &&
        samples_.start_times.empty()) {
      floats_.Update(samples_.times, geometry);
      // Windows may be known from a series of the same times that the kernel did not run for.
      if (prepared_ != samples_.times) column_kernel_->Prepare(*samples_.times, floats_, geometry);
      prepared_ = samples_.times;
      column_kernel_->Run(*samples_.times, samples_.values, floats_, kernel_call_, out);
      context_.CountQueried(samples_.size());
      return absl::OkStatus();
    }
    Split();
    if (extension_ == Extension::kNone) {
      RunWindows(geometry, out);
    } else {
      RunExtended(geometry, out);
    }
    return kernel_call_.status;
  }

 private:
  // Floats and histograms apart, each with its own times.
  void Split() {
    if (samples_.histogram_at.empty()) {
      float_times_ = samples_.times;
      histogram_times_ = nullptr;
      float_values_ = samples_.values;
      float_starts_ = samples_.start_times;
      histograms_.clear();
      histogram_starts_.clear();
      return;
    }
    auto float_times = std::make_shared<std::vector<int64_t>>();
    auto histogram_times = std::make_shared<std::vector<int64_t>>();
    float_values_.clear();
    float_starts_.clear();
    histogram_starts_.clear();
    size_t h = 0;
    for (size_t i = 0; i < samples_.size(); ++i) {
      const bool histogram = h < samples_.histogram_at.size() && samples_.histogram_at[h] == i;
      if (histogram) ++h;
      (histogram ? histogram_times : float_times)->push_back((*samples_.times)[i]);
      if (!histogram) float_values_.push_back(samples_.values[i]);
      if (!samples_.start_times.empty()) {
        (histogram ? histogram_starts_ : float_starts_).push_back(samples_.start_times[i]);
      }
    }
    histograms_ = samples_.histograms;
    float_times_ = std::move(float_times);
    histogram_times_ = std::move(histogram_times);
  }

  Window At(const RangeGeometry& geometry, size_t i) const {
    Window window;
    window.start_ms = geometry.Start(i);
    window.end_ms = geometry.End(i);
    window.eval_ms = geometry.grid.At(i);
    return window;
  }

  static std::span<const int64_t> Cut(const std::vector<int64_t>& all, size_t lo, size_t n) {
    return all.empty() ? std::span<const int64_t>() : std::span(all).subspan(lo, n);
  }

  void RunWindows(const RangeGeometry& geometry, Column& out) {
    floats_.Update(float_times_, geometry);
    if (histogram_times_ != nullptr) histogram_windows_.Update(histogram_times_, geometry);
    uint64_t seen = 0;
    for (size_t i = 0; i < geometry.grid.steps; ++i) {
      Window window = At(geometry, i);
      const size_t lo = floats_.lo[i], n = floats_.hi[i] - lo;
      window.t = Cut(*float_times_, lo, n);
      window.v = std::span<const double>(float_values_).subspan(lo, n);
      window.st = Cut(float_starts_, lo, n);
      if (histogram_times_ != nullptr) {
        const size_t hlo = histogram_windows_.lo[i], hn = histogram_windows_.hi[i] - hlo;
        window.ht = Cut(*histogram_times_, hlo, hn);
        window.h = std::span<const HistogramPtr>(histograms_).subspan(hlo, hn);
        window.hst = Cut(histogram_starts_, hlo, hn);
      }
      seen += window.size();
      if (window.size() < function_.samples_min) continue;
      function_.kernel(window, kernel_call_, i, out);
      if (!kernel_call_.status.ok()) break;
    }
    context_.CountQueried(seen);
  }

  // The samples from one lookback before the window to one lookback after it.
  void RunExtended(const RangeGeometry& geometry, Column& out) {
    const auto cut = [](const std::vector<int64_t>& times, int64_t after, int64_t until) {
      const auto lo = std::upper_bound(times.begin(), times.end(), after) - times.begin();
      const auto hi = std::upper_bound(times.begin(), times.end(), until) - times.begin();
      return std::pair(static_cast<size_t>(lo), static_cast<size_t>(std::max(lo, hi) - lo));
    };
    for (size_t i = 0; i < geometry.grid.steps; ++i) {
      Window window = At(geometry, i);
      const int64_t after = window.start_ms - context_.lookback_ms();
      const int64_t until = window.end_ms + (extension_ == Extension::kSmoothed ? context_.lookback_ms() : 0);
      const auto [lo, n] = cut(*float_times_, after, until);
      window.t = Cut(*float_times_, lo, n);
      window.v = std::span<const double>(float_values_).subspan(lo, n);
      if (histogram_times_ != nullptr) {
        const auto [hlo, hn] = cut(*histogram_times_, after, until);
        window.ht = Cut(*histogram_times_, hlo, hn);
        window.h = std::span<const HistogramPtr>(histograms_).subspan(hlo, hn);
      }
      if (window.size() == 0) continue;
      if (function_.name == "changes" || function_.name == "resets") {
        AnchoredCount(window, function_.name == "resets", kernel_call_, i, out);
      } else {
        ExtendedRate(window, extension_, function_.name != "delta", function_.name == "rate", kernel_call_, i, out);
      }
    }
  }

  Context& context_;
  const RangeFunction& function_;
  std::unique_ptr<RangeSource> source_;
  std::vector<OperatorPtr> parameters_;
  const Extension extension_;
  std::unique_ptr<ColumnKernel> column_kernel_;
  model::TimeColumn prepared_;  // what the kernel is prepared for
  KernelCall kernel_call_;
  std::vector<model::Labels> names_;  // labels with the names; only the first when all have the same
  size_t next_ = 0;

  model::SampleColumns samples_;
  model::TimeColumn float_times_, histogram_times_;
  std::vector<double> float_values_;
  std::vector<int64_t> float_starts_, histogram_starts_;
  std::vector<HistogramPtr> histograms_;
  Windows floats_, histogram_windows_;
};

}  // namespace

OperatorPtr MakeRangeFunction(const CallArguments& call, const RangeFunction& function,
                              std::unique_ptr<RangeSource> source, std::vector<OperatorPtr> parameters) {
  size_t range_argument = 0;
  while (call.argument(range_argument).type != promql::ValueType::kMatrix) ++range_argument;
  const plan::Node& range = call.argument(range_argument);
  const Extension extension = range.anchored   ? Extension::kAnchored
                              : range.smoothed ? Extension::kSmoothed
                                               : Extension::kNone;
  return std::make_unique<RangeFunctionOperator>(call, function, std::move(source), std::move(parameters),
                                                 range_argument, extension);
}

}  // namespace varve::exec
