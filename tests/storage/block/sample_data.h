#pragma once
// Series as plain points, to compare blocks and merges with.
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "storage/base/dice.h"
#include "storage/base/strings.h"
#include "storage/block/reader.h"
#include "storage/block/writer.h"
#include "storage/model/series_source.h"
#include "tests/support/mem_fs.h"

namespace varve::block {

struct Point {
  double value = 0;
  int64_t start_ms = 0;
  std::shared_ptr<const model::Histogram> histogram;
};
using Points = std::map<int64_t, Point>;
using Table = std::map<model::Labels, Points>;

inline constexpr uint64_t kSeed = 42;

inline model::SampleColumns ToColumns(const Points& points) {
  model::SampleColumns out;
  auto times = std::make_shared<std::vector<int64_t>>();
  bool has_start_times = false;
  for (const auto& [t, point] : points) {
    if (point.histogram != nullptr) {
      out.histogram_at.push_back(static_cast<uint32_t>(times->size()));
      out.histograms.push_back(point.histogram);
    }
    times->push_back(t);
    out.values.push_back(point.histogram != nullptr ? point.histogram->sum : point.value);
    out.start_times.push_back(point.start_ms);
    has_start_times = has_start_times || point.start_ms != 0;
  }
  if (!has_start_times) out.start_times.clear();
  out.times = std::move(times);
  return out;
}

inline void RequireSame(const model::SampleColumns& got, const Points& points, const model::TimeRange& range) {
  Points expected;
  for (const auto& [t, point] : points) {
    if (range.Contains(t)) expected[t] = point;
  }
  REQUIRE(got.times != nullptr);
  const model::SampleColumns want = ToColumns(expected);
  REQUIRE(*got.times == *want.times);
  REQUIRE(got.values.size() == want.values.size());
  for (size_t i = 0; i < want.values.size(); ++i) REQUIRE(model::SameBits(got.values[i], want.values[i]));
  REQUIRE(got.histogram_at == want.histogram_at);
  REQUIRE(got.histograms.size() == want.histograms.size());
  for (size_t i = 0; i < want.histograms.size(); ++i) {
    REQUIRE(model::Identical(*got.histograms[i], *want.histograms[i]));
  }
  // Start times may be written out although they are all unknown, but not be left out when there is one.
  if (!want.start_times.empty() || !got.start_times.empty()) {
    REQUIRE(got.start_times.size() == got.values.size());
    for (size_t i = 0; i < got.start_times.size(); ++i) {
      REQUIRE(got.start_times[i] == (want.start_times.empty() ? 0 : want.start_times[i]));
    }
  }
}

inline std::shared_ptr<const model::Histogram> RandomHistogram(base::Dice& dice) {
  auto out = std::make_shared<model::Histogram>();
  out->hint = dice.OneIn(2) ? model::ResetHint::kGauge : model::ResetHint::kUnknown;
  out->integer = true;
  out->schema = 3;
  out->zero_threshold = 0.001;
  out->positive_spans = {{static_cast<int32_t>(dice.Below(3)), 2}, {1, 1}};
  out->positive_buckets = {static_cast<double>(dice.Below(10)), static_cast<double>(dice.Below(10)), 1};
  out->count = out->positive_buckets[0] + out->positive_buckets[1] + 1;
  out->sum = dice.OneIn(9) ? model::StaleNan() : static_cast<double>(dice.Below(1000)) / 8;
  return out;
}

// Series of a few targets: those of a target are scraped together, every `step_ms` with a little jitter.
inline Table RandomTable(base::Dice& dice, int targets, int metrics, int scrapes, int64_t begin_ms, int64_t step_ms) {
  Table table;
  for (int target = 0; target < targets; ++target) {
    std::vector<int64_t> times;
    for (int i = 0; i < scrapes; ++i) times.push_back(begin_ms + i * step_ms + dice.Between(0, step_ms / 50));
    for (int metric = 0; metric < metrics; ++metric) {
      std::vector<model::Label> pairs = {{"__name__", base::StrCat("metric_", metric / 2)},
                                         {"instance", base::StrCat("node-", target, ":9100")},
                                         {"mode", metric % 2 == 0 ? "idle" : "user"}};
      if (dice.OneIn(4)) pairs.push_back({base::StrCat("extra_", dice.Below(3)), base::StrCat(dice.Below(5))});
      Points& points = table[model::Labels::FromPairs(std::move(pairs))];
      const uint64_t kind = dice.Below(8);  // mostly plain floats
      const bool sparse = dice.OneIn(4);
      double value = static_cast<double>(dice.Below(1000));
      for (const int64_t t : times) {
        if (sparse && dice.OneIn(3)) continue;
        value += static_cast<double>(dice.Below(100)) / 4;
        Point point{.value = value, .start_ms = 0, .histogram = nullptr};
        if (kind == 0 || (kind == 1 && dice.OneIn(3))) point.histogram = RandomHistogram(dice);
        if (kind == 2 && dice.OneIn(2)) point.start_ms = t - 500;
        if (dice.OneIn(200)) point.value = model::StaleNan();
        if (dice.OneIn(200)) point.value = -0.0;
        points[t] = point;
      }
      if (points.empty()) table.erase(table.begin());
    }
  }
  return table;
}

inline BlockMeta WriteBlock(fs::FileSystem& fs, const std::string& path, const Table& table, model::TimeRange range) {
  BlockMeta meta;
  meta.tenant = "team-a";
  meta.shard = 3;
  meta.range = range;
  Writer writer(fs, path, meta);
  // Series with the same times share a column, as a head gives them.
  std::map<std::vector<int64_t>, model::TimeColumn> columns;
  for (const auto& [labels, points] : table) {
    model::SampleColumns samples = ToColumns(points);
    samples.times = columns.try_emplace(*samples.times, samples.times).first->second;
    REQUIRE(writer.Add(labels, model::HashLabels(labels.bytes(), kSeed), samples).ok());
  }
  absl::StatusOr<BlockMeta> done = writer.Finish();
  INFO(done.status());
  REQUIRE(done.ok());
  return *done;
}

}  // namespace varve::block
