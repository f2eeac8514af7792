#pragma once
// The samples of a range as such: what an instant query gives whose expression is a range.
#include <utility>
#include <vector>

#include "query/exec/operator.h"

namespace varve::exec {

struct MatrixSeries {
  model::Labels labels;
  std::vector<std::pair<int64_t, double>> floats;
  std::vector<std::pair<int64_t, HistogramPtr>> histograms;
};

// Sorted by labels; series without samples are left out. The grid has one step.
absl::StatusOr<std::vector<MatrixSeries>> ReadMatrix(const plan::Node& node, const Grid& grid, Context& context,
                                                     Holding& holding);

}  // namespace varve::exec
