// Merged selections against a map of maps.
#include "storage/block/merge.h"

#include <set>

#include "tests/storage/block/sample_data.h"

namespace varve::block {
namespace {

using model::Labels;

// A source in a test: hands out the same column to series with the same times.
class TableSelection final : public model::HashedSelection {
 public:
  explicit TableSelection(const Table& table) {
    std::map<std::vector<int64_t>, model::TimeColumn> columns;
    for (const auto& [labels, points] : table) {
      model::SampleColumns samples = ToColumns(points);
      samples.times = columns.try_emplace(*samples.times, samples.times).first->second;
      series_.emplace_back(labels, std::move(samples));
    }
  }
  size_t size() const override { return series_.size(); }
  Labels labels(size_t i) const override { return series_[i].first; }
  model::SeriesHash hash(size_t i) const override { return model::HashLabels(series_[i].first.bytes(), kSeed); }
  absl::Status Read(size_t i, model::SampleColumns* out) const override {
    if (series_[i].first.Get("broken") == "yes") return absl::DataLossError("broken");
    *out = series_[i].second;
    return absl::OkStatus();
  }

 private:
  std::vector<std::pair<Labels, model::SampleColumns>> series_;
};

absl::StatusOr<std::unique_ptr<model::HashedSelection>> MergeTables(const std::vector<Table>& freshest_first,
                                                                    uint64_t series_max = UINT64_MAX) {
  std::vector<std::unique_ptr<model::HashedSelection>> sources;
  for (const Table& table : freshest_first) sources.push_back(std::make_unique<TableSelection>(table));
  return Merge(std::move(sources), series_max);
}

TEST_CASE("merging agrees with a map of maps", "[merge]") {
  const uint64_t seed = GENERATE(1u, 2u, 3u, 4u, 5u, 6u);
  CAPTURE(seed);
  base::Dice dice(seed);
  std::vector<Table> sources;
  for (uint64_t n = 1 + dice.Below(4); n > 0; --n) {
    const int64_t begin = 1000 * dice.Between(0, 60);
    sources.push_back(RandomTable(dice, static_cast<int>(dice.Below(6)), 6, 40, begin, dice.OneIn(2) ? 1000 : 25));
  }
  Table expected;
  for (const Table& source : sources) {
    for (const auto& [labels, points] : source) expected[labels].insert(points.begin(), points.end());
  }
  const auto merged = MergeTables(sources);
  REQUIRE(merged.ok());
  REQUIRE((*merged)->size() == expected.size());
  size_t i = 0;
  model::SampleColumns samples;
  for (const auto& [labels, points] : expected) {
    REQUIRE((*merged)->labels(i) == labels);
    REQUIRE((*merged)->hash(i) == model::HashLabels(labels.bytes(), kSeed));
    REQUIRE((*merged)->Read(i, &samples).ok());
    RequireSame(samples, points, model::TimeRange::All());
    ++i;
  }
}

TEST_CASE("merged series share columns when their inputs do", "[merge]") {
  std::vector<Table> sources(2);
  for (int s = 0; s < 20; ++s) {
    for (int i = 0; i < 50; ++i) {
      sources[static_cast<size_t>(i / 25)][Labels::Of({{"s", base::StrCat(s)}})][i * 1000] = {
          .value = 1.0 * i, .start_ms = 0, .histogram = {}};
    }
  }
  const auto merged = MergeTables(sources);
  REQUIRE(merged.ok());
  std::set<model::TimeColumn> columns;
  model::SampleColumns samples;
  for (size_t i = 0; i < 20; ++i) {
    REQUIRE((*merged)->Read(i, &samples).ok());
    CHECK(samples.size() == 50);
    columns.insert(samples.times);
  }
  CHECK(columns.size() == 1);
}

TEST_CASE("of two samples at one time the freshest stays", "[merge]") {
  const Labels labels = Labels::Of({{"a", "b"}});
  std::vector<Table> sources(3);
  sources[0][labels][10].value = 1;
  sources[1][labels][10].value = 2;
  sources[1][labels][11].value = 3;
  sources[2][labels][11].value = 4;
  sources[2][labels][9].value = 5;
  const auto merged = MergeTables(sources);
  REQUIRE(merged.ok());
  model::SampleColumns samples;
  REQUIRE((*merged)->Read(0, &samples).ok());
  CHECK(*samples.times == std::vector<int64_t>{9, 10, 11});
  CHECK(samples.values == std::vector<double>{5, 1, 3});
}

TEST_CASE("a histogram after another source's sample is not taken for a continuation", "[merge]") {
  const Labels labels = Labels::Of({{"a", "b"}});
  base::Dice dice(1);
  auto histogram = std::make_shared<model::Histogram>(*RandomHistogram(dice));
  histogram->hint = model::ResetHint::kNotReset;
  std::vector<Table> sources(2);
  for (const int64_t t : {1, 2, 5, 6}) sources[0][labels][t].histogram = histogram;
  sources[1][labels][3].value = 1;
  const auto merged = MergeTables(sources);
  REQUIRE(merged.ok());
  model::SampleColumns samples;
  REQUIRE((*merged)->Read(0, &samples).ok());
  REQUIRE(samples.histograms.size() == 4);
  CHECK(samples.histogram_at == std::vector<uint32_t>{0, 1, 3, 4});
  CHECK(samples.histograms[1]->hint == model::ResetHint::kNotReset);
  CHECK(samples.histograms[2]->hint == model::ResetHint::kUnknown);
  CHECK(samples.histograms[3]->hint == model::ResetHint::kNotReset);
}

TEST_CASE("merging nothing and errors of sources", "[merge]") {
  const auto nothing = Merge({});
  REQUIRE(nothing.ok());
  CHECK((*nothing)->size() == 0);
  const Labels broken = Labels::Of({{"broken", "yes"}});
  std::vector<Table> sources(2);
  sources[0][Labels::Of({{"a", "b"}})][1].value = 1;
  sources[0][broken][1].value = 1;
  sources[1][broken][2].value = 1;
  CHECK(MergeTables(sources, 1).status().code() == absl::StatusCode::kResourceExhausted);
  CHECK(MergeTables({sources[0]}, 1).status().code() == absl::StatusCode::kResourceExhausted);
  const auto merged = MergeTables(sources, 2);
  REQUIRE(merged.ok());
  model::SampleColumns samples;
  CHECK((*merged)->Read(0, &samples).ok());
  CHECK((*merged)->Read(1, &samples).code() == absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace varve::block
