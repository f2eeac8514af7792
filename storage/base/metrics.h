#pragma once
// The process' own metrics, in Prometheus' data model. A component has a struct of them that is handed in:
//   struct Metrics { Counter& samples; explicit Metrics(Registry& r) : samples(r.AddCounter("varve_x_total", "Help."))
//   {} };
// Names start with varve_, end with their unit, counters with _total.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/base/mutex.h"

namespace varve::base {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

class Counter {  // any thread
 public:
  void Add(uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

class Gauge {  // any thread
 public:
  void Set(double v) { value_.store(v, std::memory_order_relaxed); }
  void Add(double d) { value_.fetch_add(d, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class Histogram {  // classic buckets; any thread
 public:
  explicit Histogram(std::vector<double> upper_bounds);  // ascending, without +Inf
  void Observe(double v);
  static std::vector<double> LatencySeconds();  // 100 us to 60 s
  const std::vector<double>& bounds() const { return bounds_; }
  uint64_t bucket(size_t i) const { return buckets_[i].load(std::memory_order_relaxed); }  // not cumulative
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::vector<double> bounds_;
  std::unique_ptr<std::atomic<uint64_t>[]> buckets_;  // bounds_.size() + 1
  std::atomic<double> sum_{0};
};

// Any thread. Metrics live as long as the registry. Asking twice for the same name and labels gives the same metric;
// the same name with another type is our own fault and stops the process.
class Registry {
 public:
  Registry();
  ~Registry();
  Counter& AddCounter(std::string_view name, std::string_view help, MetricLabels labels = {});
  Gauge& AddGauge(std::string_view name, std::string_view help, MetricLabels labels = {});
  Histogram& AddHistogram(std::string_view name, std::string_view help, std::vector<double> upper_bounds,
                          MetricLabels labels = {});
  // A gauge that is read when the page is asked for. `read` must stay callable as long as the registry lives.
  void AddGaugeFunction(std::string_view name, std::string_view help, MetricLabels labels,
                        std::function<double()> read);

  // The page in Prometheus' text format 0.0.4, families sorted by name.
  std::string Exposition() const;
  // Name, type and help of every family, sorted by name; docs/metrics.md is made of it.
  struct Family {
    std::string name, type, help;
  };
  std::vector<Family> Families() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace varve::base
