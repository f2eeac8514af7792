#pragma once
// Where samples come from, as the query engine sees it: a head, a block, a remote store or a table in a test.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/cancel.h"
#include "storage/model/histogram.h"
#include "storage/model/labels.h"
#include "storage/model/matcher.h"
#include "storage/model/time_range.h"
#include "storage/model/write_batch.h"

namespace varve::model {

// A column of timestamps in ms, strictly ascending. Series of one scrape share one: the same pointer is the same
// timestamps, so that work that depends on timestamps alone is done once for all of them.
using TimeColumn = std::shared_ptr<const std::vector<int64_t>>;

// The samples of one series in a range. values[i] belongs to (*times)[i]; staleness markers are samples like others.
struct SampleColumns {
  TimeColumn times;            // never null after a Read; may be empty
  std::vector<double> values;  // size of *times; for positions that hold a histogram: its `sum`
  // Positions that hold a histogram, ascending, with what they hold. Empty for plain series. The hint is as read back
  // from storage: gauge, or unknown for the first of a run and not_reset for the rest.
  std::vector<uint32_t> histogram_at;
  std::vector<std::shared_ptr<const Histogram>> histograms;
  std::vector<int64_t>
      start_times;  // ms, 0 = unknown; empty when there is none in the whole range, else size of *times

  size_t size() const { return times == nullptr ? 0 : times->size(); }
  void Clear() { *this = SampleColumns(); }
};

struct SelectRequest {
  TimeRange range;
  std::vector<Matcher> matchers;         // all must match; may be empty for label requests
  uint64_t series_max = UINT64_MAX;      // more series than this: ResourceExhausted
  const base::Cancel* cancel = nullptr;  // may be null
  base::MemoryBudget* memory = nullptr;  // may be null; charged for what the selection holds, given back by it
};

// The series that match and may have samples in the range, as they were at one moment: writes that come later do not
// show, a write request shows whole or not at all. Sorted by label set. Any thread, also several at once.
class Selection {
 public:
  virtual ~Selection() = default;
  virtual size_t size() const = 0;
  virtual Labels labels(size_t i) const = 0;
  // Decodes the samples in the request's range. DataLoss when stored bytes fail their checksum.
  virtual absl::Status Read(size_t i, SampleColumns* out) const = 0;
};

// A selection that can be merged with others of the same tenant: equal hashes are the same series.
class HashedSelection : public Selection {
 public:
  virtual SeriesHash hash(size_t i) const = 0;
};

struct ExemplarSeries {
  Labels labels;
  std::vector<Exemplar> exemplars;  // ascending in time
};

// Counts for /api/v1/status/tsdb. Lists are sorted by falling value and cut at `limit`.
struct SourceStats {
  struct Entry {
    std::string name;
    uint64_t value;
  };
  uint64_t series = 0, chunks = 0, label_pairs = 0;
  int64_t min_time_ms = 0, max_time_ms = 0;
  std::vector<Entry> series_by_metric, values_by_label, bytes_by_label, series_by_pair;
};

// The data of one tenant. Any thread. Errors: Cancelled, DeadlineExceeded, ResourceExhausted, DataLoss, Unavailable.
class SeriesSource {
 public:
  virtual ~SeriesSource() = default;
  virtual absl::StatusOr<std::unique_ptr<Selection>> Select(const SelectRequest& request) const = 0;
  // Sorted, without repeats; of the series that match and may have samples in the range.
  virtual absl::StatusOr<std::vector<std::string>> LabelNames(const SelectRequest& request) const = 0;
  virtual absl::StatusOr<std::vector<std::string>> LabelValues(std::string_view name,
                                                               const SelectRequest& request) const = 0;
  virtual absl::StatusOr<std::vector<ExemplarSeries>> Exemplars(const SelectRequest& request) const = 0;
  virtual std::vector<Metadata> MetadataFor(std::string_view metric) const = 0;  // "" = all; sorted by metric
  virtual absl::StatusOr<SourceStats> Stats(size_t limit) const = 0;
  // What every answer has to say about data that should be here and is not.
  virtual std::vector<std::string> Warnings() const { return {}; }
};

}  // namespace varve::model
