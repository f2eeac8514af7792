// A block gives back what was written, whatever is asked of it.
#include <fstream>
#include <iterator>
#include <set>

#include "tests/storage/block/sample_data.h"
#include "tests/support/fault_fs.h"

namespace varve::block {
namespace {

using model::Labels;
using model::Matcher;
using model::MatchType;
using model::TimeRange;

std::vector<Matcher> RandomMatchers(base::Dice& dice) {
  static const std::vector<std::tuple<MatchType, const char*, const char*>> kChoices = {
      {MatchType::kEqual, "__name__", "metric_1"},
      {MatchType::kEqual, "mode", ""},
      {MatchType::kEqual, "nothing", "x"},
      {MatchType::kNotEqual, "mode", "idle"},
      {MatchType::kNotEqual, "extra_1", ""},
      {MatchType::kRegex, "instance", "node-1.*"},
      {MatchType::kRegex, "instance", ".+0:9100"},
      {MatchType::kRegex, "extra_0", "1|2|nope"},
      {MatchType::kRegex, "extra_0", "1|"},
      {MatchType::kNotRegex, "instance", "node-(1|2).*"},
      {MatchType::kEqual, "instance", "node-3:9100"},
      {MatchType::kNotRegex, "extra_2", ".+"},
      {MatchType::kRegex, "__name__", "metric_(0|2)"},
      {MatchType::kEqual, "instance", "zzz"},
      {MatchType::kEqual, "instance", "a"}};
  std::vector<Matcher> out;
  for (uint64_t n = dice.Below(3); n > 0; --n) {
    const auto& [type, name, value] = kChoices[dice.Below(kChoices.size())];
    out.push_back(*Matcher::Create(type, name, value));
  }
  return out;
}

bool HasSampleIn(const Points& points, const TimeRange& range) {
  const auto it = points.upper_bound(range.after_ms);
  return it != points.end() && it->first <= range.until_ms;
}

// Selections may include series that have no sample in the range, but never miss or invent samples.
void CheckAnswers(const Reader& reader, const Table& table, const model::SelectRequest& request) {
  const auto selection = reader.SelectHashed(request);
  INFO(selection.status());
  REQUIRE(selection.ok());
  std::set<Labels> seen;
  std::map<std::vector<int64_t>, const void*> columns;
  Labels before;
  model::SampleColumns samples;
  for (size_t i = 0; i < (*selection)->size(); ++i) {
    const Labels labels = (*selection)->labels(i);
    REQUIRE((i == 0 || before < labels));
    before = labels;
    REQUIRE(table.contains(labels));
    REQUIRE(model::MatchesAll(request.matchers, labels));
    REQUIRE((*selection)->hash(i) == model::HashLabels(labels.bytes(), kSeed));
    REQUIRE((*selection)->Read(i, &samples).ok());
    RequireSame(samples, table.at(labels), request.range);
    seen.insert(labels);
  }
  std::set<std::string> names, instances;
  for (const auto& [labels, points] : table) {
    if (!model::MatchesAll(request.matchers, labels) || !HasSampleIn(points, request.range)) continue;
    REQUIRE(seen.contains(labels));
    for (const model::LabelRef label : labels) names.insert(std::string(label.name));
    if (!labels.Get("instance").empty()) instances.insert(std::string(labels.Get("instance")));
  }
  const auto got_names = reader.LabelNames(request);
  const auto got_instances = reader.LabelValues("instance", request);
  REQUIRE((got_names.ok() && got_instances.ok()));
  REQUIRE(std::includes(got_names->begin(), got_names->end(), names.begin(), names.end()));
  REQUIRE(std::includes(got_instances->begin(), got_instances->end(), instances.begin(), instances.end()));
  if (request.range == TimeRange::All()) {
    REQUIRE(*got_names == std::vector<std::string>(names.begin(), names.end()));
    REQUIRE(*got_instances == std::vector<std::string>(instances.begin(), instances.end()));
  }
}

TEST_CASE("a block answers as a table does", "[block]") {
  const uint64_t seed = GENERATE(1u, 2u, 3u, 4u);
  CAPTURE(seed);
  base::Dice dice(seed);
  test::MemFs fs;
  const int scrapes = seed == 4 ? 2500 : static_cast<int>(1 + dice.Below(300));
  const Table table = RandomTable(dice, seed == 4 ? 3 : 40, seed == 4 ? 6 : 12, scrapes, 1'000'000, 1000);
  const BlockMeta meta = WriteBlock(fs, "b", table, {0, 10'000'000});
  const auto reader = Reader::Open(fs, "b");
  INFO(reader.status());
  REQUIRE(reader.ok());
  uint64_t samples = 0;
  int64_t first = INT64_MAX, last = 0;
  for (const auto& [labels, points] : table) {
    samples += points.size();
    first = std::min(first, points.begin()->first);
    last = std::max(last, points.rbegin()->first);
  }
  CHECK(meta.series == table.size());
  CHECK(meta.samples == samples);
  CHECK((*reader)->meta().samples == samples);
  CHECK((*reader)->meta().series == table.size());
  CHECK((*reader)->meta().min_time_ms == first);
  CHECK((*reader)->meta().max_time_ms == last);
  CHECK((*reader)->meta().tenant == "team-a");
  CHECK((*reader)->meta().shard == 3);
  CHECK((*reader)->meta().range == TimeRange{0, 10'000'000});
  CHECK((*reader)->meta().file_bytes == meta.file_bytes);
  CHECK(fs.Bytes("b").size() == meta.file_bytes);
  CHECK((*reader)->Verify().ok());
  CheckAnswers(**reader, table, {});
  for (int i = 0; i < 25; ++i) {
    model::SelectRequest request;
    request.matchers = RandomMatchers(dice);
    if (!dice.OneIn(4)) {
      const int64_t from = dice.Between(first - 10, last + 10);
      request.range = {from, from + dice.Between(-5, last - first)};
    }
    for (const Matcher& matcher : request.matchers) UNSCOPED_INFO(matcher.ToString());
    CheckAnswers(**reader, table, request);
  }
  const auto stats = (*reader)->Stats(3);
  REQUIRE(stats.ok());
  CHECK(stats->series == table.size());
  CHECK(stats->series_by_metric.size() == 3);
  CHECK(stats->series_by_metric[0].value >= stats->series_by_metric[2].value);
}

TEST_CASE("series of one scrape share their time column", "[block]") {
  test::MemFs fs;
  Table table;
  for (int s = 0; s < 50; ++s) {
    for (int i = 0; i < 3000; ++i) {
      if (s == 7 && i == 5) continue;  // one sample missing near the beginning
      table[Labels::Of({{"s", base::StrCat(s)}})][i * 1000 + 3 * (i % 4)] = {
          .value = i * 0.5, .start_ms = 0, .histogram = {}};
    }
  }
  WriteBlock(fs, "b", table, {-1, 10'000'000});
  const auto reader = Reader::Open(fs, "b");
  REQUIRE(reader.ok());
  const auto selection = (*reader)->SelectHashed({.range = {500'000, 2'900'000}, .matchers = {}});
  REQUIRE(selection.ok());
  REQUIRE((*selection)->size() == 50);
  std::set<const void*> columns;
  model::SampleColumns samples;
  for (size_t i = 0; i < 50; ++i) {
    REQUIRE((*selection)->Read(i, &samples).ok());
    columns.insert(samples.times.get());
  }
  CHECK(columns.size() == 2);
  // The one with a gap finds the others again at the next cut: of its three columns only the first is its own.
  const auto stats = (*reader)->Stats(1);
  REQUIRE(stats.ok());
  CHECK(stats->chunks == 150);
  const size_t with_gap = fs.Bytes("b").size();
  table[Labels::Of({{"s", "7"}})][5000 + 3] = {.value = 2.5, .start_ms = 0, .histogram = {}};
  WriteBlock(fs, "b", table, {-1, 10'000'000});
  CHECK(with_gap - fs.Bytes("b").size() < 3000);
}

TEST_CASE("an empty block is a block", "[block]") {
  test::MemFs fs;
  WriteBlock(fs, "b", {}, {0, 100});
  const auto reader = Reader::Open(fs, "b");
  REQUIRE(reader.ok());
  CHECK((*reader)->Verify().ok());
  CHECK((*(*reader)->SelectHashed({}))->size() == 0);
  CHECK((*reader)->LabelNames({})->empty());
}

TEST_CASE("a selection outlives its reader", "[block]") {
  base::Dice dice(9);
  test::MemFs fs;
  const Table table = RandomTable(dice, 2, 2, 10, 1000, 1000);
  WriteBlock(fs, "b", table, {0, 1'000'000});
  auto reader = Reader::Open(fs, "b");
  REQUIRE(reader.ok());
  const auto selection = (*reader)->SelectHashed({});
  reader->reset();
  REQUIRE(fs.Remove("b").ok());
  model::SampleColumns samples;
  REQUIRE((*selection)->Read(0, &samples).ok());
  RequireSame(samples, table.at((*selection)->labels(0)), TimeRange::All());
}

TEST_CASE("limits of a request hold", "[block]") {
  base::Dice dice(9);
  test::MemFs fs;
  WriteBlock(fs, "b", RandomTable(dice, 20, 10, 20, 1000, 1000), {0, 1'000'000});
  const auto reader = Reader::Open(fs, "b");
  REQUIRE(reader.ok());
  model::SelectRequest request;
  request.series_max = 5;
  CHECK((*reader)->SelectHashed(request).status().code() == absl::StatusCode::kResourceExhausted);
  request.series_max = UINT64_MAX;
  base::MemoryBudget small(1000);
  request.memory = &small;
  CHECK((*reader)->SelectHashed(request).status().code() == absl::StatusCode::kResourceExhausted);
  CHECK(small.used() == 0);
  base::MemoryBudget enough(1 << 20);
  request.memory = &enough;
  {
    const auto selection = (*reader)->SelectHashed(request);
    REQUIRE(selection.ok());
    model::SampleColumns samples;
    REQUIRE((*selection)->Read(0, &samples).ok());
    CHECK(enough.used() > 0);
  }
  CHECK(enough.used() == 0);
  base::Cancel cancel;
  cancel.Request();
  request.cancel = &cancel;
  CHECK((*reader)->SelectHashed(request).status().code() == absl::StatusCode::kCancelled);
}

TEST_CASE("the writer refuses what is not a block", "[block]") {
  test::MemFs fs;
  const auto samples = ToColumns({{10, {.value = 1, .start_ms = 0, .histogram = {}}}});
  const Labels a = Labels::Of({{"a", "1"}});
  const Labels b = Labels::Of({{"b", "1"}});
  BlockMeta meta;
  meta.range = {0, 100};
  {
    Writer writer(fs, "b", meta);
    REQUIRE(writer.Add(b, {}, samples).ok());
    CHECK(writer.Add(a, {}, samples).code() == absl::StatusCode::kInvalidArgument);
    CHECK_FALSE(writer.Add(Labels::Of({{"c", "1"}}), {}, samples).ok());
    CHECK_FALSE(writer.Finish().ok());
  }
  {
    Writer writer(fs, "b", meta);
    REQUIRE(writer.Add(a, {}, samples).ok());
    CHECK_FALSE(writer.Add(a, {}, samples).ok());
  }
  for (const int64_t t : {int64_t{0}, int64_t{101}}) {
    Writer writer(fs, "b", meta);
    CHECK_FALSE(writer.Add(a, {}, ToColumns({{t, {.value = 1, .start_ms = 0, .histogram = {}}}})).ok());
  }
  CHECK(fs.Paths().empty());  // nothing is left behind
  {
    Writer writer(fs, "b", meta);
    REQUIRE(writer.Finish().ok());
    CHECK_FALSE(writer.Finish().ok());
    CHECK_FALSE(writer.Add(a, {}, samples).ok());
  }
  CHECK(fs.Paths() == std::vector<std::string>{"b"});
}

TEST_CASE("a block is there whole or not at all", "[block][fault]") {
  base::Dice dice(4);
  const Table table = RandomTable(dice, 3, 4, 30, 1000, 1000);
  const auto write = [&](fs::FileSystem& fs) -> absl::Status {
    BlockMeta meta;
    meta.range = {0, 1'000'000};
    Writer writer(fs, "blocks/b", meta);
    for (const auto& [labels, points] : table) {
      RETURN_IF_ERROR(writer.Add(labels, model::HashLabels(labels.bytes(), kSeed), ToColumns(points)));
    }
    return writer.Finish().status();
  };
  uint64_t calls;
  {
    test::FaultFs fs;
    REQUIRE(fs.CreateFolders("blocks").ok());
    REQUIRE(write(fs).ok());
    calls = fs.mutating_calls();
  }
  REQUIRE(calls > 5);
  for (uint64_t n = 1; n < calls; ++n) {
    CAPTURE(n);
    test::FaultFs fs;
    REQUIRE(fs.CreateFolders("blocks").ok());
    fs.CutPowerAt(n);
    const bool ok = write(fs).ok();
    for (const auto unsynced : {test::Unsynced::kLost, test::Unsynced::kKept, test::Unsynced::kTorn}) {
      const auto after = fs.AfterReboot(unsynced, n);
      const auto reader = Reader::Open(*after, "blocks/b");
      if (reader.ok()) {
        CHECK((*reader)->Verify().ok());
        CHECK((*reader)->meta().series == table.size());
      } else {
        CHECK_FALSE(ok);
        CHECK(reader.status().code() == absl::StatusCode::kNotFound);
      }
      CHECK(write(*after).ok());  // what is left does not stand in the way
    }
    // Without a power cut the temporary file goes away as well.
    test::FaultFs failing;
    REQUIRE(failing.CreateFolders("blocks").ok());
    failing.FailCallAt(n);
    if (!write(failing).ok()) {
      for (const std::string& path : failing.inner().Paths()) CHECK(path == "blocks/b");
    }
  }
}

// What golden/v1.block holds.
Table GoldenTable() {
  Table table;
  const auto put = [&](const Labels& labels, int64_t t, double v) {
    table[labels][t] = {.value = v, .start_ms = 0, .histogram = nullptr};
  };
  for (int i = 0; i < 40; ++i) {
    put(Labels::Of({{"__name__", "cpu_seconds_total"}, {"instance", "a:9100"}}), 15000 * i + 7, 0.25 * i * i);
    put(Labels::Of({{"__name__", "up"}, {"instance", "a:9100"}}), 15000 * i + 7, 1);
    put(Labels::Of({{"__name__", "up"}, {"instance", "b:9100"}}), 15000 * i + 9, i % 7 == 0 ? model::StaleNan() : 1);
  }
  const Labels mixed = Labels::Of({{"__name__", "mixed"}, {"caf\xC3\xA9", "\xE2\x98\x95"}});
  base::Dice dice(1);
  for (int i = 0; i < 10; ++i) {
    put(mixed, 1000 * i + 1, i);
    if (i % 3 == 1) table[mixed][1000 * i + 1].histogram = RandomHistogram(dice);
    if (i % 2 == 1) table[mixed][1000 * i + 1].start_ms = 1000 * i - 500;
  }
  return table;
}

TEST_CASE("version 1 files stay readable", "[block][golden]") {
  std::ifstream in("tests/storage/block/golden/v1.block", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  REQUIRE_FALSE(bytes.empty());
  const auto reader = Reader::OpenBytes(bytes, "v1.block");
  INFO(reader.status());
  REQUIRE(reader.ok());
  CHECK((*reader)->Verify().ok());
  CheckAnswers(**reader, GoldenTable(), {});
  CHECK((*reader)->meta().tenant == "team-a");
}

TEST_CASE("the same samples give the same bytes", "[block]") {
  test::MemFs one, two;
  WriteBlock(one, "b", GoldenTable(), {0, 1'000'000});
  WriteBlock(two, "b", GoldenTable(), {0, 1'000'000});
  CHECK(one.Bytes("b") == two.Bytes("b"));
  if (const char* path = std::getenv("VARVE_WRITE_GOLDEN"); path != nullptr) {  // how the golden file came to be
    std::ofstream(path, std::ios::binary) << one.Bytes("b");
  }
}

}  // namespace
}  // namespace varve::block
