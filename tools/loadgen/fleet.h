#pragma once
// A simulated fleet: many targets that expose the series of real pages, with values that move plausibly. Everything is
// a function of (seed, target, series, scrape), so whoever knows the configuration can recompute any sample.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/status.h"
#include "storage/model/labels.h"
#include "storage/model/write_batch.h"

namespace varve::loadgen {

struct Page {
  std::string name;  // becomes the job: loadgen-<name>
  std::string text;  // Prometheus text format
};
Page BuiltinPage();  // some 60 series, for when there are no pages at hand

struct FleetConfig {
  uint64_t seed = 1;
  uint64_t series = 100'000;  // over all targets; the last target is cut to fit
  int64_t interval_ms = 15'000;
  int64_t start_ms = 0;   // of scrape 0, before phase and jitter
  int64_t jitter_ms = 2;  // each scrape is off by up to this much
  double churn = 0;       // part of the targets that are replaced (new label set) in ten minutes
};

// Immutable after Create, so any thread.
class Fleet {
 public:
  static absl::StatusOr<Fleet> Create(const FleetConfig& config, const std::vector<Page>& pages);

  const FleetConfig& config() const { return config_; }
  size_t targets() const { return first_series_.size() - 1; }
  size_t series_of(size_t target) const { return first_series_[target + 1] - first_series_[target]; }
  // Ascending in `scrape`; each target has its own place within the interval.
  int64_t TimeMs(size_t target, int64_t scrape) const;
  // How often the target was replaced before this scrape. Each revision has label sets of its own.
  int64_t Revision(size_t target, int64_t scrape) const;
  // Appends canonical label bytes.
  void AppendLabels(size_t target, size_t series, int64_t revision, std::string& out) const;
  double Value(size_t target, size_t series, int64_t scrape) const;

  struct Description {
    std::string_view metric, help;
    model::MetricType type;
  };
  Description Describe(size_t target, size_t series) const;
  // Of all pages, each family once.
  const std::vector<model::Metadata>& metadata() const { return metadata_; }

 private:
  enum class Shape : uint8_t { kConstant, kCounter, kGauge, kBucket, kObservations, kSumOfObservations };
  struct Template {
    std::string before_instance, between, after_revision;  // canonical bytes around the labels that differ by target
    Shape shape = Shape::kConstant;
    double base = 0;        // the page's value
    int decimals = 0;       // that the page's value has
    double share = 1;       // kBucket: of all observations
    uint64_t group = 0;     // the series of a histogram move together
    double group_base = 0;  // observations on the page
    size_t metadata = 0;    // place in metadata_
  };
  struct Exposition {
    std::string job;
    std::vector<Template> series;
  };

  const Exposition& PageOf(size_t target) const { return pages_[target % pages_.size()]; }
  absl::Status AddPage(const Page& page);
  int64_t RevisionBegin(size_t target, int64_t revision) const;
  double Count(uint64_t target_hash, uint64_t series_hash, double base, int64_t revision, int64_t since) const;

  FleetConfig config_;
  std::vector<Exposition> pages_;
  std::vector<size_t> first_series_;  // per target, and one past the last
  std::vector<model::Metadata> metadata_;
  int64_t life_scrapes_ = 0;  // of a target, 0 = for ever
};

}  // namespace varve::loadgen
