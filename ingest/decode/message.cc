#include "ingest/decode/message.h"

#include <limits>

#include "storage/base/bytes.h"
#include "storage/base/strings.h"

namespace varve::decode {

namespace {

// Counts above 2^53 are refused later (model::Validate); rounding must not bring one back to 2^53.
double FromCount(uint64_t count) {
  constexpr uint64_t kExact = uint64_t{1} << 53;
  const auto rounded = static_cast<double>(count);
  return count > kExact && rounded <= 0x1p53 ? 0x1p53 + 2 : rounded;
}

bool ReadSpan(Wire wire, model::Span& span) {
  uint32_t tag = 0;
  uint64_t v = 0;
  while (!wire.AtEnd()) {
    if (!wire.NextTag(tag)) return false;
    switch (tag) {
      case Tag(1, kVarint):
        if (!wire.Varint(v)) return false;
        span.offset = static_cast<int32_t>(base::UnZigZag(v & UINT32_MAX));
        break;
      case Tag(2, kVarint):
        if (!wire.Varint(v)) return false;
        span.length = static_cast<uint32_t>(v);
        break;
      default:
        if (!wire.Skip(tag)) return false;
    }
  }
  return true;
}

// Repeated numbers come packed or one by one, and a reader takes both.
bool ReadDoubles(Wire& wire, uint32_t tag, std::string_view field, std::vector<double>& out) {
  double v = 0;
  if ((tag & 7) == kFixed64) {
    if (!wire.Fixed(v)) return false;
    out.push_back(v);
    return true;
  }
  std::string_view packed;
  if (!wire.Bytes(packed)) return false;
  Wire inside = wire.Inside(packed, field);
  out.reserve(out.size() + packed.size() / sizeof(double));
  while (!inside.AtEnd()) {
    if (!inside.Fixed(v)) return false;
    out.push_back(v);
  }
  return true;
}

// Bucket deltas to absolute counts. A sum beyond 64 bits becomes NaN, which no validation lets pass.
class Deltas {
 public:
  bool Read(Wire& wire, uint32_t tag, std::string_view field, std::vector<double>& out) {
    uint64_t v = 0;
    if ((tag & 7) == kVarint) {
      if (!wire.Varint(v)) return false;
      Add(v, out);
      return true;
    }
    std::string_view packed;
    if (!wire.Bytes(packed)) return false;
    Wire inside = wire.Inside(packed, field);
    while (!inside.AtEnd()) {
      if (!inside.Varint(v)) return false;
      Add(v, out);
    }
    return true;
  }

 private:
  void Add(uint64_t zigzag, std::vector<double>& out) {
    bad_ = bad_ || __builtin_add_overflow(count_, base::UnZigZag(zigzag), &count_);
    out.push_back(bad_          ? std::numeric_limits<double>::quiet_NaN()
                  : count_ >= 0 ? FromCount(static_cast<uint64_t>(count_))
                                : static_cast<double>(count_));
  }
  int64_t count_ = 0;
  bool bad_ = false;
};

}  // namespace

bool ReadHistogram(Wire wire, bool with_start, model::HistogramSample& sample) {
  model::Histogram& h = sample.histogram;
  h.integer = true;  // also when no count is given: an empty integer histogram
  uint64_t zero_int = 0;
  double zero_float = 0;
  uint64_t count_int = 0;
  double count_float = 0;
  std::vector<double> positive_counts, negative_counts;
  Deltas positive, negative;
  uint32_t tag = 0;
  uint64_t v = 0;
  std::string_view bytes;
  while (!wire.AtEnd()) {
    if (!wire.NextTag(tag)) return false;
    bool ok = true;
    switch (tag) {
      case Tag(1, kVarint):
        ok = wire.Varint(count_int);
        h.integer = true;
        break;
      case Tag(2, kFixed64):
        ok = wire.Fixed(count_float);
        h.integer = false;
        break;
      case Tag(3, kFixed64):
        ok = wire.Fixed(h.sum);
        break;
      case Tag(4, kVarint):
        ok = wire.Varint(v);
        h.schema = static_cast<int32_t>(base::UnZigZag(v & UINT32_MAX));
        break;
      case Tag(5, kFixed64):
        ok = wire.Fixed(h.zero_threshold);
        break;
      case Tag(6, kVarint):
        ok = wire.Varint(zero_int);
        zero_float = 0;
        break;
      case Tag(7, kFixed64):
        ok = wire.Fixed(zero_float);
        zero_int = 0;
        break;
      case Tag(8, kBytes):
        ok = wire.Bytes(bytes) &&
             ReadSpan(wire.Inside(bytes, "histogram.negative_spans"), h.negative_spans.emplace_back());
        break;
      case Tag(9, kBytes):
      case Tag(9, kVarint):
        ok = negative.Read(wire, tag, "histogram.negative_deltas", h.negative_buckets);
        break;
      case Tag(10, kBytes):
      case Tag(10, kFixed64):
        ok = ReadDoubles(wire, tag, "histogram.negative_counts", negative_counts);
        break;
      case Tag(11, kBytes):
        ok = wire.Bytes(bytes) &&
             ReadSpan(wire.Inside(bytes, "histogram.positive_spans"), h.positive_spans.emplace_back());
        break;
      case Tag(12, kBytes):
      case Tag(12, kVarint):
        ok = positive.Read(wire, tag, "histogram.positive_deltas", h.positive_buckets);
        break;
      case Tag(13, kBytes):
      case Tag(13, kFixed64):
        ok = ReadDoubles(wire, tag, "histogram.positive_counts", positive_counts);
        break;
      case Tag(14, kVarint):
        ok = wire.Varint(v);
        h.hint = v <= 3 ? static_cast<model::ResetHint>(v) : model::ResetHint::kUnknown;
        break;
      case Tag(15, kVarint):
        ok = wire.Varint(v);
        sample.t_ms = static_cast<int64_t>(v);
        break;
      case Tag(16, kBytes):
      case Tag(16, kFixed64):
        ok = ReadDoubles(wire, tag, "histogram.custom_values", h.custom_values);
        break;
      case Tag(17, kVarint):
        ok = wire.Varint(v);
        if (with_start) sample.start_ms = static_cast<int64_t>(v);
        break;
      default:
        ok = wire.Skip(tag);
    }
    if (!ok) return false;
  }
  if (h.integer) {
    h.count = FromCount(count_int);
    h.zero_count = FromCount(zero_int);
  } else {
    h.count = count_float;
    h.zero_count = zero_float;
    h.positive_buckets = std::move(positive_counts);
    h.negative_buckets = std::move(negative_counts);
  }
  return true;
}

bool ReadSample(Wire wire, double& value, int64_t& t_ms, int64_t* start_ms) {
  uint32_t tag = 0;
  uint64_t v = 0;
  while (!wire.AtEnd()) {
    if (!wire.NextTag(tag)) return false;
    switch (tag) {
      case Tag(1, kFixed64):
        if (!wire.Fixed(value)) return false;
        break;
      case Tag(2, kVarint):
        if (!wire.Varint(v)) return false;
        t_ms = static_cast<int64_t>(v);
        break;
      case Tag(3, kVarint):
        if (!wire.Varint(v)) return false;
        if (start_ms != nullptr) *start_ms = static_cast<int64_t>(v);
        break;
      default:
        if (!wire.Skip(tag)) return false;
    }
  }
  return true;
}

model::MetricType MetricTypeOf(uint64_t number) {
  return number <= 7 ? static_cast<model::MetricType>(number) : model::MetricType::kUnknown;
}

absl::Status FaultStatus(const Fault& fault, std::string_view version, std::string_view message,
                         std::optional<size_t> series) {
  std::string text = base::StrCat("not a remote write ", version, " message: byte ", fault.at - message.data(), " of ",
                                  message.size(), ", field ", fault.field);
  if (series.has_value()) base::StrAppend(text, " of timeseries ", *series);
  base::StrAppend(text, ": ", fault.what);
  return absl::InvalidArgumentError(text);
}

}  // namespace varve::decode
