// Gate, worker pool, cancel and memory budget.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "storage/base/cancel.h"
#include "storage/base/gate.h"
#include "storage/base/worker_pool.h"
#include "tests/support/manual_clock.h"

namespace varve::base {
namespace {

TEST_CASE("a closed gate lets nobody in") {
  Gate gate;
  {
    const Gate::Pass pass = gate.Enter();
    CHECK(pass);
  }
  gate.Close();
  CHECK_FALSE(gate.Enter());
  gate.Close();
}

TEST_CASE("closing a gate waits for the last one inside") {
  Gate gate;
  Gate::Pass first = gate.Enter();
  Gate::Pass second = std::move(first);
  CHECK_FALSE(first);  // NOLINT(bugprone-use-after-move): what moving leaves behind is the question
  CHECK(second);
  std::atomic<bool> left = false, early = false;
  std::thread closer([&] {
    gate.Close();
    if (!left) early = true;
  });
  while (gate.Enter()) std::this_thread::yield();  // until the closer is at it
  left = true;
  second = Gate::Pass();
  closer.join();
  CHECK_FALSE(early);
}

TEST_CASE("a pool runs everything it took and refuses what does not fit") {
  std::atomic<int> ran = 0;
  int taken = 0;
  {
    Gate hold;
    std::atomic<bool> release = false, started = false;
    WorkerPool pool("test", 1, 3);
    REQUIRE(pool.TryRun([&] {
      started = true;
      while (!release) std::this_thread::yield();
      ++ran;
    }));
    ++taken;
    while (!started) std::this_thread::yield();
    for (int i = 0; i < 10; ++i) taken += pool.TryRun([&] { ++ran; }) ? 1 : 0;
    CHECK(taken == 4);
    CHECK(pool.queued() == 3);
    release = true;
  }
  CHECK(ran == taken);
}

TEST_CASE("a pool of several threads loses nothing") {
  std::atomic<int> ran = 0;
  {
    WorkerPool pool("test", 3, 100);
    for (int i = 0; i < 5000; ++i) {
      while (!pool.TryRun([&] { ++ran; })) std::this_thread::yield();
    }
  }
  CHECK(ran == 5000);
}

TEST_CASE("work is cancelled on request or at its deadline") {
  Cancel plain;
  CHECK(plain.Check().ok());
  plain.Request();
  CHECK(absl::IsCancelled(plain.Check()));

  test::ManualClock clock;
  Cancel timed(clock, clock.MonotonicNs() + 5'000'000);
  CHECK(timed.Check().ok());
  clock.SetWallClock(1);  // has no say
  clock.Advance(5);
  CHECK(timed.Check().ok());
  clock.Advance(1);
  CHECK(absl::IsDeadlineExceeded(timed.Check()));
  timed.Request();
  CHECK(absl::IsCancelled(timed.Check()));
}

TEST_CASE("a budget is never exceeded and remembers its peak") {
  MemoryBudget budget(100);
  CHECK(budget.TryCharge(60));
  CHECK_FALSE(budget.TryCharge(41));
  CHECK(budget.used() == 60);
  CHECK(budget.TryCharge(40));
  budget.Release(90);
  CHECK(budget.used() == 10);
  CHECK(budget.peak() == 100);
  CHECK(budget.max() == 100);

  MemoryBudget shared(1000);
  std::atomic<int64_t> held = 0;
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 20'000; ++n) {
        if (!shared.TryCharge(300)) continue;
        if ((held += 300) > 1000) over = true;
        held -= 300;
        shared.Release(300);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(over);
  CHECK(shared.used() == 0);
}

}  // namespace
}  // namespace varve::base
