#pragma once
// Native histograms taken apart: buckets by index, with their bounds.
#include <utility>
#include <vector>

#include "storage/model/histogram.h"

namespace varve::exec {

using IndexedBuckets = std::vector<std::pair<int32_t, double>>;  // ascending by index

// The populated buckets of one side; zero counts are left out.
IndexedBuckets Unpack(const std::vector<model::Span>& spans, const std::vector<double>& buckets);
void Pack(const IndexedBuckets& from, std::vector<model::Span>& spans, std::vector<double>& buckets);

// The upper bound of exponential bucket `index`; the one before the infinite bucket ends at the largest double.
double ExponentialBound(int32_t index, int32_t schema);
// The index of the same bucket in a coarser schema.
inline int32_t CoarserIndex(int32_t index, int32_t from_schema, int32_t to_schema) {
  return ((index - 1) >> (from_schema - to_schema)) + 1;
}
IndexedBuckets Coarsen(const IndexedBuckets& buckets, int32_t from_schema, int32_t to_schema);

// A bucket with its bounds. Exponential buckets are (lower, upper], negative ones [lower, upper), the zero bucket
// closed.
struct Bucket {
  double lower = 0, upper = 0, count = 0;
  bool zero = false;
};
// All populated buckets, ascending: negative, zero, positive; or custom ones.
std::vector<Bucket> AllBuckets(const model::Histogram& h);

// Bounds that both have, and the buckets moved onto such a subset of their bounds.
std::vector<double> CommonBounds(const std::vector<double>& a, const std::vector<double>& b);
IndexedBuckets Rebound(const IndexedBuckets& buckets, const std::vector<double>& from, const std::vector<double>& to);

// What the zero bucket holds when it is widened to `threshold`; the threshold grows further when it would cut through a
// populated bucket.
struct WidenedZero {
  double count = 0, threshold = 0;
};
WidenedZero WidenZero(const model::Histogram& h, double threshold);

}  // namespace varve::exec
