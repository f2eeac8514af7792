#pragma once
// How work ends early, and how much memory it may take. Both are parameters of everything that can run long.
#include <atomic>
#include <cstdint>
#include <limits>

#include "storage/base/clock.h"
#include "storage/base/status.h"

namespace varve::base {

// Cancelled by anybody, asked by the workers. Any thread; must outlive the work.
class Cancel {
 public:
  Cancel() = default;
  Cancel(const Clock& clock, int64_t deadline_monotonic_ns) : clock_(&clock), deadline_ns_(deadline_monotonic_ns) {}
  void Request() { requested_.store(true, std::memory_order_relaxed); }
  // OK, CancelledError or DeadlineExceededError. Cheap enough to be asked once per series.
  absl::Status Check() const {
    if (requested_.load(std::memory_order_relaxed)) return absl::CancelledError("cancelled");
    if (clock_ != nullptr && clock_->MonotonicNs() > deadline_ns_) return absl::DeadlineExceededError("timed out");
    return absl::OkStatus();
  }
  int64_t deadline_monotonic_ns() const { return deadline_ns_; }

 private:
  std::atomic<bool> requested_{false};
  const Clock* clock_ = nullptr;
  int64_t deadline_ns_ = std::numeric_limits<int64_t>::max();
};

// Bytes that a piece of work has been promised. Charge before allocating. Any thread.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t bytes_max = std::numeric_limits<int64_t>::max()) : max_(bytes_max) {}
  [[nodiscard]] bool TryCharge(int64_t bytes) {
    const int64_t used = used_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (used > max_) {
      used_.fetch_sub(bytes, std::memory_order_relaxed);
      return false;
    }
    int64_t peak = peak_.load(std::memory_order_relaxed);
    while (used > peak && !peak_.compare_exchange_weak(peak, used, std::memory_order_relaxed)) {
    }
    return true;
  }
  void Release(int64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  int64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  int64_t max() const { return max_; }

 private:
  const int64_t max_;
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> peak_{0};
};

}  // namespace varve::base
