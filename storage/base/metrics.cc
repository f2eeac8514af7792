#include "storage/base/metrics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <variant>

#include "storage/base/check.h"
#include "storage/base/strings.h"

namespace varve::base {

Histogram::Histogram(std::vector<double> upper_bounds)
    : bounds_(std::move(upper_bounds)), buckets_(new std::atomic<uint64_t>[bounds_.size() + 1]) {
  VARVE_CHECK(std::is_sorted(bounds_.begin(), bounds_.end()));
  for (size_t i = 0; i <= bounds_.size(); ++i) buckets_[i] = 0;
}

void Histogram::Observe(double v) {
  const size_t i = static_cast<size_t>(std::lower_bound(bounds_.begin(), bounds_.end(), v) - bounds_.begin());
  buckets_[i].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(v, std::memory_order_relaxed);
}

std::vector<double> Histogram::LatencySeconds() {
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
}

struct Registry::Impl {
  using Metric = std::variant<std::unique_ptr<Counter>, std::unique_ptr<Gauge>, std::unique_ptr<Histogram>,
                              std::function<double()>>;
  struct Entry {
    std::string type, help;
    std::map<std::string, Metric> by_labels;  // key: rendered labels without braces
  };

  Metric& Find(std::string_view name, std::string_view type, std::string_view help, const MetricLabels& labels)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    Entry& entry = families[std::string(name)];
    if (entry.type.empty()) entry.type = type, entry.help = help;
    VARVE_CHECK_MSG(entry.type == type, name);
    return entry.by_labels[Render(labels)];
  }
  static std::string Render(const MetricLabels& labels) {
    std::string out;
    for (const auto& [key, value] : labels) {
      StrAppend(out, out.empty() ? "" : ",", key, "=\"");
      for (const char c : value) {
        if (c == '\\')
          out += "\\\\";
        else if (c == '"')
          out += "\\\"";
        else if (c == '\n')
          out += "\\n";
        else
          out += c;
      }
      out += '"';
    }
    return out;
  }

  mutable Mutex mu;  // leaf, except that gauge functions run under it while the page is made
  std::map<std::string, Entry> families ABSL_GUARDED_BY(mu);
};

Registry::Registry() : impl_(new Impl) {}
Registry::~Registry() = default;

Counter& Registry::AddCounter(std::string_view name, std::string_view help, MetricLabels labels) {
  MutexLock lock(impl_->mu);
  Impl::Metric& metric = impl_->Find(name, "counter", help, labels);
  auto& slot = std::get<std::unique_ptr<Counter>>(metric);
  if (slot == nullptr) slot = std::make_unique<Counter>();
  return *slot;
}

Gauge& Registry::AddGauge(std::string_view name, std::string_view help, MetricLabels labels) {
  MutexLock lock(impl_->mu);
  Impl::Metric& metric = impl_->Find(name, "gauge", help, labels);
  if (metric.index() != 1) metric = std::make_unique<Gauge>();
  return *std::get<std::unique_ptr<Gauge>>(metric);
}

Histogram& Registry::AddHistogram(std::string_view name, std::string_view help, std::vector<double> upper_bounds,
                                  MetricLabels labels) {
  MutexLock lock(impl_->mu);
  Impl::Metric& metric = impl_->Find(name, "histogram", help, labels);
  if (metric.index() != 2) metric = std::make_unique<Histogram>(std::move(upper_bounds));
  return *std::get<std::unique_ptr<Histogram>>(metric);
}

void Registry::AddGaugeFunction(std::string_view name, std::string_view help, MetricLabels labels,
                                std::function<double()> read) {
  MutexLock lock(impl_->mu);
  impl_->Find(name, "gauge", help, labels) = std::move(read);
}

namespace {
void AppendValue(std::string& out, double v) {
  if (std::isnan(v))
    out += "NaN";
  else if (std::isinf(v))
    out += v > 0 ? "+Inf" : "-Inf";
  else
    StrAppend(out, v);
}
void AppendSample(std::string& out, std::string_view name, std::string_view labels, std::string_view extra, double v) {
  out += name;
  if (!labels.empty() || !extra.empty()) {
    StrAppend(out, "{", labels, labels.empty() || extra.empty() ? "" : ",", extra, "}");
  }
  out += ' ';
  AppendValue(out, v);
  out += '\n';
}
}  // namespace

std::string Registry::Exposition() const {
  std::string out;
  MutexLock lock(impl_->mu);
  for (const auto& [name, family] : impl_->families) {
    StrAppend(out, "# HELP ", name, " ", family.help, "\n# TYPE ", name, " ", family.type, "\n");
    for (const auto& [labels, metric] : family.by_labels) {
      switch (metric.index()) {
        case 0:
          AppendSample(out, name, labels, "", static_cast<double>(std::get<0>(metric)->value()));
          break;
        case 1:
          AppendSample(out, name, labels, "", std::get<1>(metric)->value());
          break;
        case 2: {
          const Histogram& histogram = *std::get<2>(metric);
          uint64_t count = 0;
          for (size_t i = 0; i <= histogram.bounds().size(); ++i) {
            count += histogram.bucket(i);
            std::string le = "le=\"";
            if (i < histogram.bounds().size())
              AppendValue(le, histogram.bounds()[i]);
            else
              le += "+Inf";
            le += '"';
            AppendSample(out, StrCat(name, "_bucket"), labels, le, static_cast<double>(count));
          }
          AppendSample(out, StrCat(name, "_sum"), labels, "", histogram.sum());
          AppendSample(out, StrCat(name, "_count"), labels, "", static_cast<double>(count));
          break;
        }
        default:
          AppendSample(out, name, labels, "", std::get<3>(metric)());
      }
    }
  }
  return out;
}

std::vector<Registry::Family> Registry::Families() const {
  std::vector<Family> out;
  MutexLock lock(impl_->mu);
  for (const auto& [name, family] : impl_->families) out.push_back({name, family.type, family.help});
  return out;
}

}  // namespace varve::base
