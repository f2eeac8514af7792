#pragma once
// How things stop: refuse the new, wait for the running, then destroy.
#include <cstdint>

#include "storage/base/mutex.h"

namespace varve::base {

class Gate {
 public:
  class Pass {  // held while inside; false when the gate was closed
   public:
    Pass() = default;
    Pass(Pass&& other) noexcept : gate_(other.gate_) { other.gate_ = nullptr; }
    Pass& operator=(Pass&& other) noexcept {
      if (this != &other) {
        if (gate_ != nullptr) gate_->Leave();
        gate_ = other.gate_;
        other.gate_ = nullptr;
      }
      return *this;
    }
    ~Pass() {
      if (gate_ != nullptr) gate_->Leave();
    }
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    friend class Gate;
    explicit Pass(Gate* gate) : gate_(gate) {}
    Gate* gate_ = nullptr;
  };

  Pass Enter() {
    MutexLock lock(mu_);
    if (closed_) return Pass();
    ++inside_;
    return Pass(this);
  }
  // Refuses newcomers and returns when the last one has left. May be called more than once.
  void Close() {
    MutexLock lock(mu_);
    closed_ = true;
    while (inside_ > 0) empty_.Wait(mu_);
  }

 private:
  void Leave() {
    MutexLock lock(mu_);
    if (--inside_ == 0) empty_.NotifyAll();
  }
  Mutex mu_;  // leaf
  CondVar empty_;
  int64_t inside_ ABSL_GUARDED_BY(mu_) = 0;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace varve::base
