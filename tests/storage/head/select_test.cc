#include <catch2/catch.hpp>

#include <thread>

#include "tests/storage/head/world.h"

namespace varve::test {
namespace {

model::Labels Cpu(int i) {
  return model::Labels::Of({{"__name__", "cpu"}, {"cpu", std::to_string(i)}, {"mode", i % 2 == 0 ? "idle" : "user"}});
}

void Scrape(World& w, int series, int64_t t) {
  Request request;
  for (int i = 0; i < series; ++i) request.Series(Cpu(i)).Float(t, i % 4 == 0 ? 2.0 : static_cast<double>(t / 7 + i));
  w.Append(request);
}

TEST_CASE("series of one scrape share their time column", "[head][select]") {
  World w;
  for (int k = 0; k < 150; ++k) Scrape(w, 20, 15'000 * k + (k % 7));
  for (const model::TimeRange range : {model::TimeRange::All(), model::TimeRange{100'000, 900'000}}) {
    const auto s = w.Select(range);
    REQUIRE(s->size() == 20);
    model::SampleColumns first;
    REQUIRE(s->Read(0, &first).ok());
    CHECK(first.size() == (range == model::TimeRange::All() ? 150 : 53));
    for (size_t i = 1; i < 20; ++i) {
      model::SampleColumns c;
      REQUIRE(s->Read(i, &c).ok());
      CHECK(c.times == first.times);  // the pointer
    }
  }
  CHECK(w.head->stats().columns == 1);
}

TEST_CASE("targets in one request get columns of their own", "[head][select]") {
  World w;
  for (int k = 0; k < 200; ++k) {
    Request request;
    for (int i = 0; i < 30; ++i) request.Series(Cpu(i)).Float(1000 * k + (i % 3) * 100, k * i);
    w.Append(request);
  }
  CHECK(w.head->stats().columns == 3);
}

TEST_CASE("targets that began together part", "[head][select]") {
  World w;
  for (int k = 0; k < 400; ++k) {
    Request request;
    for (int i = 0; i < 30; ++i) request.Series(Cpu(i)).Float(1000 * k + (k > 0 ? i % 3 : 0), k * i);
    w.Append(request);
  }
  CHECK(w.head->stats().columns == 3);
}

TEST_CASE("matchers and ranges choose", "[head][select]") {
  World w;
  for (int k = 1; k <= 50; ++k) Scrape(w, 6, 1000 * k);
  w.Append(model::Labels::Of({{"__name__", "mem"}}), 1000, 1);
  CHECK(w.Select(model::TimeRange::All(), {model::Matcher::Equal("mode", "idle")})->size() == 3);
  CHECK(w.Select({1000, 50'000})->size() == 6);  // mem has nothing after 1000
  CHECK(w.Select({50'000, 60'000})->size() == 0);
  CHECK(w.Select({0, 999})->size() == 0);
  CHECK(ReadText(*w.Select({0, 2000}, {model::Matcher::Equal("cpu", "0")}), 0) == "1000:2 2000:2");
  CHECK(ReadText(*w.Select({30'000, 34'000}, {model::Matcher::Equal("cpu", "0")}), 0) ==
        "31000:2 32000:2 33000:2 34000:2");
  model::SelectRequest request;
  CHECK(*w.head->LabelNames(request) == std::vector<std::string>{"__name__", "cpu", "mode"});
  CHECK(*w.head->LabelValues("mode", request) == std::vector<std::string>{"idle", "user"});
  request.matchers = {model::Matcher::Equal("cpu", "1")};
  CHECK(*w.head->LabelValues("mode", request) == std::vector<std::string>{"user"});
  request.range = {60'000, 70'000};
  CHECK(w.head->LabelValues("mode", request)->empty());
  const auto stats = w.head->SourceStats(10);
  REQUIRE(stats.ok());
  CHECK(stats->series == 7);
  CHECK(stats->min_time_ms == 1000);
  CHECK(stats->max_time_ms == 50'000);
}

TEST_CASE("a selection has its limits", "[head][select]") {
  World w;
  Scrape(w, 10, 1000);
  model::SelectRequest request;
  request.series_max = 9;
  CHECK(absl::IsResourceExhausted(w.head->Select(request).status()));
  request.series_max = 10;
  base::MemoryBudget budget(100);
  request.memory = &budget;
  CHECK(absl::IsResourceExhausted(w.head->Select(request).status()));
  CHECK(budget.used() == 0);
  base::MemoryBudget more(1 << 20);
  request.memory = &more;
  {
    const auto s = w.head->Select(request);
    REQUIRE(s.ok());
    CHECK(more.used() > 0);
  }
  CHECK(more.used() == 0);
  base::Cancel cancel;
  cancel.Request();
  request.cancel = &cancel;
  request.matchers = {model::Matcher::Create(model::MatchType::kRegex, "mode", ".+").value()};
  CHECK(absl::IsCancelled(w.head->Select(request).status()));
}

TEST_CASE("snapshots are read on other threads while writes go on", "[head][select]") {
  World w;
  for (int k = 0; k < 100; ++k) Scrape(w, 50, 1000 * k);
  const std::string want = Dump(*w.Select());
  const std::shared_ptr<model::HashedSelection> snapshot = w.Select();
  std::vector<std::string> got(3);
  std::vector<std::thread> readers;
  for (std::string& out : got) readers.emplace_back([&out, snapshot] { out = Dump(*snapshot); });
  for (int k = 100; k < 300; ++k) Scrape(w, 60, 1000 * k);
  for (std::thread& t : readers) t.join();
  for (const std::string& out : got) CHECK(out == want);
}

}  // namespace
}  // namespace varve::test
