#include <catch2/catch.hpp>

#include <set>

#include "storage/base/dice.h"
#include "tests/storage/head/world.h"
#include "tests/support/fault_fs.h"

namespace varve::test {
namespace {

model::Labels Nth(int i) { return model::Labels::Of({{"__name__", "m"}, {"i", std::to_string(i)}}); }

void Scrape(World& w, int series, int64_t t) {
  Request request;
  for (int i = 0; i < series; ++i) request.Series(Nth(i)).Float(t, i % 2 == 0 ? 1.5 : static_cast<double>(t + i));
  REQUIRE(w.Append(request).samples_stored == static_cast<uint64_t>(series));
}

TEST_CASE("a restart without a checkpoint finds everything in the log", "[head][restart]") {
  World w;
  for (int k = 0; k < 100; ++k) Scrape(w, 10, 1000 * k);
  const std::string before = Dump(*w.Select());
  w.Restart();
  CHECK(Dump(*w.Select()) == before);
  w.Restart();
  CHECK(Dump(*w.Select()) == before);
}

TEST_CASE("slices taken while writes go on make one checkpoint", "[head][restart]") {
  World w;
  int64_t t = 0;
  for (int k = 0; k < 50; ++k) Scrape(w, 40, t += 1000);
  w.TakeCheckpoint(7, [&] { Scrape(w, 45, t += 1000); });
  for (int k = 0; k < 5; ++k) Scrape(w, 45, t += 1000);
  const std::string before = Dump(*w.Select());
  w.Restart();
  CHECK(Dump(*w.Select()) == before);
  Scrape(w, 45, t += 1000);
  CHECK(w.head->active_series() == 45);
}

TEST_CASE("a checkpoint with any byte changed is refused", "[head][restart]") {
  World w;
  for (int k = 0; k < 40; ++k) Scrape(w, 3, 1000 * k);
  Request request;
  request.Series(Nth(0)).Hist(100'000, {}).Series(Nth(1)).Float(500, 2);
  w.Append(request);
  w.TakeCheckpoint(2, [] {});
  const std::string good = w.checkpoint.head_bytes;
  REQUIRE(w.sealed->LoadCheckpoint(w.checkpoint.sealed_bytes).ok());
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    head::Head h({3, kSeed}, *w.sealed);
    const absl::Status status = h.LoadCheckpoint(bad);
    INFO("byte " << i);
    CHECK(absl::IsDataLoss(status));
  }
  for (size_t n = 0; n < good.size(); n += 1 + n / 16) {
    head::Head h({3, kSeed}, *w.sealed);
    CHECK(absl::IsDataLoss(h.LoadCheckpoint(std::string_view(good).substr(0, n))));
  }
  for (size_t i = 0; i < w.checkpoint.sealed_bytes.size(); ++i) {
    std::string bad = w.checkpoint.sealed_bytes;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    CHECK(absl::IsDataLoss(w.sealed->LoadCheckpoint(bad)));
  }
}

TEST_CASE("sealed bytes that went bad are data loss and no crash", "[head][fault]") {
  World w;
  for (int k = 0; k < 2000; ++k) Scrape(w, 4, 1000 * k);
  std::string path;
  for (const std::string& p : w.fs.Paths()) {
    if (p.starts_with("sealed/")) path = p;
  }
  REQUIRE(!path.empty());
  w.TakeCheckpoint();
  const std::string good = w.fs.Bytes(path);
  base::Dice dice(5);
  int lost = 0;
  for (int k = 0; k < 60; ++k) {
    std::string bad = good;
    const auto at = dice.Below(bad.size());
    bad[at] = static_cast<char>(bad[at] ^ (1 + dice.Below(255)));
    w.fs.Overwrite(path, bad);
    w.Restart();
    const auto selection = w.Select();
    REQUIRE(selection->size() == 4);
    for (size_t i = 0; i < 4; ++i) {
      model::SampleColumns columns;
      const absl::Status status = selection->Read(i, &columns);
      CHECK((status.ok() || absl::IsDataLoss(status)));
      lost += status.ok() ? 0 : 1;
    }
  }
  CHECK(lost > 0);
}

TEST_CASE("a full disk keeps sealed blocks in memory until there is room", "[head][fault]") {
  FaultFs fs;
  head::SealedLogConfig config;
  config.block_bytes = 4096;
  auto log = head::SealedLog::Open(fs, "sealed", config);
  REQUIRE(log.ok());
  std::vector<uint64_t> positions;
  const auto body = [](size_t i) { return base::StrCat("record number ", i, std::string(i % 90, 'x')); };
  const auto fill = [&] {
    for (int k = 0; k < 300; ++k) positions.push_back((*log)->Append(body(positions.size())));
  };
  const auto check = [&] {
    const head::SealedView view = (*log)->view();
    for (size_t i = 0; i < positions.size(); ++i) {
      const auto got = view.Read(positions[i]);
      REQUIRE(got.ok());
      REQUIRE(*got == body(i));
    }
  };
  fill();
  CHECK((*log)->blocks_waiting() == 0);
  fs.SetSpace(100);
  fill();
  CHECK((*log)->blocks_waiting() > 1);
  check();
  std::string checkpoint;
  CHECK(absl::IsResourceExhausted((*log)->WriteCheckpoint(checkpoint)));
  fs.SetSpace(UINT64_MAX);
  fill();
  CHECK((*log)->blocks_waiting() == 0);
  check();
  checkpoint.clear();
  REQUIRE((*log)->WriteCheckpoint(checkpoint).ok());

  // What a checkpoint names survives a power cut.
  const auto disk = fs.AfterReboot();
  auto again = head::SealedLog::Open(*disk, "sealed", config);
  REQUIRE((*again)->LoadCheckpoint(checkpoint).ok());
  const head::SealedView view = (*again)->view();
  for (size_t i = 0; i < positions.size(); ++i) REQUIRE(*view.Read(positions[i]) == body(i));
  CHECK((*again)->end() == (*log)->end());
}

TEST_CASE("positions that hold nothing are data loss", "[head]") {
  World w;
  for (int k = 0; k < 100; ++k) Scrape(w, 2, 1000 * k);
  const head::SealedView view = w.sealed->view();
  for (uint64_t p = 0; p < w.sealed->end() + 100; ++p) {
    const auto got = view.Read(p);
    if (!got.ok()) CHECK(absl::IsDataLoss(got.status()));
  }
}

TEST_CASE("series that ended leave when a block has what they held", "[head][forget]") {
  World w;
  for (int k = 0; k < 100; ++k) Scrape(w, 4, 1000 * k);
  w.Append(Nth(1), 200'000, model::StaleNan());
  w.Append(Nth(2), 200'000, model::StaleNan());
  size_t cursor = 0;
  const auto idle = w.head->CollectIdle(w.now_ms, 3'600'000, 100, &cursor);
  REQUIRE(idle.size() == 2);
  CHECK(*w.head->Forget(idle, w.log) == 0);  // nothing has been cut
  cursor = 0;
  w.head->SealOlderThan(INT64_MAX, 1000, &cursor);
  const uint64_t below = w.sealed->end();
  const auto cut = w.head->StartCut(0, below);
  REQUIRE(cut->size() == 4);
  CHECK(ReadText(*cut, 1).ends_with("99000:99001 200000:stale"));
  w.Append(Nth(2), 201'000, 5);  // back again
  w.sealed->AdvanceFloor(below);
  CHECK(*w.head->Forget(idle, w.log) == 1);
  CHECK(w.head->active_series() == 3);
  CHECK(*w.head->LabelValues("i", {}) == std::vector<std::string>{"0", "2", "3"});
  CHECK(Dump(*w.Select()) == "m{i=\"2\"} 201000:5\n");
  CHECK(ReadText(*cut, 1).ends_with("200000:stale"));  // still readable for who holds it
  // Its slot is used again; records of the old series do not hit the new one.
  w.Append(Nth(9), 300'000, 7);
  const std::string before = Dump(*w.Select());
  CHECK(before == "m{i=\"2\"} 201000:5\nm{i=\"9\"} 300000:7\n");
  w.TakeCheckpoint();
  w.Restart();
  CHECK(Dump(*w.Select()) == before);
  w.checkpoint = {};
  w.Restart();  // from the log alone, which has all samples of the series that stayed
  CHECK(w.head->active_series() == 4);
  CHECK(ReadText(*w.Select(), 3) == "300000:7");
}

TEST_CASE("forgetting waits for a checkpoint", "[head][forget]") {
  World w;
  w.Append(Nth(1), 1000, 1);
  w.Append(Nth(1), 2000, model::StaleNan());
  size_t cursor = 0;
  const auto idle = w.head->CollectIdle(w.now_ms, 3'600'000, 100, &cursor);
  w.sealed->AdvanceFloor(w.sealed->end());
  std::string out;
  w.head->StartCheckpoint(w.Now(), out);
  CHECK(*w.head->Forget(idle, w.log) == 0);
  w.head->AbandonCheckpoint();
  w.log_failures = 1;
  CHECK(!w.head->Forget(idle, w.log).ok());
  CHECK(w.head->active_series() == 1);
  CHECK(*w.head->Forget(idle, w.log) == 1);
  CHECK(w.head->active_series() == 0);
}

}  // namespace
}  // namespace varve::test
