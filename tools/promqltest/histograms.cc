#include "tools/promqltest/histograms.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "storage/base/float_text.h"
#include "storage/base/strings.h"

namespace varve::promqltest {

namespace {

using model::Histogram;
using model::ResetHint;

double UpperBound(int32_t schema, int32_t index) { return std::exp2(static_cast<double>(index) * std::exp2(-schema)); }

struct Plain {  // exponential
  int32_t schema;
  double zero_threshold, zero_count;
  Buckets positive, negative;
};

Plain ToPlain(const Histogram& h) {
  return {h.schema, h.zero_threshold, h.zero_count, ToBuckets(h.positive_spans, h.positive_buckets),
          ToBuckets(h.negative_spans, h.negative_buckets)};
}

void ReduceSchema(Plain& h, int32_t schema) {
  if (h.schema <= schema) return;
  const auto reduce = [&](Buckets& buckets) {
    Buckets out;
    for (const auto& [index, count] : buckets) out[((index - 1) >> (h.schema - schema)) + 1] += count;
    buckets = std::move(out);
  };
  reduce(h.positive);
  reduce(h.negative);
  h.schema = schema;
}

// The zero bucket grows to `threshold`, or further where that falls inside a populated bucket.
void WidenZero(Plain& h, double threshold) {
  for (bool grown = true; grown;) {
    grown = false;
    for (const Buckets* side : {&h.positive, &h.negative}) {
      for (const auto& [index, count] : *side) {
        const double low = UpperBound(h.schema, index - 1), high = UpperBound(h.schema, index);
        if (count != 0 && low < threshold && threshold < high) threshold = high, grown = true;
      }
    }
  }
  for (Buckets* side : {&h.positive, &h.negative}) {
    for (auto it = side->begin(); it != side->end() && UpperBound(h.schema, it->first - 1) < threshold;) {
      h.zero_count += it->second;
      it = side->erase(it);
    }
  }
  h.zero_threshold = threshold;
}

void FromBuckets(const Buckets& buckets, std::vector<model::Span>& spans, std::vector<double>& counts) {
  int32_t next = 0;
  for (const auto& [index, count] : buckets) {
    if (spans.empty() || index != next) {
      spans.push_back({index - next, 0});
    }
    ++spans.back().length;
    counts.push_back(count);
    next = index + 1;
  }
}

ResetHint CombineHints(ResetHint a, ResetHint b) {
  if (a == b) return a;
  if (a == ResetHint::kGauge || b == ResetHint::kGauge) return ResetHint::kGauge;
  return ResetHint::kUnknown;
}

Buckets OnBounds(const Histogram& h, const std::vector<double>& bounds) {
  Buckets out;
  for (const auto& [index, count] : ToBuckets(h.positive_spans, h.positive_buckets)) {
    const double upper = static_cast<size_t>(index) < h.custom_values.size()
                             ? h.custom_values[static_cast<size_t>(index)]
                             : std::numeric_limits<double>::infinity();
    out[static_cast<int32_t>(std::lower_bound(bounds.begin(), bounds.end(), upper) - bounds.begin())] += count;
  }
  return out;
}

bool Shrinks(const Buckets& previous, const Buckets& next) {
  for (const auto& [index, count] : previous) {
    const auto found = next.find(index);
    if (count > (found == next.end() ? 0 : found->second)) return true;
  }
  return false;
}

Buckets WithoutEmpty(Buckets buckets) {
  std::erase_if(buckets, [](const auto& bucket) { return bucket.second == 0; });
  return buckets;
}

bool AlmostEqual(const Buckets& a, const Buckets& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && promqltest::AlmostEqual(x.second, y.second);
  });
}

void AppendBuckets(std::string& out, std::string_view prefix, Buckets buckets) {
  if (buckets.empty()) return;
  const int32_t first = buckets.begin()->first, last = buckets.rbegin()->first;
  if (first != 0) base::StrAppend(out, " ", prefix, "offset:", first);
  base::StrAppend(out, " ", prefix, "buckets:[");
  for (int32_t i = first; i <= last; ++i) base::StrAppend(out, i > first ? " " : "", base::FloatGeneral(buckets[i]));
  out += "]";
}

}  // namespace

Buckets ToBuckets(const std::vector<model::Span>& spans, const std::vector<double>& counts) {
  Buckets out;
  int32_t index = 0;
  size_t at = 0;
  for (const model::Span& span : spans) {
    index += span.offset;
    for (uint32_t i = 0; i < span.length && at < counts.size(); ++i) out[index++] = counts[at++];
  }
  return out;
}

absl::StatusOr<Histogram> Combine(const Histogram& a, const Histogram& b, double sign) {
  const bool custom = model::UsesCustomBuckets(a.schema);
  if (custom != model::UsesCustomBuckets(b.schema)) {
    return absl::InvalidArgumentError("histograms with exponential and with custom buckets cannot be combined");
  }
  Histogram out;
  out.hint = sign < 0 ? ResetHint::kGauge : CombineHints(a.hint, b.hint);
  out.count = a.count + sign * b.count;
  out.sum = a.sum + sign * b.sum;
  if (custom) {
    out.schema = model::kCustomBucketsSchema;
    std::set_intersection(a.custom_values.begin(), a.custom_values.end(), b.custom_values.begin(),
                          b.custom_values.end(), std::back_inserter(out.custom_values));
    Buckets sum = OnBounds(a, out.custom_values);
    for (const auto& [index, count] : OnBounds(b, out.custom_values)) sum[index] += sign * count;
    FromBuckets(sum, out.positive_spans, out.positive_buckets);
    return out;
  }
  Plain x = ToPlain(a), y = ToPlain(b);
  while (x.zero_threshold != y.zero_threshold) {
    Plain& narrow = x.zero_threshold < y.zero_threshold ? x : y;
    WidenZero(narrow, std::max(x.zero_threshold, y.zero_threshold));
  }
  const int32_t schema = std::min(x.schema, y.schema);
  ReduceSchema(x, schema);
  ReduceSchema(y, schema);
  for (const auto& [index, count] : y.positive) x.positive[index] += sign * count;
  for (const auto& [index, count] : y.negative) x.negative[index] += sign * count;
  out.schema = schema;
  out.zero_threshold = x.zero_threshold;
  out.zero_count = x.zero_count + sign * y.zero_count;
  FromBuckets(x.positive, out.positive_spans, out.positive_buckets);
  FromBuckets(x.negative, out.negative_spans, out.negative_buckets);
  return out;
}

bool StartsChunk(const Histogram& previous, const Histogram& next) {
  const bool gauge = next.hint == ResetHint::kGauge;
  if (gauge != (previous.hint == ResetHint::kGauge)) return true;
  if (previous.IsStale() || next.IsStale()) return true;
  if (next.schema != previous.schema || next.zero_threshold != previous.zero_threshold ||
      next.custom_values != previous.custom_values) {
    return true;
  }
  if (gauge) return false;
  return next.hint == ResetHint::kReset || next.count < previous.count || next.zero_count < previous.zero_count ||
         Shrinks(ToBuckets(previous.positive_spans, previous.positive_buckets),
                 ToBuckets(next.positive_spans, next.positive_buckets)) ||
         Shrinks(ToBuckets(previous.negative_spans, previous.negative_buckets),
                 ToBuckets(next.negative_spans, next.negative_buckets));
}

bool AlmostEqual(double a, double b) {
  constexpr double kEpsilon = 1e-6;
  constexpr double kNormalMin = std::numeric_limits<double>::min();
  if (model::IsStaleNan(a) || model::IsStaleNan(b)) return model::IsStaleNan(a) && model::IsStaleNan(b);
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return true;
  const double magnitudes = std::fabs(a) + std::fabs(b), difference = std::fabs(a - b);
  if (a == 0 || b == 0 || magnitudes < kNormalMin) return difference < kEpsilon * kNormalMin;
  return difference / std::min(magnitudes, std::numeric_limits<double>::max()) < kEpsilon;
}

bool AlmostEqual(const Histogram& a, const Histogram& b, CompareHints hints) {
  if (a.schema != b.schema || a.zero_threshold != b.zero_threshold || !AlmostEqual(a.count, b.count) ||
      !AlmostEqual(a.sum, b.sum) || !AlmostEqual(a.zero_count, b.zero_count)) {
    return false;
  }
  if (model::UsesCustomBuckets(a.schema) && a.custom_values != b.custom_values) return false;
  if (hints == CompareHints::kYes && a.hint != b.hint) return false;
  return AlmostEqual(WithoutEmpty(ToBuckets(a.positive_spans, a.positive_buckets)),
                     WithoutEmpty(ToBuckets(b.positive_spans, b.positive_buckets))) &&
         AlmostEqual(WithoutEmpty(ToBuckets(a.negative_spans, a.negative_buckets)),
                     WithoutEmpty(ToBuckets(b.negative_spans, b.negative_buckets)));
}

std::string ToString(const Histogram& h) {
  static constexpr std::string_view kHints[] = {"unknown", "reset", "not_reset", "gauge"};
  std::string out =
      base::StrCat("{{schema:", h.schema, " count:", base::FloatGeneral(h.count), " sum:", base::FloatGeneral(h.sum));
  if (h.zero_threshold != 0) base::StrAppend(out, " z_bucket_w:", base::FloatGeneral(h.zero_threshold));
  if (h.zero_count != 0) base::StrAppend(out, " z_bucket:", base::FloatGeneral(h.zero_count));
  if (!h.custom_values.empty()) {
    out += " custom_values:[";
    for (size_t i = 0; i < h.custom_values.size(); ++i) {
      base::StrAppend(out, i > 0 ? " " : "", base::FloatGeneral(h.custom_values[i]));
    }
    out += "]";
  }
  AppendBuckets(out, "", WithoutEmpty(ToBuckets(h.positive_spans, h.positive_buckets)));
  AppendBuckets(out, "n_", WithoutEmpty(ToBuckets(h.negative_spans, h.negative_buckets)));
  base::StrAppend(out, " counter_reset_hint:", kHints[static_cast<int>(h.hint)], "}}");
  return out;
}

}  // namespace varve::promqltest
