#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace varve::base {

// A fixed number of threads and a bounded queue in front of them. Any thread.
class WorkerPool {
 public:
  WorkerPool(std::string_view name, int threads, size_t queue_max);
  ~WorkerPool();  // runs what is queued, then joins
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  // False when the queue is full or the pool is stopping; the task is then dropped without being run.
  [[nodiscard]] bool TryRun(std::function<void()> task);
  size_t queued() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace varve::base
