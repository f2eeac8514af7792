#include "query/exec/histogram_buckets.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace varve::exec {

IndexedBuckets Unpack(const std::vector<model::Span>& spans, const std::vector<double>& buckets) {
  IndexedBuckets out;
  out.reserve(buckets.size());
  int32_t index = 0;
  size_t at = 0;
  for (const model::Span& span : spans) {
    index += span.offset;
    for (uint32_t i = 0; i < span.length && at < buckets.size(); ++i, ++index, ++at) {
      if (buckets[at] != 0) out.emplace_back(index, buckets[at]);
    }
  }
  return out;
}

void Pack(const IndexedBuckets& from, std::vector<model::Span>& spans, std::vector<double>& buckets) {
  spans.clear();
  buckets.clear();
  int32_t next = 0;
  for (const auto& [index, count] : from) {
    if (count == 0) continue;
    if (spans.empty() || index != next) {
      spans.push_back({spans.empty() ? index : index - next, 0});
    }
    ++spans.back().length;
    buckets.push_back(count);
    next = index + 1;
  }
}

double ExponentialBound(int32_t index, int32_t schema) {
  if (schema <= 0) {
    const int64_t exponent = static_cast<int64_t>(index) << -schema;
    if (exponent == 1024) return std::numeric_limits<double>::max();
    return std::ldexp(1.0, static_cast<int>(std::clamp<int64_t>(exponent, -2000, 2000)));
  }
  const int32_t per_octave = 1 << schema;
  const int32_t part = index & (per_octave - 1);
  const int32_t octave = index >> schema;
  if (part == 0 && octave == 1024) return std::numeric_limits<double>::max();
  return std::ldexp(std::exp2(static_cast<double>(part) / per_octave), octave);
}

IndexedBuckets Coarsen(const IndexedBuckets& buckets, int32_t from_schema, int32_t to_schema) {
  if (from_schema <= to_schema) return buckets;
  IndexedBuckets out;
  for (const auto& [index, count] : buckets) {
    const int32_t coarse = CoarserIndex(index, from_schema, to_schema);
    if (!out.empty() && out.back().first == coarse) {
      out.back().second += count;
    } else {
      out.emplace_back(coarse, count);
    }
  }
  return out;
}

std::vector<Bucket> AllBuckets(const model::Histogram& h) {
  std::vector<Bucket> out;
  const IndexedBuckets positive = Unpack(h.positive_spans, h.positive_buckets);
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (model::UsesCustomBuckets(h.schema)) {
    const auto n = static_cast<int32_t>(h.custom_values.size());
    for (const auto& [index, count] : positive) {
      out.push_back({index <= 0 || index > n ? (index > n ? kInf : -kInf) : h.custom_values[index - 1],
                     index >= n || index < 0 ? kInf : h.custom_values[index], count, false});
    }
    return out;
  }
  const IndexedBuckets negative = Unpack(h.negative_spans, h.negative_buckets);
  for (auto it = negative.rbegin(); it != negative.rend(); ++it) {
    out.push_back(
        {-ExponentialBound(it->first, h.schema), -ExponentialBound(it->first - 1, h.schema), it->second, false});
  }
  if (h.zero_count != 0) out.push_back({-h.zero_threshold, h.zero_threshold, h.zero_count, true});
  for (const auto& [index, count] : positive) {
    out.push_back({ExponentialBound(index - 1, h.schema), ExponentialBound(index, h.schema), count, false});
  }
  return out;
}

std::vector<double> CommonBounds(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> out;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

IndexedBuckets Rebound(const IndexedBuckets& buckets, const std::vector<double>& from, const std::vector<double>& to) {
  if (from == to) return buckets;
  IndexedBuckets out;
  for (const auto& [index, count] : buckets) {
    auto target = static_cast<int32_t>(to.size());
    if (index >= 0 && static_cast<size_t>(index) < from.size()) {
      target =
          static_cast<int32_t>(std::lower_bound(to.begin(), to.end(), from[static_cast<size_t>(index)]) - to.begin());
    }
    if (!out.empty() && out.back().first == target) {
      out.back().second += count;
    } else {
      out.emplace_back(target, count);
    }
  }
  return out;
}

WidenedZero WidenZero(const model::Histogram& h, double threshold) {
  if (threshold <= h.zero_threshold) return {h.zero_count, h.zero_threshold};
  const IndexedBuckets positive = Unpack(h.positive_spans, h.positive_buckets);
  const IndexedBuckets negative = Unpack(h.negative_spans, h.negative_buckets);
  while (true) {
    const double before = threshold;
    double count = h.zero_count;
    for (const IndexedBuckets* side : {&positive, &negative}) {
      for (const auto& [index, bucket] : *side) {
        if (ExponentialBound(index - 1, h.schema) >= threshold) break;
        count += bucket;
        threshold = std::max(threshold, ExponentialBound(index, h.schema));
      }
    }
    if (threshold == before) return {count, threshold};
  }
}

}  // namespace varve::exec
