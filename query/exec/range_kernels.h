#pragma once
// Functions over ranges, one window of one series at a time.
#include <span>
#include <string_view>
#include <vector>

#include "query/exec/operator.h"

namespace varve::exec {

class RangeSource;

// The samples in (start_ms, end_ms], floats and histograms apart. A start time of 0 is unknown; empty when the series
// has none.
struct Window {
  std::span<const int64_t> t;
  std::span<const double> v;
  std::span<const int64_t> st;
  std::span<const int64_t> ht;
  std::span<const HistogramPtr> h;
  std::span<const int64_t> hst;
  int64_t start_ms = 0, end_ms = 0;
  int64_t eval_ms = 0;  // of the step; equals end_ms unless there is an offset or `@`
  size_t size() const { return t.size() + ht.size(); }
};

// What a kernel knows beside the samples.
struct KernelCall {
  Context& context;
  std::string_view function;
  promql::PositionRange position;        // of the range argument
  promql::PositionRange first_position;  // of the first argument
  double range_seconds = 0;
  std::vector<std::vector<double>> parameters;  // scalar arguments in order, per step
  model::LabelsView labels;                     // of the current series
  absl::Status status;                          // set by a kernel that cannot go on

  std::string_view metric() const { return labels.MetricName(); }
  void Warn(std::string_view text) { context.annotations().Warn(text, position); }
  void Info(std::string_view text) { context.annotations().Info(text, position); }
  void WarnMetric(std::string_view text) { Warn(Quoted(text, metric())); }
  void InfoMetric(std::string_view text) { Info(Quoted(text, metric())); }
};

// Sets out[step], or leaves it empty.
using Kernel = void (*)(const Window& window, KernelCall& call, size_t step, Column& out);

struct RangeFunction {
  std::string_view name;
  Kernel kernel;
  bool keeps_name = false;
  size_t samples_min = 1;  // smaller windows are not shown to the kernel
};
const RangeFunction* FindRangeFunction(std::string_view name);  // null: not a function over a range

// rate, increase, delta, irate, idelta
void RateKernel(const Window& window, KernelCall& call, size_t step, Column& out);
void IncreaseKernel(const Window& window, KernelCall& call, size_t step, Column& out);
void DeltaKernel(const Window& window, KernelCall& call, size_t step, Column& out);
void IrateKernel(const Window& window, KernelCall& call, size_t step, Column& out);
void IdeltaKernel(const Window& window, KernelCall& call, size_t step, Column& out);
void ChangesKernel(const Window& window, KernelCall& call, size_t step, Column& out);
void ResetsKernel(const Window& window, KernelCall& call, size_t step, Column& out);

// The window of an `anchored` or `smoothed` selector reaches beyond its bounds.
enum class Extension : uint8_t { kNone, kAnchored, kSmoothed };
void ExtendedRate(const Window& wide, Extension extension, bool counter, bool per_second, KernelCall& call, size_t step,
                  Column& out);
// The window with the last sample at or before its start put in front, as an anchored selector gives it.
void AnchoredCount(const Window& wide, bool resets, KernelCall& call, size_t step, Column& out);

// Warns when a metric that is treated as a counter does not look like one.
void CheckCounterName(KernelCall& call);

OperatorPtr MakeRangeFunction(const CallArguments& call, const RangeFunction& function,
                              std::unique_ptr<RangeSource> source, std::vector<OperatorPtr> parameters);

}  // namespace varve::exec
