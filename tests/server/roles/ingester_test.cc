#include "server/roles/ingester.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <future>
#include <map>
#include <set>
#include <thread>

#include "storage/base/dice.h"
#include "storage/fs/posix_fs.h"
#include "tests/support/fault_fs.h"
#include "tests/support/manual_clock.h"
#include "tests/support/process.h"

namespace varve::roles {
namespace {

using Model = std::map<std::string, std::map<int64_t, double>>;  // label text -> time -> value

struct Item {
  model::Labels labels;
  std::vector<std::pair<int64_t, double>> samples;
};

template <class Clock, class Fs = fs::PosixFileSystem>
struct WorldOn {
  test::TempDir dir;
  Fs own_fs;
  fs::FileSystem* fs = &own_fs;
  Clock clock;
  base::Logger log = base::Logger::Silent();
  std::unique_ptr<base::Registry> registry;
  std::unique_ptr<Ingester> ingester;
  std::shared_ptr<model::Limits> limits = std::make_shared<model::Limits>();
  uint32_t shards = 3;
  int64_t now = clock.NowMs();

  std::function<void(ShardConfig&)> configure;

  WorldOn() { Start(); }
  explicit WorldOn(std::function<void(ShardConfig&)> c) : configure(std::move(c)) { Start(); }
  void Start() {
    registry = std::make_unique<base::Registry>();
    IngesterConfig config;
    config.data_dir = dir / "data";
    std::filesystem::create_directories(config.data_dir);  // of the lock, whose file is always a real one
    config.shards = shards;
    config.shard.checkpoint_interval_ms = 3'600'000;
    if (configure) configure(config.shard);
    auto opened = Ingester::Open(config, *fs, clock, log, *registry);
    INFO(opened.status().ToString());
    REQUIRE(opened.ok());
    ingester = *std::move(opened);
  }
  void Restart(bool checkpoint) {
    ingester->Stop(checkpoint);
    ingester.reset();
    Start();
    for (const std::string& loss : ingester->RecoveryLosses()) FAIL(loss);
  }

  model::WriteResult Push(const std::vector<Item>& items, std::string_view tenant = "t") {
    auto batch = std::make_shared<model::WriteBatch>();
    for (const Item& item : items) {
      batch->bodies.emplace_back(item.labels.bytes());
      model::WriteBatch::Series series;
      series.labels = batch->bodies.back();
      series.hash = model::HashLabels(series.labels, ingester->hash_seed());
      series.float_begin = static_cast<uint32_t>(batch->values.size());
      series.float_count = static_cast<uint32_t>(item.samples.size());
      for (const auto& [t, v] : item.samples) {
        batch->timestamps.push_back(t);
        batch->values.push_back(v);
      }
      batch->series.push_back(series);
    }
    auto promise = std::make_shared<std::promise<model::WriteResult>>();
    ingester->Push(tenant, batch, limits, {}, [promise](const absl::Status& status, model::WriteResult result) {
      if (!status.ok()) result.samples_stored = UINT64_MAX;
      promise->set_value(std::move(result));
    });
    auto answer = promise->get_future();
    REQUIRE(answer.wait_for(std::chrono::minutes(1)) == std::future_status::ready);
    return answer.get();
  }
  std::set<std::string> Names() {  // values of the label id
    model::SelectRequest request;
    const auto values = ingester->SourceFor("t")->LabelValues("id", request);
    REQUIRE(values.ok());
    return {values->begin(), values->end()};
  }
  Model ReadAll(std::string_view tenant = "t", model::TimeRange range = model::TimeRange::All()) {
    model::SelectRequest request;
    request.range = range;
    const auto source = ingester->SourceFor(tenant);
    auto selection = source->Select(request);
    INFO(selection.status().ToString());
    REQUIRE(selection.ok());
    Model out;
    for (size_t i = 0; i < (*selection)->size(); ++i) {
      model::SampleColumns columns;
      const absl::Status status = (*selection)->Read(i, &columns);
      INFO(status.ToString());
      REQUIRE(status.ok());
      if (columns.size() == 0) continue;
      auto& series = out[(*selection)->labels(i).ToString()];
      for (size_t k = 0; k < columns.size(); ++k) series[(*columns.times)[k]] = columns.values[k];
    }
    return out;
  }
};

using World = WorldOn<base::SystemClock>;
using ManualWorld = WorldOn<test::ManualClock>;

model::Labels Name(int i) {
  return model::Labels::Of({{"__name__", "m"}, {"id", std::to_string(i)}, {"job", i % 2 == 0 ? "a" : "b"}});
}

TEST_CASE("what was pushed is read back before and after restarts and flushes") {
  World world;
  Model expected;
  for (int round = 0; round < 5; ++round) {
    std::vector<Item> items;
    for (int s = 0; s < 50; ++s) {
      const int64_t t = world.now - 300'000 + round * 15'000;
      items.push_back({Name(s), {{t, s * 1.5 + round}}});
      expected[Name(s).ToString()][t] = s * 1.5 + round;
    }
    const model::WriteResult result = world.Push(items);
    CHECK(result.samples_stored == 50);
    CHECK(result.AllStored());
    CHECK(world.ReadAll() == expected);
    if (round == 1) world.Restart(false);
    if (round == 2) REQUIRE(world.ingester->Flush().ok());
    if (round == 3) world.Restart(true);
    CHECK(world.ReadAll() == expected);
  }
  world.Restart(false);
  CHECK(world.ReadAll() == expected);
  CHECK(world.ReadAll("somebody else").empty());
}

TEST_CASE("random writes, flushes, crashes and restarts agree with a map") {
  const uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  base::Dice dice(seed);
  World world;
  Model expected;
  std::map<std::string, int64_t> newest;
  for (int step = 0; step < 150; ++step) {
    if (dice.OneIn(25)) world.Restart(dice.OneIn(2));
    if (dice.OneIn(20)) REQUIRE(world.ingester->Flush().ok());
    std::vector<Item> items;
    const int64_t t = world.now - 3'000'000 + step * 10'000;
    for (int s = 0; s < 40; ++s) {
      if (dice.OneIn(6)) continue;
      const int64_t late = dice.OneIn(12) ? -dice.Between(1, 500'000) : dice.OneIn(5) ? dice.Between(-3, 3) : 0;
      const double v = dice.OneIn(3) ? 7.0 : static_cast<double>(dice.Between(-100, 100)) / 4;
      items.push_back({Name(s), {{t + late, v}}});
    }
    const model::WriteResult result = world.Push(items);
    uint64_t stored = 0;
    for (const auto& item : items) {
      auto& series = expected[item.labels.ToString()];
      for (const auto& [when, v] : item.samples) {
        auto [it, fresh] = newest.try_emplace(item.labels.ToString(), when);
        if (!fresh && when < it->second - world.limits->out_of_order_window_ms) continue;  // too old
        it->second = std::max(it->second, when);
        const auto existing = series.find(when);
        if (existing != series.end() && existing->second != v) continue;  // another value is there
        series[when] = v;
        ++stored;
      }
    }
    CHECK(result.samples_stored == stored);
    if (step % 10 == 0) CHECK(world.ReadAll() == expected);
  }
  std::erase_if(expected, [](const auto& entry) { return entry.second.empty(); });
  CHECK(world.ReadAll() == expected);
  world.Restart(false);
  CHECK(world.ReadAll() == expected);
}

TEST_CASE("a request shows on all shards or on none") {
  World world;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; i < 300; ++i) {
      std::vector<Item> items;
      for (int s = 0; s < 60; ++s) items.push_back({Name(s), {{world.now - 400'000 + i * 1000, i * 1.0}}});
      world.Push(items);
    }
    stop = true;
  });
  int reads = 0;
  while (!stop) {
    const Model seen = world.ReadAll();
    if (seen.empty()) continue;
    CHECK(seen.size() == 60);
    for (const auto& [labels, samples] : seen) CHECK(samples.size() == seen.begin()->second.size());
    ++reads;
  }
  writer.join();
  CHECK(reads > 0);
}

TEST_CASE("with every write synced a repeated request is answered though it logs nothing") {
  World world([](ShardConfig& config) { config.wal_sync = WalSync::kAlways; });
  const Item item{Name(1), {{world.now, 1}}};
  CHECK(world.Push({item}).samples_stored == 1);
  const model::WriteResult again = world.Push({item});
  CHECK(again.samples_stored == 1);
  CHECK(again.duplicates == 1);
}

TEST_CASE("what a failed sync lost is not acknowledged before a checkpoint has it") {
  using FaultyWorld = WorldOn<test::ManualClock, test::FaultFs>;
  FaultyWorld world([](ShardConfig& config) { config.wal_sync = WalSync::kAlways; });
  const Item item{Name(1), {{world.now, 1}}};
  const Item later{Name(1), {{world.now + 1000, 2}}};
  world.own_fs.FailSyncs(1'000'000);  // those of checkpoints included
  CHECK(world.Push({item}).samples_stored == UINT64_MAX);
  CHECK(world.Push({item}).samples_stored == UINT64_MAX);  // stored already, but not safe
  world.own_fs.FailSyncs(0);
  // Checkpoints are tried again after a while. As senders do it: the first answer that is no refusal counts.
  model::WriteResult result;
  REQUIRE(test::Eventually([&] {
    world.clock.Advance(10'000);
    return (result = world.Push({item})).samples_stored != UINT64_MAX;
  }));
  CHECK(result.duplicates == 1);
  CHECK(world.Push({later}).samples_stored == 1);
  const std::unique_ptr<test::MemFs> rebooted = world.own_fs.AfterReboot();
  world.ingester->Stop(false);
  world.ingester.reset();
  world.fs = rebooted.get();
  world.Start();
  CHECK(world.ReadAll() == Model{{Name(1).ToString(), {{world.now, 1}, {world.now + 1000, 2}}}});
  world.ingester.reset();  // before its files
}

TEST_CASE("labels in any order are one series on one shard") {
  World world;
  // b before a, and an empty label: the same series as {a="1", b="2"}.
  auto batch = std::make_shared<model::WriteBatch>();
  const std::string sorted(model::Labels::Of({{"__name__", "x"}, {"a", "1"}, {"b", "2"}}).bytes());
  const std::string name(model::Labels::Of({{"__name__", "x"}}).bytes());
  const std::string a(model::Labels::Of({{"a", "1"}}).bytes());
  const std::string b(model::Labels::Of({{"b", "2"}}).bytes());
  for (const std::string& wire : {b + a + name, sorted, a + name + b}) {
    batch->bodies.push_back(wire);
    model::WriteBatch::Series series;
    series.labels = batch->bodies.back();
    series.hash = model::HashLabels(wire, world.ingester->hash_seed());
    series.float_begin = static_cast<uint32_t>(batch->values.size());
    series.float_count = 1;
    batch->timestamps.push_back(world.now - 1000 + static_cast<int64_t>(batch->values.size()));
    batch->values.push_back(1);
    batch->series.push_back(series);
  }
  std::promise<void> done;
  world.ingester->Push("t", batch, world.limits, {},
                       [&](const absl::Status&, const model::WriteResult&) { done.set_value(); });
  done.get_future().get();
  const Model seen = world.ReadAll();
  REQUIRE(seen.size() == 1);
  CHECK(seen.begin()->second.size() == 3);
}

TEST_CASE("a second process is kept out of the data directory") {
  World world;
  base::Registry registry;
  IngesterConfig config;
  config.data_dir = world.dir / "data";
  const auto second = Ingester::Open(config, *world.fs, world.clock, world.log, registry);
  CHECK(absl::IsFailedPrecondition(second.status()));
}

TEST_CASE("the series limit counts all shards") {
  World world;
  world.limits->series_max = 10;
  std::vector<Item> items;
  for (int s = 0; s < 30; ++s) items.push_back({Name(s), {{world.now, 1.0}}});
  model::WriteResult result = world.Push(items);
  // One request may race itself over three shards; from then on the count is known everywhere.
  CHECK(result.samples_stored >= 10);
  CHECK(result.samples_stored <= 30);
  items.clear();
  for (int s = 100; s < 130; ++s) items.push_back({Name(s), {{world.now, 1.0}}});
  result = world.Push(items);
  CHECK(result.samples_stored == 0);
  CHECK(result.rejections[static_cast<size_t>(model::Reason::kSeriesLimit)].series == 30);
}

TEST_CASE("retention removes what is old by time and by arrival and nothing else") {
  constexpr int64_t kHour = 3'600'000;
  ManualWorld world([](ShardConfig& shard) { shard.retention_ms = 24 * kHour; });
  const int64_t now = world.clock.NowMs();
  world.Push({{Name(1), {{now - 100 * 24 * kHour, 1.0}}}});  // backfilled: old, but it came just now
  world.Push({{Name(2), {{now, 2.0}}}});
  REQUIRE(world.ingester->Flush().ok());
  world.clock.Advance(23 * kHour);
  world.Push({{Name(3), {{world.clock.NowMs(), 3.0}}}});
  REQUIRE(world.ingester->Flush().ok());
  CHECK(world.ReadAll().size() == 3);
  world.clock.Advance(2 * kHour);
  // The first block is more than a day old by then; its chunks left the head once two checkpoints had been written.
  CHECK(test::Eventually([&] {
    world.clock.Advance(11'000);
    const Model seen = world.ReadAll();
    return seen.size() == 1 && seen.count(Name(3).ToString()) == 1;
  }));
}

TEST_CASE("ended series leave the head and can still be read") {
  ManualWorld world([](ShardConfig& shard) {
    shard.idle_cut_interval_ms = 60'000;
    shard.idle_after_ms = int64_t{1} << 40;  // the clock runs fast; series without a marker stay
  });
  std::vector<Item> items;
  std::vector<Item> markers;
  const int64_t now = world.clock.NowMs();
  for (int s = 0; s < 6000; ++s) {
    items.push_back({Name(s), {{now, s * 1.0}}});
    if (s >= 1500) markers.push_back({Name(s), {{now + 1000, model::StaleNan()}}});
  }
  world.Push(items);
  world.Push(markers);
  CHECK(world.ingester->active_series() == 6000);
  CHECK(test::Eventually(
      [&] {
        world.clock.Advance(20'000);
        return world.ingester->active_series() == 1500;
      },
      110'000));
  CHECK(world.Names().size() == 6000);
  // One of them comes back, and is one series with its past.
  world.Push({{Name(5999), {{world.clock.NowMs(), 5.0}}}});
  const Model seen = world.ReadAll();
  CHECK(seen.size() == 6000);
  CHECK(seen.at(Name(5999).ToString()).size() == 3);
  world.Restart(false);
  CHECK(world.ReadAll().size() == 6000);
}

}  // namespace
}  // namespace varve::roles
