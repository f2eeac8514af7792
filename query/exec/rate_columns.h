#pragma once
// Kernels over whole columns of floats: what depends on times alone is computed once per shared time column, the rest
// in tight loops over the steps. Each gives bit for bit what the kernel over single windows gives.
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "query/exec/range_kernels.h"
#include "query/exec/range_source.h"

namespace varve::exec {

class ColumnKernel {
 public:
  virtual ~ColumnKernel() = default;
  // The windows belong to other times now.
  virtual void Prepare(std::span<const int64_t> t, const Windows& windows, const RangeGeometry& geometry) = 0;
  virtual void Run(std::span<const int64_t> t, std::span<const double> v, const Windows& windows, KernelCall& call,
                   Column& out) = 0;
};
std::unique_ptr<ColumnKernel> FindColumnKernel(std::string_view function);  // null when there is none

// min and max of sliding windows, O(1) amortised per step. lo and hi must not decrease. Empty windows are left alone.
void SlidingMin(std::span<const double> v, std::span<const uint32_t> lo, std::span<const uint32_t> hi, Column& out);
void SlidingMax(std::span<const double> v, std::span<const uint32_t> lo, std::span<const uint32_t> hi, Column& out);

}  // namespace varve::exec
