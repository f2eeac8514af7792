#include "storage/base/worker_pool.h"

#include <pthread.h>

#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "storage/base/mutex.h"

namespace varve::base {

struct WorkerPool::Impl {
  explicit Impl(size_t max) : queue_max(max) {}
  void Work() {
    for (;;) {
      std::function<void()> task;
      {
        MutexLock lock(mu);
        while (queue.empty() && !stopping) wake.Wait(mu);
        if (queue.empty()) return;
        task = std::move(queue.front());
        queue.pop_front();
      }
      task();
    }
  }
  mutable Mutex mu;  // leaf
  CondVar wake;
  std::deque<std::function<void()>> queue ABSL_GUARDED_BY(mu);
  bool stopping ABSL_GUARDED_BY(mu) = false;
  const size_t queue_max;
  std::vector<std::thread> threads;
};

WorkerPool::WorkerPool(std::string_view name, int threads, size_t queue_max) : impl_(new Impl(queue_max)) {
  for (int i = 0; i < threads; ++i) {
    impl_->threads.emplace_back([impl = impl_.get()] { impl->Work(); });
    pthread_setname_np(impl_->threads.back().native_handle(), std::string(name.substr(0, 15)).c_str());
  }
}

WorkerPool::~WorkerPool() {
  {
    MutexLock lock(impl_->mu);
    impl_->stopping = true;
  }
  impl_->wake.NotifyAll();
  for (std::thread& thread : impl_->threads) thread.join();
}

bool WorkerPool::TryRun(std::function<void()> task) {
  {
    MutexLock lock(impl_->mu);
    if (impl_->stopping || impl_->queue.size() >= impl_->queue_max) return false;
    impl_->queue.push_back(std::move(task));
  }
  impl_->wake.NotifyOne();
  return true;
}

size_t WorkerPool::queued() const {
  MutexLock lock(impl_->mu);
  return impl_->queue.size();
}

}  // namespace varve::base
