#pragma once
// Where functions over ranges get their samples: a range selector or a subquery. Series by series, staleness markers
// gone, and for each step the window of positions that lie in (end - range, end].
#include "query/exec/operator.h"

namespace varve::exec {

struct RangeGeometry {
  Grid grid;
  int64_t offset_ms = 0, range_ms = 0;
  std::optional<int64_t> at_ms;
  int64_t End(size_t i) const { return at_ms.value_or(grid.At(i)) - offset_ms; }
  int64_t Start(size_t i) const { return End(i) - range_ms; }
};

class RangeSource {
 public:
  RangeSource(const RangeGeometry& geometry, bool subquery) : geometry_(geometry), subquery_(subquery) {}
  virtual ~RangeSource() = default;
  virtual absl::Status Open() = 0;
  const std::vector<SeriesInfo>& series() const { return series_; }
  std::vector<SeriesInfo> TakeSeries() { return std::move(series_); }
  // The samples of the next series. Equal `times` pointers are equal times, as in model::SampleColumns.
  virtual absl::Status Next(model::SampleColumns& out) = 0;
  const RangeGeometry& geometry() const { return geometry_; }
  bool is_subquery() const { return subquery_; }

 protected:
  std::vector<SeriesInfo> series_;
  const RangeGeometry geometry_;
  const bool subquery_;
};

// `margin_before_ms` and `margin_after_ms` widen what is read beyond the windows.
absl::StatusOr<std::unique_ptr<RangeSource>> MakeRangeSource(const plan::Node& node, const Grid& grid, Context& context,
                                                             int64_t margin_before_ms = 0, int64_t margin_after_ms = 0);

// For each step the positions [lo, hi) of the samples in its window.
class Windows {
 public:
  // Computes only when `times` is another column than last time. True if it did.
  bool Update(const model::TimeColumn& times, const RangeGeometry& geometry);
  std::vector<uint32_t> lo, hi;

 private:
  model::TimeColumn of_;
};

// Takes staleness markers out; the columns are left alone (and shared) when there is none.
void DropStale(model::SampleColumns& samples);

}  // namespace varve::exec
