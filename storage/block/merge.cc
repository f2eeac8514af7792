#include "storage/block/merge.h"

#include <algorithm>

#include "storage/base/check.h"
#include "storage/base/mutex.h"
#include "storage/base/strings.h"

namespace varve::block {

namespace {

using model::SampleColumns;

constexpr size_t kCheckEvery = 1024;
// Merged columns that are kept for sharing. Sources that share nothing would otherwise fill memory with them.
constexpr size_t kPlansMax = 4096;

// Consecutive samples of one input.
struct Run {
  uint32_t input, begin, end;
};

// How the columns of several inputs become one.
struct Plan {
  std::vector<model::TimeColumn> inputs;  // keeps the addresses, which are the key, from being used again
  model::TimeColumn times;
  std::vector<Run> runs;
};

std::shared_ptr<const Plan> MakePlan(std::vector<model::TimeColumn> inputs) {
  auto plan = std::make_shared<Plan>();
  size_t total = 0;
  for (const auto& input : inputs) total += input->size();
  auto times = std::make_shared<std::vector<int64_t>>();
  times->reserve(total);
  std::vector<uint32_t> at(inputs.size(), 0);
  while (true) {
    // The input with the earliest sample, the freshest of equal ones; it goes on until another one has its turn.
    uint32_t best = UINT32_MAX;
    int64_t limit = INT64_MAX;  // no sample of `best` from here on, in this run
    bool limited = false;
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      if (at[i] == inputs[i]->size()) continue;
      const int64_t t = (*inputs[i])[at[i]];
      if (best == UINT32_MAX) {
        best = i;
        continue;
      }
      const int64_t best_t = (*inputs[best])[at[best]];
      if (t < best_t) {
        limit = limited ? std::min(limit, best_t) : best_t;
        best = i;
      } else {
        limit = limited ? std::min(limit, t) : t;
      }
      limited = true;
    }
    if (best == UINT32_MAX) break;
    const std::vector<int64_t>& from = *inputs[best];
    const uint32_t begin = at[best];
    const auto end = limited ? std::lower_bound(from.begin() + begin + 1, from.end(), limit) : from.end();
    at[best] = static_cast<uint32_t>(end - from.begin());
    times->insert(times->end(), from.begin() + begin, end);
    if (!plan->runs.empty() && plan->runs.back().input == best && plan->runs.back().end == begin) {
      plan->runs.back().end = at[best];
    } else {
      plan->runs.push_back({best, begin, at[best]});
    }
    const int64_t done = times->back();
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      while (at[i] < inputs[i]->size() && (*inputs[i])[at[i]] <= done) ++at[i];
    }
  }
  plan->times = std::move(times);
  plan->inputs = std::move(inputs);
  return plan;
}

// A histogram read back as "not reset" was so relative to its neighbour in its own source.
std::shared_ptr<const model::Histogram> AfterStranger(std::shared_ptr<const model::Histogram> histogram) {
  if (histogram->hint != model::ResetHint::kNotReset) return histogram;
  auto copy = std::make_shared<model::Histogram>(*histogram);
  copy->hint = model::ResetHint::kUnknown;
  return copy;
}

void Apply(const Plan& plan, const std::vector<SampleColumns>& inputs, SampleColumns& out) {
  out.times = plan.times;
  out.values.reserve(plan.times->size());
  const bool has_start_times =
      std::any_of(inputs.begin(), inputs.end(), [](const SampleColumns& input) { return !input.start_times.empty(); });
  for (const Run& run : plan.runs) {
    const SampleColumns& in = inputs[run.input];
    const size_t base = out.values.size();
    out.values.insert(out.values.end(), in.values.begin() + run.begin, in.values.begin() + run.end);
    auto h = static_cast<size_t>(std::lower_bound(in.histogram_at.begin(), in.histogram_at.end(), run.begin) -
                                 in.histogram_at.begin());
    for (; h < in.histogram_at.size() && in.histogram_at[h] < run.end; ++h) {
      const bool first_of_run = in.histogram_at[h] == run.begin && base > 0;
      out.histogram_at.push_back(static_cast<uint32_t>(base + in.histogram_at[h] - run.begin));
      out.histograms.push_back(first_of_run ? AfterStranger(in.histograms[h]) : in.histograms[h]);
    }
    if (!has_start_times) continue;
    if (in.start_times.empty())
      out.start_times.resize(out.values.size(), 0);
    else
      out.start_times.insert(out.start_times.end(), in.start_times.begin() + run.begin,
                             in.start_times.begin() + run.end);
  }
}

class MergedSelection final : public model::HashedSelection {
 public:
  explicit MergedSelection(std::vector<std::unique_ptr<model::HashedSelection>> sources)
      : sources_(std::move(sources)) {}

  absl::Status Fill(uint64_t series_max, const base::Cancel* cancel) {
    struct Cursor {
      const model::HashedSelection* source;
      uint32_t number;
      size_t at = 0;
      bool has_labels = false;
      model::Labels labels;
      const model::Labels& Labels() {
        if (!has_labels) labels = source->labels(at);
        has_labels = true;
        return labels;
      }
      bool Advance() {
        has_labels = false;
        return ++at < source->size();
      }
    };
    std::vector<Cursor> cursors;
    for (uint32_t i = 0; i < sources_.size(); ++i) {
      if (sources_[i]->size() > 0) cursors.push_back({.source = sources_[i].get(), .number = i, .labels = {}});
    }
    for (size_t seen = 0; !cursors.empty(); ++seen) {
      if (seen % kCheckEvery == 0 && cancel != nullptr) RETURN_IF_ERROR(cancel->Check());
      // Labels are only looked at where the sources differ.
      size_t first = 0;
      model::SeriesHash hash = cursors[0].source->hash(cursors[0].at);
      for (size_t i = 1; i < cursors.size(); ++i) {
        const model::SeriesHash other = cursors[i].source->hash(cursors[i].at);
        if (other == hash || cursors[i].Labels() >= cursors[first].Labels()) continue;
        first = i;
        hash = other;
      }
      if (parts_end_.size() >= series_max) {
        return absl::ResourceExhaustedError(base::StrCat("more than ", series_max, " series match"));
      }
      size_t kept = 0;
      for (size_t i = 0; i < cursors.size(); ++i) {
        bool more = true;
        if (cursors[i].source->hash(cursors[i].at) == hash) {
          parts_.push_back({cursors[i].number, static_cast<uint32_t>(cursors[i].at)});
          more = cursors[i].Advance();
        }
        if (!more) continue;
        if (kept != i) cursors[kept] = std::move(cursors[i]);
        ++kept;
      }
      cursors.erase(cursors.begin() + static_cast<ptrdiff_t>(kept), cursors.end());
      parts_end_.push_back(parts_.size());
    }
    return absl::OkStatus();
  }

  size_t size() const override { return parts_end_.size(); }
  model::Labels labels(size_t i) const override {
    const Part& part = Parts(i).front();
    return sources_[part.source]->labels(part.at);
  }
  model::SeriesHash hash(size_t i) const override {
    const Part& part = Parts(i).front();
    return sources_[part.source]->hash(part.at);
  }

  absl::Status Read(size_t i, SampleColumns* out) const override {
    const std::span<const Part> parts = Parts(i);
    if (parts.size() == 1) return sources_[parts[0].source]->Read(parts[0].at, out);
    std::vector<SampleColumns> inputs;
    std::vector<model::TimeColumn> times;
    SampleColumns columns;
    for (const Part& part : parts) {
      RETURN_IF_ERROR(sources_[part.source]->Read(part.at, &columns));
      if (columns.size() == 0 && (!inputs.empty() || &part != &parts.back())) continue;
      times.push_back(columns.times);
      inputs.push_back(std::move(columns));
      columns.Clear();
    }
    if (inputs.size() == 1) {
      *out = std::move(inputs[0]);
      return absl::OkStatus();
    }
    const std::shared_ptr<const Plan> plan = PlanFor(std::move(times));
    out->Clear();
    Apply(*plan, inputs, *out);
    return absl::OkStatus();
  }

 private:
  struct Part {
    uint32_t source, at;
  };
  std::span<const Part> Parts(size_t i) const {
    const size_t begin = i == 0 ? 0 : parts_end_[i - 1];
    return std::span(parts_).subspan(begin, parts_end_[i] - begin);
  }

  std::shared_ptr<const Plan> PlanFor(std::vector<model::TimeColumn> times) const {
    std::vector<const void*> key;
    for (const auto& column : times) key.push_back(column.get());
    {
      base::MutexLock lock(mu_);
      const auto it = plans_.find(key);
      if (it != plans_.end()) return it->second;
    }
    std::shared_ptr<const Plan> plan = MakePlan(std::move(times));
    base::MutexLock lock(mu_);
    if (plans_.size() >= kPlansMax) plans_.clear();
    return plans_.try_emplace(std::move(key), std::move(plan)).first->second;
  }

  const std::vector<std::unique_ptr<model::HashedSelection>> sources_;
  std::vector<Part> parts_;  // flat; those of a series freshest first
  std::vector<size_t> parts_end_;
  mutable base::Mutex mu_;  // leaf
  mutable absl::flat_hash_map<std::vector<const void*>, std::shared_ptr<const Plan>> plans_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<model::HashedSelection>> Merge(
    std::vector<std::unique_ptr<model::HashedSelection>> freshest_first, uint64_t series_max,
    const base::Cancel* cancel) {
  std::erase_if(freshest_first, [](const auto& source) { return source->size() == 0; });
  if (freshest_first.size() == 1 && freshest_first[0]->size() <= series_max) return std::move(freshest_first[0]);
  auto merged = std::make_unique<MergedSelection>(std::move(freshest_first));
  RETURN_IF_ERROR(merged->Fill(series_max, cancel));
  return std::unique_ptr<model::HashedSelection>(std::move(merged));
}

}  // namespace varve::block
