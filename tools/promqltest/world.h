#pragma once
// Where the samples of a script live while it runs. One script runs in several worlds: a table in memory, a head, ...
#include <memory>
#include <span>
#include <vector>

#include "storage/base/status.h"
#include "storage/model/histogram.h"
#include "storage/model/labels.h"
#include "storage/model/series_source.h"
#include "tools/promqltest/script.h"

namespace varve::promqltest {

struct WorldSample {
  int64_t t_ms = 0;
  double value = 0;
  std::shared_ptr<const model::Histogram> histogram;  // instead of the value; null for floats
  int64_t start_ms = 0;                               // 0: unknown
};
struct WorldSeries {
  model::Labels labels;
  std::vector<WorldSample> samples;  // ascending in time
};

class World {
 public:
  virtual ~World() = default;
  // Everything is gone.
  virtual absl::Status Clear() = 0;
  // Stores all of it or fails. No series occurs twice; a sample must not be older than its series' newest, and may only
  // repeat that one with the same value.
  virtual absl::Status Append(std::span<const WorldSeries> series) = 0;
  // Valid until the next call of Clear or Append.
  virtual const model::SeriesSource& source() const = 0;
};

// What a load command stores: positions become times, classic histograms also native ones where that is asked for.
// Sorted by labels.
absl::StatusOr<std::vector<WorldSeries>> Expand(const Load& load);

// Samples in memory. Histograms read back with the hints that a chunked store shows (FORMAT.md, section 7).
class TableWorld : public World {
 public:
  TableWorld();
  ~TableWorld() override;
  absl::Status Clear() override;
  absl::Status Append(std::span<const WorldSeries> series) override;
  const model::SeriesSource& source() const override;

 private:
  class Source;
  std::unique_ptr<Source> source_;
};

}  // namespace varve::promqltest
