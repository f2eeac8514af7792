#include "storage/wal/writer.h"

#include <numeric>

#include "storage/base/dice.h"
#include "tests/storage/wal/log_fixture.h"

namespace varve::test {
namespace {

std::vector<uint32_t> Range(uint32_t begin, uint32_t end) {
  std::vector<uint32_t> out(end - begin);
  std::iota(out.begin(), out.end(), begin);
  return out;
}

TEST_CASE("what was written is read in order over many segments") {
  LogWorld world;
  MemFs fs;
  auto log = world.Open(fs, 4096);
  for (uint32_t i = 0; i < 100; ++i) REQUIRE(log->Write(Numbered(i, 200)).ok());
  const ReadBackResult read = ReadBack(fs);
  CHECK(read.numbers == Range(0, 100));
  CHECK(read.report.segments > 4);
  CHECK(read.report.damages.empty());
  CHECK_FALSE(read.report.torn);
  CHECK(std::is_sorted(read.begins.begin(), read.begins.end()));
  CHECK(log->bytes_on_disk() == [&] {
    uint64_t bytes = 0;
    for (const auto& path : fs.Paths()) bytes += fs.Bytes(path).size();
    return bytes;
  }());
  CHECK(world.metrics.records.value() == 100);
}

TEST_CASE("positions say which records a captured state contains") {
  LogWorld world;
  MemFs fs;
  auto log = world.Open(fs, 4096);
  std::vector<wal::Position> before;
  for (uint32_t i = 0; i < 60; ++i) {
    if (i % 7 == 3) log->Rotate();
    before.push_back(log->position());
    REQUIRE(log->Write(Numbered(i, 200)).ok());
  }
  for (uint32_t i = 0; i < 60; ++i) {
    const ReadBackResult read = ReadBack(fs, before[i]);
    CHECK(read.numbers == Range(i, 60));
    CHECK(read.report.damages.empty());
  }
  CHECK(ReadBack(fs, log->position()).numbers.empty());
}

TEST_CASE("a restart goes on in a new segment") {
  LogWorld world;
  MemFs fs;
  for (uint32_t i = 0; i < 5; ++i) {
    auto log = world.Open(fs);
    REQUIRE(log->Write(Numbered(i)).ok());
  }
  const ReadBackResult read = ReadBack(fs);
  CHECK(read.numbers == Range(0, 5));
  CHECK(read.report.segments == 5);
}

TEST_CASE("segment numbers never go back below the checkpoint") {
  LogWorld world;
  MemFs fs;
  wal::Position checkpoint;
  {
    auto log = world.Open(fs);
    REQUIRE(log->Write(Numbered(1)).ok());
    log->Rotate();
    checkpoint = log->position();
    REQUIRE(log->DropBefore(checkpoint.segment).ok());
    CHECK(fs.Paths().size() == 1);  // the newest stays, so that its number is known
  }
  {
    auto log = world.Open(fs);
    CHECK(log->position() >= checkpoint);
  }
  REQUIRE(fs.Remove(SegmentPath(1)).ok());
  wal::WriterConfig config;
  config.first_segment = checkpoint.segment;
  auto log = wal::Writer::Open(fs, kFolder, config, world.clock, world.metrics);
  REQUIRE(log.ok());
  CHECK((*log)->position() >= checkpoint);
}

TEST_CASE("old segments are dropped and the rest stays readable") {
  LogWorld world;
  MemFs fs;
  auto log = world.Open(fs, 4096);
  for (uint32_t i = 0; i < 100; ++i) REQUIRE(log->Write(Numbered(i, 200)).ok());
  const wal::Position from = ReadBack(fs).begins[50];
  REQUIRE(log->DropBefore(from.segment).ok());
  CHECK(ReadBack(fs, from).numbers == Range(50, 100));
  REQUIRE(log->DropBefore(1000).ok());
  CHECK(fs.Paths().size() == 1);
  REQUIRE(log->Write(Numbered(100)).ok());
}

TEST_CASE("the preamble stands at the head of every later segment") {
  LogWorld world;
  MemFs fs;
  auto log = world.Open(fs);
  REQUIRE(log->Write(Numbered(1)).ok());
  log->AddPreamble(Numbered(100));
  log->AddPreamble(Numbered(101));
  REQUIRE(log->Write(Numbered(2)).ok());
  for (uint32_t i = 3; i < 5; ++i) {
    log->Rotate();
    REQUIRE(log->Write(Numbered(i)).ok());
  }
  CHECK(ReadBack(fs).numbers == std::vector<uint32_t>{1, 2, 100, 101, 3, 100, 101, 4});
}

TEST_CASE("a full disk refuses writes and takes them again when there is space") {
  LogWorld world;
  const uint64_t space = GENERATE(0u, 10u, 24u, 30u, 500u, 2000u);
  FaultFs fs;
  auto log = world.Open(fs, 4096);
  fs.SetSpace(space);
  std::vector<uint32_t> written;
  for (uint32_t i = 0; i < 40; ++i) {
    const absl::Status status = log->Write(Numbered(i, 100));
    if (status.ok())
      written.push_back(i);
    else
      CHECK(absl::IsResourceExhausted(status));
    if (i == 30) fs.SetSpace(1u << 20u);
  }
  CHECK(written.size() >= 9);
  CHECK(written.back() == 39);
  CHECK(world.metrics.write_errors.value() > 0);
  REQUIRE(log->Sync().ok());
  const auto after = fs.AfterReboot();
  const ReadBackResult read = ReadBack(*after);
  CHECK(read.numbers == written);
  CHECK(read.report.damages.empty());
}

TEST_CASE("a segment that cannot be cut back is left behind") {
  LogWorld world;
  FaultFs fs;
  auto log = world.Open(fs);
  REQUIRE(log->Write(Numbered(1)).ok());
  fs.FailTruncates(true);
  fs.SetSpace(20);
  CHECK(absl::IsResourceExhausted(log->Write(Numbered(2, 100))));
  fs.SetSpace(1000);
  REQUIRE(log->Write(Numbered(3)).ok());
  REQUIRE(log->Sync().ok());
  const auto after = fs.AfterReboot(Unsynced::kKept);
  const ReadBackResult read = ReadBack(*after);
  CHECK(read.numbers == std::vector<uint32_t>{1, 3});
  REQUIRE(read.report.damages.size() == 1);
  CHECK(read.report.damages[0].segment == 1);
}

TEST_CASE("any single failing call leaves what succeeded and nothing else") {
  uint64_t calls = 0;
  for (uint64_t fail = 0; fail == 0 || fail <= calls; ++fail) {
    CAPTURE(fail);
    LogWorld world;
    FaultFs fs;
    auto log = world.Open(fs, 4096);
    if (fail > 0) fs.FailCallAt(fs.mutating_calls() + fail - 1);
    const uint64_t begin = fs.mutating_calls();
    std::vector<uint32_t> written;
    bool sync_failed = false;
    for (uint32_t i = 0; i < 40; ++i) {
      if (log->Write(Numbered(i, 300)).ok()) written.push_back(i);
      if (i % 4 == 0) sync_failed |= !log->Sync().ok();
    }
    const bool last_sync = log->Sync().ok();
    if (fail == 0) {
      calls = fs.mutating_calls() - begin;
      CHECK(written.size() == 40);
    }
    CHECK(written.size() >= 39);
    CHECK(ReadBack(fs).numbers == written);
    CHECK(log->doubtful().has_value() == (sync_failed || !last_sync));
    if (!sync_failed && last_sync) CHECK(ReadBack(*fs.AfterReboot()).numbers == written);
  }
  CHECK(calls > 50);
}

TEST_CASE("whatever was synced survives a power cut at any call") {
  // Which outcome the unsynced part has is up to the seed.
  for (const Unsynced unsynced : {Unsynced::kLost, Unsynced::kKept, Unsynced::kTorn}) {
    bool was_cut = true;
    for (uint64_t cut = 0; was_cut; ++cut) {
      CAPTURE(cut, static_cast<int>(unsynced));
      FaultFs fs;
      fs.CutPowerAt(cut);
      uint32_t acknowledged = 0, tried = 0;
      LogWorld world;
      if (auto log = world.Open(fs, 4096)) {
        for (uint32_t i = 0; i < 40 && !fs.power_is_off(); ++i) {
          tried = i + 1;
          const bool ok = log->Write(Numbered(i, 300)).ok();
          if (ok && i % 3 == 0 && log->Sync().ok()) acknowledged = i + 1;
        }
      }
      was_cut = fs.power_is_off();
      const auto after = fs.AfterReboot(unsynced, cut);
      ReadBackResult read = ReadBack(*after);
      // All that was acknowledged, then perhaps some of what was not, in order.
      REQUIRE(read.numbers.size() >= acknowledged);
      CHECK(std::vector<uint32_t>(read.numbers.begin(), read.numbers.begin() + acknowledged) == Range(0, acknowledged));
      CHECK(std::is_sorted(read.numbers.begin(), read.numbers.end()));
      if (!read.numbers.empty()) CHECK(read.numbers.back() < tried);

      // The next process cuts the tail off and goes on; the one after it sees no damage that was not there before.
      REQUIRE(wal::CutTornTail(*after, kFolder, read.report).ok());
      auto log = world.Open(*after, 4096);
      REQUIRE(log != nullptr);
      REQUIRE(log->Write(Numbered(1000)).ok());
      REQUIRE(log->Sync().ok());
      const ReadBackResult again = ReadBack(*after->AfterReboot());
      read.numbers.push_back(1000);
      CHECK(again.numbers == read.numbers);
      CHECK(again.report.damages.size() == read.report.damages.size());
      CHECK_FALSE(again.report.torn);
    }
  }
}

TEST_CASE("after a failed sync only newer records are vouched for until a checkpoint has been made") {
  LogWorld world;
  FaultFs fs;
  auto log = world.Open(fs);
  REQUIRE(log->Write(Numbered(1)).ok());
  REQUIRE(log->Sync().ok());
  REQUIRE(log->Write(Numbered(2)).ok());
  fs.FailSyncs(1);
  CHECK_FALSE(log->Sync().ok());
  REQUIRE(log->doubtful());
  CHECK(world.metrics.sync_errors.value() == 1);
  const wal::Position doubtful = *log->doubtful();
  REQUIRE(log->Write(Numbered(3)).ok());
  REQUIRE(log->Sync().ok());
  CHECK(log->doubtful() == doubtful);
  CHECK(ReadBack(fs).numbers == std::vector<uint32_t>{1, 2, 3});
  CHECK(ReadBack(*fs.AfterReboot()).numbers == std::vector<uint32_t>{1, 3});  // 2 is what the caller was warned of
  // The state, with 1 and 2, is on disk now.
  REQUIRE(log->DropBefore(doubtful.segment).ok());
  CHECK_FALSE(log->doubtful());
  CHECK(ReadBack(*fs.AfterReboot(), doubtful).numbers == std::vector<uint32_t>{3});
}

TEST_CASE("a sync that has nothing to do costs no call") {
  LogWorld world;
  FaultFs fs;
  auto log = world.Open(fs);
  REQUIRE(log->Write(Numbered(1)).ok());
  REQUIRE(log->Sync().ok());
  const uint64_t calls = fs.mutating_calls();
  REQUIRE(log->Sync().ok());
  CHECK(fs.mutating_calls() == calls);
  CHECK(log->synced() == log->position());
}

TEST_CASE("bytes of a process that was killed are saved before new ones are vouched for") {
  LogWorld world;
  FaultFs fs;
  REQUIRE(world.Open(fs)->Write(Numbered(1)).ok());  // never synced; the kernel has it
  auto log = world.Open(fs);
  REQUIRE(log->Write(Numbered(2)).ok());
  REQUIRE(log->Sync().ok());
  CHECK(ReadBack(*fs.AfterReboot()).numbers == std::vector<uint32_t>{1, 2});
}

TEST_CASE("nonsense in the configuration is refused") {
  LogWorld world;
  MemFs fs;
  wal::WriterConfig config;
  config.segment_bytes = 10;
  CHECK_FALSE(wal::Writer::Open(fs, kFolder, config, world.clock, world.metrics).ok());
  config = {};
  config.first_segment = 0;
  CHECK_FALSE(wal::Writer::Open(fs, kFolder, config, world.clock, world.metrics).ok());
}

}  // namespace
}  // namespace varve::test
