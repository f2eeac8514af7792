#pragma once
#include <cstdint>

namespace varve::base {

// Time is a parameter. Every method may be called from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t NowMs() const = 0;        // wall clock, milliseconds since the Unix epoch
  virtual int64_t MonotonicNs() const = 0;  // never goes back; for durations and deadlines
};

class SystemClock : public Clock {
 public:
  int64_t NowMs() const override;
  int64_t MonotonicNs() const override;
};

}  // namespace varve::base
