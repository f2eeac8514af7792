#pragma once
// A table of samples as a model::SeriesSource: what a query test needs, and nothing that can fail by itself.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/model/series_source.h"

namespace varve::test {

// Filled by one thread, then read by any.
class TableSource : public model::SeriesSource {
 public:
  // Series that are added with the same `times` pointer share it, unless a selection cuts it.
  void Add(model::Labels labels, model::TimeColumn times, std::vector<double> values) {
    model::SampleColumns& columns = series_[std::move(labels)];
    columns.times = std::move(times);
    columns.values = std::move(values);
  }
  void Add(model::Labels labels, const std::vector<std::pair<int64_t, double>>& samples) {
    auto times = std::make_shared<std::vector<int64_t>>();
    std::vector<double> values;
    for (const auto& [t_ms, value] : samples) {
      times->push_back(t_ms);
      values.push_back(value);
    }
    Add(std::move(labels), std::move(times), std::move(values));
  }
  void Add(model::Labels labels, model::SampleColumns columns) { series_[std::move(labels)] = std::move(columns); }

  absl::StatusOr<std::unique_ptr<model::Selection>> Select(const model::SelectRequest& request) const override {
    if (!failure.ok()) return failure;
    ++selects;
    auto selection = std::make_unique<Rows>();
    selection->range = request.range;
    for (const auto& [labels, columns] : series_) {
      if (model::MatchesAll(request.matchers, labels)) selection->rows.push_back({&labels, &columns});
    }
    if (selection->rows.size() > request.series_max) return absl::ResourceExhaustedError("too many series");
    return selection;
  }
  absl::StatusOr<std::vector<std::string>> LabelNames(const model::SelectRequest&) const override {
    return absl::UnimplementedError("not part of the table");
  }
  absl::StatusOr<std::vector<std::string>> LabelValues(std::string_view, const model::SelectRequest&) const override {
    return absl::UnimplementedError("not part of the table");
  }
  absl::StatusOr<std::vector<model::ExemplarSeries>> Exemplars(const model::SelectRequest&) const override {
    return absl::UnimplementedError("not part of the table");
  }
  std::vector<model::Metadata> MetadataFor(std::string_view) const override { return {}; }
  absl::StatusOr<model::SourceStats> Stats(size_t) const override { return model::SourceStats(); }

  mutable int selects = 0;                  // how often Select was called
  absl::Status failure = absl::OkStatus();  // what Select answers instead

 private:
  struct Rows : model::Selection {
    size_t size() const override { return rows.size(); }
    model::Labels labels(size_t i) const override { return *rows[i].first; }
    absl::Status Read(size_t i, model::SampleColumns* out) const override {
      const model::SampleColumns& all = *rows[i].second;
      const std::vector<int64_t>& t = *all.times;
      const auto lo = std::upper_bound(t.begin(), t.end(), range.after_ms) - t.begin();
      const auto hi = std::upper_bound(t.begin(), t.end(), range.until_ms) - t.begin();
      if (lo == 0 && static_cast<size_t>(hi) == t.size()) {
        out->times = all.times;
        out->values.assign(all.values.begin(), all.values.end());
        out->histogram_at = all.histogram_at;
        out->histograms = all.histograms;
        out->start_times = all.start_times;
        return absl::OkStatus();
      }
      auto& cut = cuts[{all.times, lo}];
      if (cut == nullptr) cut = std::make_shared<const std::vector<int64_t>>(t.begin() + lo, t.begin() + hi);
      out->Clear();
      out->times = cut;
      out->values.assign(all.values.begin() + lo, all.values.begin() + hi);
      if (!all.start_times.empty()) out->start_times.assign(all.start_times.begin() + lo, all.start_times.begin() + hi);
      for (size_t h = 0; h < all.histogram_at.size(); ++h) {
        if (all.histogram_at[h] < lo || all.histogram_at[h] >= hi) continue;
        out->histogram_at.push_back(all.histogram_at[h] - static_cast<uint32_t>(lo));
        out->histograms.push_back(all.histograms[h]);
      }
      return absl::OkStatus();
    }
    model::TimeRange range;
    std::vector<std::pair<const model::Labels*, const model::SampleColumns*>> rows;
    mutable std::map<std::pair<model::TimeColumn, int64_t>, model::TimeColumn> cuts;
  };
  std::map<model::Labels, model::SampleColumns> series_;
};

}  // namespace varve::test
