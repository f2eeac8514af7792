#pragma once
// What all operators of one running query share. Lives on the query's thread.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "query/exec/annotations.h"
#include "query/exec/column.h"
#include "storage/base/cancel.h"
#include "storage/model/series_source.h"

namespace varve::exec {

struct Flags {
  bool delayed_name_removal = false;
  bool start_timestamps = false;
  bool type_and_unit_labels = false;
};

class Context {
 public:
  struct Options {
    Flags flags;
    int64_t lookback_ms = 300'000;
    uint64_t samples_max = 0;  // 0 = no limit
    bool range_query = false;
    const base::Cancel* deadline = nullptr;  // never null in a run; may be the caller's
    const base::Cancel* cancel = nullptr;    // the caller's; may be null
  };
  Context(const model::SeriesSource& source, const Options& options, base::MemoryBudget& memory)
      : source_(source), options_(options), memory_(memory) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Asked once per series and per long step: Cancelled, DeadlineExceeded or OK.
  absl::Status Tick() {
    if (++ticks_ % 16 != 0) return absl::OkStatus();
    return CheckNow();
  }
  absl::Status CheckNow() const;

  // The selection of an identical earlier call is shared.
  absl::StatusOr<std::shared_ptr<const model::Selection>> Select(const std::vector<model::Matcher>& matchers,
                                                                 model::TimeRange range);
  const Flags& flags() const { return options_.flags; }
  int64_t lookback_ms() const { return options_.lookback_ms; }
  bool range_query() const { return options_.range_query; }
  base::MemoryBudget& memory() { return memory_; }
  Annotations& annotations() { return annotations_; }

  // Samples held at one time.
  absl::Status HoldSamples(uint64_t n);
  void DropSamples(uint64_t n) { samples_held_ -= n; }
  void CountRead(uint64_t n) { samples_read_ += n; }
  void CountQueried(uint64_t n) { samples_queried_ += n; }
  uint64_t samples_read() const { return samples_read_; }
  uint64_t samples_queried() const { return samples_queried_; }
  uint64_t samples_peak() const { return samples_peak_; }
  uint64_t series_selected() const { return series_selected_; }

 private:
  const model::SeriesSource& source_;
  const Options options_;
  base::MemoryBudget& memory_;
  Annotations annotations_;
  std::map<std::string, std::shared_ptr<const model::Selection>> selections_;
  uint64_t ticks_ = 0, samples_held_ = 0, samples_peak_ = 0, samples_read_ = 0, samples_queried_ = 0;
  uint64_t series_selected_ = 0;
};

// Memory and samples that an operator holds; given back when it ends.
class Holding {
 public:
  explicit Holding(Context& context) : context_(context) {}
  ~Holding() {
    context_.memory().Release(bytes_);
    context_.DropSamples(samples_);
  }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;
  // Before the memory is allocated. ResourceExhausted when the query may not have it.
  absl::Status Grow(size_t bytes, uint64_t samples = 0);

 private:
  Context& context_;
  int64_t bytes_ = 0;
  uint64_t samples_ = 0;
};

// Steps of one grid: positions and step numbers are 32 bits wide.
inline constexpr uint64_t kStepsMax = uint64_t{1} << 31;

// What Prometheus calls an execution error: the query is well formed, but not over this data.
inline absl::Status ExecutionError(std::string_view text) {
  return absl::FailedPreconditionError(absl::string_view(text.data(), text.size()));
}

}  // namespace varve::exec
