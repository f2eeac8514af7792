#include "storage/model/histogram.h"

#include <cmath>

#include "storage/base/strings.h"

namespace varve::model {

namespace {
bool SameBits(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!model::SameBits(a[i], b[i])) return false;
  }
  return true;
}

absl::Status CheckSide(std::string_view side, const std::vector<Span>& spans, const std::vector<double>& buckets,
                       double& total) {
  uint64_t in_spans = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    if (i > 0 && spans[i].offset < 0) {
      return absl::InvalidArgumentError(base::StrCat("native-histogram-span-negative-offset: ", side, " span ", i + 1,
                                                     " has offset ", spans[i].offset));
    }
    in_spans += spans[i].length;
  }
  if (in_spans != buckets.size()) {
    return absl::InvalidArgumentError(base::StrCat("native-histogram-spans-buckets-mismatch: ", side, " spans have ",
                                                   in_spans, " buckets, but ", buckets.size(), " counts are given"));
  }
  for (const double bucket : buckets) {
    if (!(bucket >= 0)) {
      return absl::InvalidArgumentError(
          base::StrCat("native-histogram-negative-bucket-count: a ", side, " bucket has count ", bucket));
    }
    total += bucket;
  }
  return absl::OkStatus();
}
}  // namespace

bool Identical(const Histogram& a, const Histogram& b) {
  return a.hint == b.hint && a.integer == b.integer && a.schema == b.schema &&
         model::SameBits(a.zero_threshold, b.zero_threshold) && model::SameBits(a.zero_count, b.zero_count) &&
         model::SameBits(a.count, b.count) && model::SameBits(a.sum, b.sum) && a.positive_spans == b.positive_spans &&
         a.negative_spans == b.negative_spans && SameBits(a.positive_buckets, b.positive_buckets) &&
         SameBits(a.negative_buckets, b.negative_buckets) && SameBits(a.custom_values, b.custom_values);
}

absl::Status Validate(const Histogram& h) {
  if (h.IsStale()) return absl::OkStatus();
  if (!IsExponential(h.schema) && !UsesCustomBuckets(h.schema)) {
    return absl::InvalidArgumentError(base::StrCat("invalid-native-histogram-schema: ", h.schema));
  }
  double total = h.zero_count;
  if (!(h.zero_count >= 0)) {
    return absl::InvalidArgumentError(
        base::StrCat("native-histogram-negative-bucket-count: the zero bucket has count ", h.zero_count));
  }
  if (!(h.count >= 0)) {
    return absl::InvalidArgumentError(base::StrCat("native-histogram-negative-count: count is ", h.count));
  }
  RETURN_IF_ERROR(CheckSide("positive", h.positive_spans, h.positive_buckets, total));
  RETURN_IF_ERROR(CheckSide("negative", h.negative_spans, h.negative_buckets, total));
  if (UsesCustomBuckets(h.schema)) {
    if (!h.negative_spans.empty() || !h.negative_buckets.empty() || h.zero_count != 0) {
      return absl::InvalidArgumentError(
          "native-histogram-custom-buckets-mismatch: custom buckets go with neither negative buckets nor a zero "
          "bucket");
    }
    for (size_t i = 0; i < h.custom_values.size(); ++i) {
      if (!std::isfinite(h.custom_values[i])) {
        return absl::InvalidArgumentError("native-histogram-custom-buckets-infinite: a custom bound is not finite");
      }
      if (i > 0 && !(h.custom_values[i - 1] < h.custom_values[i])) {
        return absl::InvalidArgumentError("native-histogram-custom-buckets-invalid: custom bounds do not ascend");
      }
    }
    int64_t last = -1;
    for (const Span& span : h.positive_spans) last += static_cast<int64_t>(span.offset) + span.length;
    if (!h.positive_spans.empty() && h.positive_spans[0].offset < 0) {
      return absl::InvalidArgumentError(
          "native-histogram-custom-buckets-mismatch: a bucket lies before the first bound");
    }
    if (last > static_cast<int64_t>(h.custom_values.size())) {
      return absl::InvalidArgumentError(base::StrCat("native-histogram-custom-buckets-mismatch: bucket ", last, " of ",
                                                     h.custom_values.size(), " bounds"));
    }
  } else if (!h.custom_values.empty()) {
    return absl::InvalidArgumentError(
        "native-histogram-custom-buckets-mismatch: custom bounds without the custom schema");
  }
  if (h.integer) {
    if (h.count > 0x1p53) {
      return absl::InvalidArgumentError(base::StrCat("native-histogram-count-too-large: count is ", h.count));
    }
    // NaN observations are in the count and in no bucket; they make the sum NaN.
    if (std::isnan(h.sum) ? total > h.count : total != h.count) {
      return absl::InvalidArgumentError(base::StrCat("native-histogram-count-mismatch: ", total,
                                                     " observations in the buckets, but the count is ", h.count));
    }
  }
  return absl::OkStatus();
}

size_t MemoryBytes(const Histogram& h) {
  return sizeof(Histogram) + (h.positive_spans.capacity() + h.negative_spans.capacity()) * sizeof(Span) +
         (h.positive_buckets.capacity() + h.negative_buckets.capacity() + h.custom_values.capacity()) * sizeof(double);
}

}  // namespace varve::model
