// Sync on its own thread, as the group commit has it.
#include <atomic>
#include <thread>

#include "tests/storage/wal/log_fixture.h"

namespace varve::test {
namespace {

struct Written {
  uint32_t number;
  wal::Position at_or_after;
};

TEST_CASE("what a sync on another thread vouched for survives whatever else fails") {
  const bool failing = GENERATE(false, true);
  CAPTURE(failing);
  LogWorld world;
  FaultFs fs;
  auto log = world.Open(fs, 16'384);
  base::Mutex mu;
  std::vector<Written> written;
  std::atomic<bool> done = false;
  size_t vouched = 0, failures = 0;
  std::thread syncer([&] {
    for (int round = 0; !done; ++round) {
      if (failing && round % 5 == 4) fs.FailSyncs(1);
      size_t before = 0;
      {
        base::MutexLock lock(mu);
        before = written.size();
      }
      if (log->Sync().ok())
        vouched = before;
      else
        ++failures;
      std::this_thread::yield();
    }
  });
  for (uint32_t i = 0; i < 5000; ++i) {
    const wal::Position at = log->position();
    if (i % 500 == 0) log->Rotate();
    if (!log->Write(Numbered(i, 40)).ok()) continue;
    base::MutexLock lock(mu);
    written.push_back({i, at});
  }
  done = true;
  syncer.join();
  CHECK(written.size() + failures >= 5000);
  CHECK((failing || failures == 0));
  const wal::Position doubtful = log->doubtful().value_or(wal::Position());
  const ReadBackResult read = ReadBack(*fs.AfterReboot());
  base::MutexLock lock(mu);
  for (size_t i = 0; i < vouched; ++i) {
    if (written[i].at_or_after < doubtful) continue;
    if (!std::binary_search(read.numbers.begin(), read.numbers.end(), written[i].number)) {
      FAIL("record " << written[i].number << " is gone");
    }
  }
}

}  // namespace
}  // namespace varve::test
