#pragma once
// The parts of rate() that depend on times alone.
#include <cstddef>
#include <cstdint>
#include <span>

#include "query/exec/range_kernels.h"

namespace varve::exec {

// How far the samples of a window may be extended to its edges, in seconds. An edge that is further away than 1.1
// average sample distances is not where the series goes on: then half a distance is all that is assumed.
struct ExtrapolationEdges {
  double sampled = 0, to_start = 0, to_end = 0;
};
inline ExtrapolationEdges Edges(int64_t first_ms, int64_t last_ms, size_t samples, int64_t start_ms, int64_t end_ms) {
  ExtrapolationEdges edges;
  edges.sampled = static_cast<double>(last_ms - first_ms) / 1000;
  edges.to_start = static_cast<double>(first_ms - start_ms) / 1000;
  edges.to_end = static_cast<double>(end_ms - last_ms) / 1000;
  const double average = samples < 2 ? 0 : edges.sampled / static_cast<double>(samples - 1);
  const double threshold = average * 1.1;
  if (edges.to_start >= threshold) edges.to_start = average / 2;
  if (edges.to_end >= threshold) edges.to_end = average / 2;
  return edges;
}

// last - first plus what resets hid; null with a warning when the layouts do not go together.
HistogramPtr HistogramIncrease(std::span<const int64_t> t, std::span<const HistogramPtr> h, std::span<const int64_t> st,
                               bool counter, KernelCall& call);

}  // namespace varve::exec
