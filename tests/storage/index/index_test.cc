// The index against a plain map from slot to labels.
#include "storage/index/index.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <thread>

#include "storage/base/dice.h"
#include "storage/base/strings.h"

namespace varve::index {
namespace {

using base::Dice;
using base::StrCat;
using model::Labels;
using model::Matcher;
using model::MatchType;

using Model = std::map<uint32_t, Labels>;

Labels RandomLabels(Dice& dice) {
  std::vector<model::Label> pairs;
  if (!dice.OneIn(20)) pairs.push_back({"__name__", StrCat("metric_", dice.Below(4))});
  if (!dice.OneIn(5)) pairs.push_back({"instance", StrCat("node-", dice.Below(40), ":9100")});
  if (dice.OneIn(2)) pairs.push_back({"job", dice.OneIn(2) ? "node" : "kubelet"});
  if (dice.OneIn(3)) pairs.push_back({"mode", std::string(1, static_cast<char>('a' + dice.Below(5)))});
  if (dice.OneIn(10)) pairs.push_back({StrCat("rare_", dice.Below(6)), std::string(1 + dice.Below(1500), 'x')});
  return Labels::FromPairs(std::move(pairs));
}

std::vector<Matcher> RandomMatchers(Dice& dice) {
  static const std::vector<std::tuple<MatchType, const char*, const char*>> kChoices = {
      {MatchType::kEqual, "__name__", "metric_1"},
      {MatchType::kEqual, "job", "node"},
      {MatchType::kEqual, "job", ""},
      {MatchType::kEqual, "nothing", ""},
      {MatchType::kEqual, "nothing", "x"},
      {MatchType::kNotEqual, "job", "node"},
      {MatchType::kNotEqual, "job", ""},
      {MatchType::kNotEqual, "nothing", ""},
      {MatchType::kNotEqual, "nothing", "y"},
      {MatchType::kRegex, "instance", "node-1.*"},
      {MatchType::kRegex, "instance", ".*:9100"},
      {MatchType::kRegex, "mode", "a|b|nope"},
      {MatchType::kRegex, "mode", "a|"},
      {MatchType::kRegex, "mode", ".*"},
      {MatchType::kRegex, "mode", ".+"},
      {MatchType::kRegex, "mode", ""},
      {MatchType::kNotRegex, "mode", "a|b"},
      {MatchType::kNotRegex, "mode", ".*"},
      {MatchType::kNotRegex, "mode", ".+"},
      {MatchType::kNotRegex, "instance", "node-(1|2).*"},
      {MatchType::kNotRegex, "job", "node|"},
      {MatchType::kEqual, "instance", "node-3:9100"},
      {MatchType::kRegex, "__name__", "metric_(0|3)"},
      {MatchType::kRegex, "instance", "(?i)NODE-2.*"},
      {MatchType::kNotRegex, "nothing", ".+"},
      {MatchType::kRegex, "nothing", ".+"}};
  std::vector<Matcher> out;
  for (uint64_t n = dice.Below(4); n > 0; --n) {
    const auto& [type, name, value] = kChoices[dice.Below(kChoices.size())];
    out.push_back(*Matcher::Create(type, name, value));
  }
  return out;
}

std::vector<uint32_t> ToVector(const Bitmap& bitmap) {
  std::vector<uint32_t> out(bitmap.cardinality());
  bitmap.toUint32Array(out.data());
  return out;
}

std::vector<uint32_t> ModelMatch(const Model& model, std::span<const Matcher> matchers) {
  std::vector<uint32_t> out;
  for (const auto& [slot, labels] : model) {
    if (model::MatchesAll(matchers, labels)) out.push_back(slot);
  }
  return out;
}

void CheckAgrees(const Index& index, const Model& model, Dice& dice) {
  REQUIRE(index.series_count() == model.size());
  std::map<std::string, std::set<std::string>> values;
  std::map<std::string, uint64_t> metrics;
  for (const auto& [slot, labels] : model) {
    REQUIRE(index.LabelsOf(slot) == labels);
    REQUIRE(index.GetValue(slot, "instance") == labels.Get("instance"));
    for (const model::LabelRef label : labels) values[std::string(label.name)].insert(std::string(label.value));
    if (!labels.Get("__name__").empty()) ++metrics[std::string(labels.Get("__name__"))];
  }
  std::vector<std::string> names;
  uint64_t pairs = 0;
  for (const auto& [name, of_name] : values) {
    names.push_back(name);
    pairs += of_name.size();
    REQUIRE(index.LabelValues(name) == std::vector<std::string>(of_name.begin(), of_name.end()));
  }
  REQUIRE(index.LabelNames() == names);
  REQUIRE(index.LabelValues("nothing").empty());
  for (int i = 0; i < 10; ++i) {
    const std::vector<Matcher> matchers = RandomMatchers(dice);
    for (const Matcher& matcher : matchers) UNSCOPED_INFO(matcher.ToString());
    const auto found = index.Match(matchers, nullptr);
    REQUIRE(found.ok());
    const std::vector<uint32_t> expected = ModelMatch(model, matchers);
    REQUIRE(ToVector(*found) == expected);
    std::set<std::string> some_names, instances;
    for (const uint32_t slot : expected) {
      for (const model::LabelRef label : model.at(slot)) some_names.insert(std::string(label.name));
      if (const auto value = model.at(slot).Get("instance"); !value.empty()) instances.insert(std::string(value));
    }
    REQUIRE(index.LabelNames(&*found) == std::vector<std::string>(some_names.begin(), some_names.end()));
    REQUIRE(index.LabelValues("instance", &*found) == std::vector<std::string>(instances.begin(), instances.end()));
  }
  model::SourceStats stats;
  index.FillStats(2, stats);
  REQUIRE(stats.series == model.size());
  REQUIRE(stats.label_pairs == pairs);
  REQUIRE(stats.series_by_metric.size() == std::min<size_t>(2, metrics.size()));
  uint64_t most = 0;
  for (const auto& [metric, count] : metrics) most = std::max(most, count);
  if (most > 0) REQUIRE(stats.series_by_metric[0].value == most);
}

TEST_CASE("random adds and removals agree with a map", "[index]") {
  const uint64_t seed = GENERATE(1u, 2u, 3u, 4u, 5u, 6u);
  CAPTURE(seed);
  Dice dice(seed);
  Index index;
  Model model;
  // What readers were handed, and what they must go on seeing.
  struct Reader {
    Pin pin;
    std::vector<LabelList> lists;
    std::vector<Labels> expected;
  };
  std::vector<Reader> readers;
  const uint32_t slots = dice.OneIn(2) ? 100 : 3000;
  for (int step = 0; step < 60; ++step) {
    const uint64_t adds = dice.Below(slots / 4);
    for (uint64_t i = 0; i < adds; ++i) {
      const uint32_t slot = dice.OneIn(3) ? static_cast<uint32_t>(dice.Below(slots))
                                          : static_cast<uint32_t>(model.empty() ? 0 : model.rbegin()->first + 1);
      if (model.contains(slot)) continue;
      const Labels labels = RandomLabels(dice);
      index.AddSeries(slot, labels);
      model[slot] = labels;
    }
    if (dice.OneIn(3)) {
      std::vector<uint32_t> gone = {1u << 30};
      const bool all = dice.OneIn(8);
      for (const auto& [slot, labels] : model) {
        if (all || dice.OneIn(4)) gone.push_back(slot);
      }
      index.RemoveSeries(gone);
      for (const uint32_t slot : gone) model.erase(slot);
    }
    if (dice.OneIn(4) && !model.empty()) {
      Reader reader{index.TakePin(), {}, {}};
      for (const auto& [slot, labels] : model) {
        reader.lists.push_back(index.ListOf(slot));
        reader.expected.push_back(labels);
      }
      readers.push_back(std::move(reader));
    }
    for (const Reader& reader : readers) {
      for (size_t i = 0; i < reader.lists.size(); i += 7)
        REQUIRE(reader.pin.Build(reader.lists[i]) == reader.expected[i]);
    }
    if (dice.OneIn(3) && !readers.empty())
      readers.erase(readers.begin() + static_cast<ptrdiff_t>(dice.Below(readers.size())));
    if (step % 6 == 5) CheckAgrees(index, model, dice);
  }
  CheckAgrees(index, model, dice);
}

TEST_CASE("memory of removed series is used again", "[index]") {
  Index index;
  size_t after_first = 0;
  for (int round = 0; round < 30; ++round) {
    std::vector<uint32_t> slots;
    for (uint32_t slot = 0; slot < 5000; ++slot) {
      index.AddSeries(slot, Labels::Of({{"__name__", "m"}, {"pod", StrCat("pod-", round, "-", slot)}}));
      slots.push_back(slot);
    }
    index.RemoveSeries(slots);
    REQUIRE(index.LabelNames().empty());
    REQUIRE(index.LabelValues("pod").empty());
    if (round == 1) after_first = index.BytesUsed();
  }
  CHECK(index.BytesUsed() <= after_first + after_first / 4);
}

TEST_CASE("a pin outlives its index", "[index]") {
  auto index = std::make_unique<Index>();
  const Labels labels = Labels::Of({{"__name__", "up"}, {"job", "node"}});
  index->AddSeries(7, labels);
  const Pin pin = index->TakePin();
  const LabelList list = index->ListOf(7);
  index->RemoveSeries(std::vector<uint32_t>{7});
  index.reset();
  CHECK(pin.Build(list) == labels);
  CHECK(pin.Get(list, "job") == "node");
  CHECK(pin.Get(list, "none").empty());
}

TEST_CASE("readers on other threads see their labels while series come and go", "[index]") {
  Index index;
  Dice dice(11);
  std::vector<std::thread> threads;
  for (int round = 0; round < 40; ++round) {
    std::vector<uint32_t> slots;
    auto lists = std::make_shared<std::vector<std::pair<LabelList, Labels>>>();
    for (uint32_t slot = 0; slot < 200; ++slot) {
      const Labels labels = Labels::Of({{"round", StrCat(round)}, {"slot", StrCat(slot)}});
      index.AddSeries(slot, labels);
      lists->emplace_back(index.ListOf(slot), labels);
      slots.push_back(slot);
    }
    threads.emplace_back([pin = index.TakePin(), lists] {
      for (const auto& [list, labels] : *lists) {
        if (pin.Build(list) != labels) std::abort();
      }
    });
    index.RemoveSeries(slots);
    if (dice.OneIn(3)) {
      for (std::thread& thread : threads) thread.join();
      threads.clear();
    }
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(index.series_count() == 0);
}

TEST_CASE("sorting by ids is sorting by labels", "[index]") {
  const uint64_t seed = GENERATE(1u, 2u, 3u);
  CAPTURE(seed);
  Dice dice(seed);
  Index index;
  std::vector<Labels> all;
  for (uint32_t slot = 0; slot < 2000; ++slot) {
    Labels labels = RandomLabels(dice);
    if (seed == 3) {  // more label positions than fit into a 64-bit key
      for (int i = 0; i < 12; ++i) {
        if (!dice.OneIn(3)) labels = model::With(labels, StrCat("l", i), StrCat(dice.Below(i < 9 ? 3000 : 2)));
      }
    }
    index.AddSeries(slot, labels);
    all.push_back(labels);
  }
  std::vector<LabelList> lists;
  for (uint32_t slot = 0; slot < all.size(); ++slot) lists.push_back(index.ListOf(slot));
  const std::vector<uint32_t> order = SortByLabels(index.TakePin(), lists);
  REQUIRE(order.size() == all.size());
  for (size_t i = 1; i < order.size(); ++i) REQUIRE(all[order[i - 1]] <= all[order[i]]);
}

TEST_CASE("a dump loads into the same index", "[index]") {
  Dice dice(5);
  Index index;
  Model model;
  for (uint32_t slot = 0; slot < 4000; ++slot) {
    if (dice.OneIn(5)) continue;
    model[slot] = RandomLabels(dice);
    index.AddSeries(slot, model[slot]);
  }
  std::vector<uint32_t> gone;
  for (const auto& [slot, labels] : model) {
    if (dice.OneIn(10)) gone.push_back(slot);
  }
  index.RemoveSeries(gone);
  for (const uint32_t slot : gone) model.erase(slot);

  std::vector<std::string_view> texts;
  std::map<PairId, uint32_t> text_of;
  for (PairId pair = 0; pair < index.pair_end(); ++pair) {
    if (index.PairBytes(pair).empty()) continue;
    text_of[pair] = static_cast<uint32_t>(texts.size());
    texts.push_back(index.PairBytes(pair));
  }
  Index loaded;
  const std::string unused = std::string(Labels::Of({{"unused", "label"}}).bytes());
  texts.push_back(unused);
  const auto ids = loaded.InternPairs(texts);
  REQUIRE(ids.ok());
  // In two parts, the second of which meets postings that exist.
  std::vector<uint32_t> slots, ends;
  std::vector<PairId> pairs;
  const auto flush = [&] {
    REQUIRE(loaded.BulkAdd(slots, ends, pairs).ok());
    slots.clear(), ends.clear(), pairs.clear();
  };
  for (const auto& [slot, labels] : model) {
    slots.push_back(slot);
    for (const PairId pair : index.ListOf(slot).pairs()) pairs.push_back((*ids)[text_of[pair]]);
    ends.push_back(static_cast<uint32_t>(pairs.size()));
    if (slots.size() == 1500 || (slot > 3990 && slots.size() == 1)) flush();  // large parts, then very small ones
  }
  flush();
  CheckAgrees(loaded, model, dice);
  loaded.DropUnused();
  CheckAgrees(loaded, model, dice);
  loaded.AddSeries(100000, Labels::Of({{"unused", "label"}}));
  CHECK(loaded.SeriesWith("unused", "label") == 1);
}

TEST_CASE("a bad dump is refused and adds nothing", "[index]") {
  Index index;
  const std::string good(Labels::Of({{"a", "b"}}).bytes());
  const std::string two(Labels::Of({{"a", "b"}, {"c", "d"}}).bytes());
  const std::string empty_value(
      "\x0A\x05\x0A\x01"
      "a\x12\x00",
      7);
  const std::string long_varint(
      "\x0A\x86\x00\x0A\x01"
      "a\x12\x01"
      "b",
      9);
  for (const std::string& bad : {two, empty_value, long_varint, good.substr(0, 5), std::string("x"), std::string()}) {
    CHECK(index.InternPairs(std::vector<std::string_view>{good, bad}).status().code() ==
          absl::StatusCode::kInvalidArgument);
  }
  CHECK(index.LabelNames().empty());
  const auto ids = index.InternPairs(std::vector<std::string_view>{good});
  REQUIRE(ids.ok());
  const PairId id = (*ids)[0];
  using U = std::vector<uint32_t>;
  CHECK_FALSE(index.BulkAdd(U{1}, U{1}, U{id + 1}).ok());
  CHECK_FALSE(index.BulkAdd(U{1, 1}, U{1, 2}, U{id, id}).ok());
  CHECK_FALSE(index.BulkAdd(U{1, 2}, U{2, 1}, U{id, id}).ok());
  CHECK_FALSE(index.BulkAdd(U{1, 2}, U{2, 1}, U{id}).ok());
  CHECK_FALSE(index.BulkAdd(U{1}, U{}, U{id}).ok());
  CHECK_FALSE(index.BulkAdd(U{1}, U{2}, U{id, id}).ok());
  CHECK_FALSE(index.BulkAdd(U{}, U{}, U{id}).ok());
  CHECK(index.series_count() == 0);
  CHECK(index.BulkAdd(U{3}, U{1}, U{id}).ok());
  CHECK_FALSE(index.BulkAdd(U{3}, U{1}, U{id}).ok());
  CHECK(index.LabelsOf(3) == Labels::Of({{"a", "b"}}));
}

TEST_CASE("matching stops when it is cancelled", "[index]") {
  Index index;
  index.AddSeries(0, Labels::Of({{"a", "b"}}));
  base::Cancel cancel;
  cancel.Request();
  const std::vector<Matcher> matchers = {Matcher::Equal("a", "b")};
  CHECK(index.Match(matchers, &cancel).status().code() == absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace varve::index
