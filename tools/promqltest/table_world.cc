#include <algorithm>
#include <map>
#include <set>

#include "storage/base/strings.h"
#include "tools/promqltest/histograms.h"
#include "tools/promqltest/world.h"

namespace varve::promqltest {

namespace {

using SeriesMap = std::map<model::Labels, std::vector<WorldSample>>;

bool SameSample(const WorldSample& a, const WorldSample& b) {
  if ((a.histogram == nullptr) != (b.histogram == nullptr)) return false;
  return a.histogram == nullptr ? model::SameBits(a.value, b.value) : model::Identical(*a.histogram, *b.histogram);
}

// The hints that reading back shows: a store keeps them per chunk.
void SetStoredHints(std::vector<WorldSample>& samples, const std::vector<WorldSample>& written, size_t from) {
  for (size_t i = from; i < samples.size(); ++i) {
    if (written[i].histogram == nullptr || written[i].histogram->IsStale()) continue;
    const bool first =
        i == 0 || written[i - 1].histogram == nullptr || StartsChunk(*written[i - 1].histogram, *written[i].histogram);
    auto stored = std::make_shared<model::Histogram>(*written[i].histogram);
    if (stored->hint != model::ResetHint::kGauge) {
      stored->hint = first ? model::ResetHint::kUnknown : model::ResetHint::kNotReset;
    }
    samples[i].histogram = std::move(stored);
  }
}

class TableSelection : public model::Selection {
 public:
  struct Entry {
    model::Labels labels;
    const std::vector<WorldSample>* samples;
  };
  TableSelection(std::vector<Entry> entries, model::TimeRange range) : entries_(std::move(entries)), range_(range) {}
  size_t size() const override { return entries_.size(); }
  model::Labels labels(size_t i) const override { return entries_[i].labels; }
  absl::Status Read(size_t i, model::SampleColumns* out) const override {
    out->Clear();
    auto times = std::make_shared<std::vector<int64_t>>();
    bool any_start = false;
    for (const WorldSample& sample : *entries_[i].samples) {
      if (!range_.Contains(sample.t_ms)) continue;
      if (sample.histogram != nullptr) {
        out->histogram_at.push_back(static_cast<uint32_t>(times->size()));
        out->histograms.push_back(sample.histogram);
      }
      times->push_back(sample.t_ms);
      out->values.push_back(sample.value);
      out->start_times.push_back(sample.start_ms);
      any_start = any_start || sample.start_ms != 0;
    }
    if (!any_start) out->start_times.clear();
    out->times = std::move(times);
    return absl::OkStatus();
  }

 private:
  const std::vector<Entry> entries_;
  const model::TimeRange range_;
};

}  // namespace

class TableWorld::Source : public model::SeriesSource {
 public:
  absl::StatusOr<std::unique_ptr<model::Selection>> Select(const model::SelectRequest& request) const override {
    if (request.cancel != nullptr) RETURN_IF_ERROR(request.cancel->Check());
    std::vector<TableSelection::Entry> entries;
    for (const auto& [labels, samples] : stored_) {
      if (!model::MatchesAll(request.matchers, labels)) continue;
      if (samples.empty() || !request.range.Overlaps(samples.front().t_ms, samples.back().t_ms)) continue;
      if (entries.size() == request.series_max) {
        return absl::ResourceExhaustedError(
            base::StrCat("the selection has more than ", request.series_max, " series"));
      }
      entries.push_back({labels, &samples});
    }
    return std::make_unique<TableSelection>(std::move(entries), request.range);
  }

  absl::StatusOr<std::vector<std::string>> LabelNames(const model::SelectRequest& request) const override {
    return Collect(request, [](const model::LabelRef& label) { return label.name; });
  }
  absl::StatusOr<std::vector<std::string>> LabelValues(std::string_view name,
                                                       const model::SelectRequest& request) const override {
    return Collect(request, [name](const model::LabelRef& label) {
      return label.name == name ? label.value : std::string_view();
    });
  }
  absl::StatusOr<std::vector<model::ExemplarSeries>> Exemplars(const model::SelectRequest&) const override {
    return std::vector<model::ExemplarSeries>();
  }
  std::vector<model::Metadata> MetadataFor(std::string_view) const override { return {}; }
  absl::StatusOr<model::SourceStats> Stats(size_t) const override {
    model::SourceStats stats;
    stats.series = stored_.size();
    return stats;
  }

  SeriesMap stored_;   // as read back
  SeriesMap written_;  // as appended

 private:
  template <class Pick>
  absl::StatusOr<std::vector<std::string>> Collect(const model::SelectRequest& request, Pick pick) const {
    std::set<std::string> found;
    for (const auto& [labels, samples] : stored_) {
      if (!model::MatchesAll(request.matchers, labels)) continue;
      if (samples.empty() || !request.range.Overlaps(samples.front().t_ms, samples.back().t_ms)) continue;
      for (const model::LabelRef label : labels) {
        if (const std::string_view text = pick(label); !text.empty()) found.emplace(text);
      }
    }
    return std::vector<std::string>(found.begin(), found.end());
  }
};

TableWorld::TableWorld() : source_(std::make_unique<Source>()) {}
TableWorld::~TableWorld() = default;

absl::Status TableWorld::Clear() {
  source_ = std::make_unique<Source>();
  return absl::OkStatus();
}

absl::Status TableWorld::Append(std::span<const WorldSeries> series) {
  for (const WorldSeries& added : series) {  // all or nothing: judged before anything is stored
    const auto found = source_->written_.find(added.labels);
    if (found == source_->written_.end() || added.samples.empty() || found->second.empty()) continue;
    const WorldSample& newest = found->second.back();
    const WorldSample& oldest_added = added.samples.front();
    if (oldest_added.t_ms > newest.t_ms) continue;
    if (oldest_added.t_ms == newest.t_ms && SameSample(oldest_added, newest)) continue;
    return absl::FailedPreconditionError(base::StrCat(added.labels.ToString(), " already has a sample at ", newest.t_ms,
                                                      " ms, which is not before ", oldest_added.t_ms, " ms"));
  }
  for (const WorldSeries& added : series) {
    std::vector<WorldSample>& written = source_->written_[added.labels];
    std::vector<WorldSample>& stored = source_->stored_[added.labels];
    const size_t from = written.size();
    for (const WorldSample& sample : added.samples) {
      if (!written.empty() && sample.t_ms <= written.back().t_ms) continue;  // the repeated one
      written.push_back(sample);
      stored.push_back(sample);
    }
    SetStoredHints(stored, written, from);
  }
  return absl::OkStatus();
}

const model::SeriesSource& TableWorld::source() const { return *source_; }

}  // namespace varve::promqltest
