#pragma once
#include <chrono>
#include <functional>
#include <vector>

#include "storage/base/mutex.h"

namespace varve::roles {

// A bounded queue of tasks in front of one thread. Whoever sends to several mailboxes and wants them to agree on an
// order reserves a place in each first: a reserved place is never refused.
template <class Owner>
class Mailbox {
 public:
  using Task = std::function<void(Owner&)>;

  explicit Mailbox(size_t capacity) : capacity_(capacity) {}

  // False when it is full or closed.
  [[nodiscard]] bool TryReserve() {
    base::MutexLock lock(mu_);
    if (closed_ || tasks_.size() + reserved_ >= capacity_) return false;
    ++reserved_;
    return true;
  }
  void Unreserve() {
    base::MutexLock lock(mu_);
    --reserved_;
  }
  void PushReserved(Task task) {
    {
      base::MutexLock lock(mu_);
      --reserved_;
      tasks_.push_back(std::move(task));
    }
    filled_.NotifyOne();
  }
  // For the owner's own helpers: past the capacity, which is there to hold back the outside. False when closed.
  bool PushAlways(Task task) {
    {
      base::MutexLock lock(mu_);
      if (closed_) return false;
      tasks_.push_back(std::move(task));
    }
    filled_.NotifyOne();
    return true;
  }
  // Swaps what waits into `out` (cleared first), waiting up to `timeout` for the first. False once it is closed and
  // empty.
  bool PopAll(std::chrono::nanoseconds timeout, std::vector<Task>& out) {
    out.clear();
    base::MutexLock lock(mu_);
    if (tasks_.empty() && !closed_ && timeout.count() > 0) filled_.WaitFor(mu_, timeout);
    out.swap(tasks_);
    return !(out.empty() && closed_ && reserved_ == 0);
  }
  void Close() {
    {
      base::MutexLock lock(mu_);
      closed_ = true;
    }
    filled_.NotifyOne();
  }
  size_t size() const {
    base::MutexLock lock(mu_);
    return tasks_.size();
  }

 private:
  const size_t capacity_;
  mutable base::Mutex mu_;  // leaf
  base::CondVar filled_;
  std::vector<Task> tasks_ ABSL_GUARDED_BY(mu_);
  size_t reserved_ ABSL_GUARDED_BY(mu_) = 0;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace varve::roles
