#pragma once
#include <atomic>
#include <cstdint>

#include "storage/base/clock.h"

namespace varve::test {

// Stands still unless told. Any thread.
class ManualClock : public base::Clock {
 public:
  explicit ManualClock(int64_t now_ms = 1'700'000'000'000) : now_ms_(now_ms), monotonic_ns_(1'000'000'000) {}
  int64_t NowMs() const override { return now_ms_.load(); }
  int64_t MonotonicNs() const override { return monotonic_ns_.load(); }
  void Advance(int64_t ms) {
    now_ms_ += ms;
    monotonic_ns_ += ms * 1'000'000;
  }
  void SetWallClock(int64_t now_ms) { now_ms_ = now_ms; }  // an administrator's jump: monotonic time goes on as before

 private:
  std::atomic<int64_t> now_ms_;
  std::atomic<int64_t> monotonic_ns_;
};

}  // namespace varve::test
