#pragma once
// Native histograms (Prometheus' data model, model/histogram; wire form: remote write 1.0/2.0 `Histogram`).
#include <cstdint>
#include <string>
#include <vector>

#include "storage/base/status.h"
#include "storage/model/sample.h"

namespace varve::model {

enum class ResetHint : uint8_t { kUnknown = 0, kReset = 1, kNotReset = 2, kGauge = 3 };  // the wire's numbers

inline constexpr int32_t kCustomBucketsSchema = -53;
inline constexpr int32_t kExponentialSchemaMin = -4;
inline constexpr int32_t kExponentialSchemaMax = 8;
inline bool IsExponential(int32_t schema) { return kExponentialSchemaMin <= schema && schema <= kExponentialSchemaMax; }
inline bool UsesCustomBuckets(int32_t schema) { return schema == kCustomBucketsSchema; }

// `length` consecutive buckets after a gap of `offset`. The first span's offset is the index of its first bucket (may
// be negative); later ones are the distance from the end of the span before and not negative.
struct Span {
  int32_t offset = 0;
  uint32_t length = 0;
  bool operator==(const Span&) const = default;
};

// Bucket counts are absolute (not deltas, not cumulative). Bucket i of exponential schema s is
// (2^((i-1)*2^-s), 2^(i*2^-s)]; of the custom schema (custom_values[i-1], custom_values[i]], the first from -Inf and
// one more to +Inf after the last bound. A histogram whose `sum` is the stale NaN is a staleness marker. Histograms
// that arrived with integer counts keep `integer` set, so that they can be given back as such; counts above 2^53 are
// refused on ingestion, therefore a double holds every one exactly.
struct Histogram {
  ResetHint hint = ResetHint::kUnknown;
  bool integer = false;
  int32_t schema = 0;
  double zero_threshold = 0;
  double zero_count = 0;
  double count = 0;
  double sum = 0;
  std::vector<Span> positive_spans, negative_spans;
  std::vector<double> positive_buckets, negative_buckets;
  std::vector<double> custom_values;

  bool IsStale() const { return IsStaleNan(sum); }
};

// Every field bit for bit, the hint included.
bool Identical(const Histogram& a, const Histogram& b);

// What Prometheus refuses on ingestion: unknown schema, spans that do not fit the buckets, negative counts, a total
// that contradicts the buckets (at least their sum when `sum` is NaN, else equal for integer histograms), custom bounds
// that are not ascending or not finite, counts above 2^53. InvalidArgument begins with a stable reason from reference
// names: "native-histogram-...".
absl::Status Validate(const Histogram& histogram);

// Bytes that an in-memory copy takes, for budgets.
size_t MemoryBytes(const Histogram& histogram);

}  // namespace varve::model
