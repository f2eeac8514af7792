// Histograms in runs of equal layout: the layout once, then a value column for each field and bucket across the run.
// FORMAT.md has the boxes.
#include <algorithm>
#include <utility>

#include "storage/base/bytes.h"
#include "storage/base/check.h"
#include "storage/codec/columns.h"
#include "storage/codec/values.h"

namespace varve::codec {

namespace {
using model::Histogram;
using model::Span;

constexpr uint8_t kVersion = 1;
// The first byte of a layout.
enum Flag : uint8_t {
  kInteger = 1,
  kHasZero = 2,
  kHasNegative = 4,
  kHasCustom = 8,
  kCommonThreshold = 16,
  kFlags = 31
};
// The threshold that client libraries set unless told otherwise.
constexpr double kThresholdCommon = 0x1p-128;
// Cells (buckets, bounds and spans times histograms) of one run: bounds what a few bytes can make a decoder allocate.
constexpr size_t kRunCellsMax = size_t{1} << 18;

absl::Status Bad(std::string_view what) { return absl::DataLossError(absl::string_view(what.data(), what.size())); }

// How many histograms of this shape fit into one run.
size_t RunMax(size_t cells) { return std::max<size_t>(1, kRunCellsMax / std::max<size_t>(cells, 1)); }

size_t Cells(const Histogram& h) {
  return h.positive_spans.size() + h.negative_spans.size() + h.positive_buckets.size() + h.negative_buckets.size() +
         h.custom_values.size();
}

bool SameLayout(const Histogram& a, const Histogram& b) {
  return a.integer == b.integer && a.schema == b.schema && model::SameBits(a.zero_threshold, b.zero_threshold) &&
         a.positive_spans == b.positive_spans && a.negative_spans == b.negative_spans &&
         a.positive_buckets.size() == b.positive_buckets.size() &&
         a.negative_buckets.size() == b.negative_buckets.size() &&
         std::equal(a.custom_values.begin(), a.custom_values.end(), b.custom_values.begin(), b.custom_values.end(),
                    model::SameBits);
}

// A column of any length, 0 included; whoever reads it knows the length.
void PutColumn(std::span<const double> values, std::string& out) { PutValues(values, out); }

absl::Status TakeColumn(base::ByteReader& reader, std::span<double> out) {
  return TakeValues(reader, out) ? absl::OkStatus() : Bad("histogram column is malformed");
}

void PutSpans(const std::vector<Span>& spans, size_t buckets, std::string& out) {
  base::PutVarint(out, spans.size());
  for (const Span& span : spans) {
    base::PutSigned(out, span.offset);
    base::PutVarint(out, span.length);
  }
  base::PutVarint(out, buckets);
}

bool TakeSpans(base::ByteReader& reader, std::vector<Span>& spans, std::vector<double>& buckets) {
  const uint64_t count = reader.Varint();
  if (count > reader.left() / 2) return false;
  spans.resize(count);
  for (Span& span : spans) {
    const int64_t offset = reader.Signed();
    const uint64_t length = reader.Varint();
    if (offset != static_cast<int32_t>(offset) || length != static_cast<uint32_t>(length)) return false;
    span = {static_cast<int32_t>(offset), static_cast<uint32_t>(length)};
  }
  const uint64_t size = reader.Varint();
  // A byte of a value column stands for at most 128 values.
  if (!reader.ok() || size > reader.left() * 128) return false;
  buckets.resize(size);
  return true;
}

void PutLayout(const Histogram& h, bool has_zero, std::string& out) {
  const bool negative = !h.negative_spans.empty() || !h.negative_buckets.empty();
  const bool common = model::SameBits(h.zero_threshold, kThresholdCommon);
  base::PutU8(
      out, static_cast<uint8_t>((h.integer ? kInteger : 0) | (has_zero ? kHasZero : 0) | (negative ? kHasNegative : 0) |
                                (h.custom_values.empty() ? 0 : kHasCustom) | (common ? kCommonThreshold : 0)));
  base::PutSigned(out, h.schema);
  if (!common) PutColumn({&h.zero_threshold, 1}, out);
  PutSpans(h.positive_spans, h.positive_buckets.size(), out);
  if (negative) PutSpans(h.negative_spans, h.negative_buckets.size(), out);
  if (!h.custom_values.empty()) {
    base::PutVarint(out, h.custom_values.size());
    PutColumn(h.custom_values, out);
  }
}

absl::Status TakeLayout(base::ByteReader& reader, Histogram& h, bool& has_zero) {
  const uint8_t flags = reader.U8();
  const int64_t schema = reader.Signed();
  if (!reader.ok() || (flags & ~kFlags) != 0 || schema != static_cast<int32_t>(schema)) {
    return Bad("histogram layout is malformed");
  }
  h.integer = (flags & kInteger) != 0;
  has_zero = (flags & kHasZero) != 0;
  h.schema = static_cast<int32_t>(schema);
  h.zero_threshold = kThresholdCommon;
  if ((flags & kCommonThreshold) == 0) RETURN_IF_ERROR(TakeColumn(reader, {&h.zero_threshold, 1}));
  if (!TakeSpans(reader, h.positive_spans, h.positive_buckets) ||
      ((flags & kHasNegative) != 0 && !TakeSpans(reader, h.negative_spans, h.negative_buckets))) {
    return Bad("histogram spans are malformed");
  }
  if ((flags & kHasCustom) != 0) {
    const uint64_t size = reader.Varint();
    if (!reader.ok() || size > reader.left() * 128) return Bad("histogram bounds are malformed");
    h.custom_values.resize(size);
    RETURN_IF_ERROR(TakeColumn(reader, h.custom_values));
  }
  return absl::OkStatus();
}

// One histogram of a run of one: neighbouring buckets resemble each other, so they make a column.
void PutRow(const Histogram& h, std::string& out) {
  const bool has_zero = !model::SameBits(h.zero_count, 0.0);
  PutLayout(h, has_zero, out);
  PutColumn({&h.count, 1}, out);
  PutColumn({&h.sum, 1}, out);
  if (has_zero) PutColumn({&h.zero_count, 1}, out);
  PutColumn(h.positive_buckets, out);
  PutColumn(h.negative_buckets, out);
}

absl::Status TakeRow(base::ByteReader& reader, bool has_zero, Histogram& h) {
  RETURN_IF_ERROR(TakeColumn(reader, {&h.count, 1}));
  RETURN_IF_ERROR(TakeColumn(reader, {&h.sum, 1}));
  if (has_zero) RETURN_IF_ERROR(TakeColumn(reader, {&h.zero_count, 1}));
  RETURN_IF_ERROR(TakeColumn(reader, h.positive_buckets));
  return TakeColumn(reader, h.negative_buckets);
}

// The fields of a run, in the order in which their columns stand. `each(get)` is called once for each.
template <class Each>
absl::Status ForEachField(bool has_zero, size_t positive, size_t negative, Each each) {
  RETURN_IF_ERROR(each([](auto& h) -> auto& { return h.count; }));
  RETURN_IF_ERROR(each([](auto& h) -> auto& { return h.sum; }));
  if (has_zero) RETURN_IF_ERROR(each([](auto& h) -> auto& { return h.zero_count; }));
  for (size_t i = 0; i < positive; ++i) {
    RETURN_IF_ERROR(each([i](auto& h) -> auto& { return h.positive_buckets[i]; }));
  }
  for (size_t i = 0; i < negative; ++i) {
    RETURN_IF_ERROR(each([i](auto& h) -> auto& { return h.negative_buckets[i]; }));
  }
  return absl::OkStatus();
}

}  // namespace

void EncodeHistograms(std::span<const std::shared_ptr<const Histogram>> histograms, std::string& out) {
  VARVE_CHECK(!histograms.empty() && histograms.size() <= kColumnMax);
  base::PutU8(out, kVersion);
  for (size_t at = 0; at < histograms.size();) {  // hints, run-length coded
    size_t end = at + 1;
    while (end < histograms.size() && histograms[end]->hint == histograms[at]->hint) ++end;
    base::PutVarint(out, (end - at) << 2 | static_cast<uint64_t>(histograms[at]->hint));
    at = end;
  }
  std::vector<double> column;
  for (size_t at = 0; at < histograms.size();) {
    const Histogram& first = *histograms[at];
    const size_t limit = std::min(histograms.size(), at + RunMax(Cells(first)));
    size_t end = at + 1;
    while (end < limit && SameLayout(first, *histograms[end])) ++end;
    base::PutVarint(out, end - at);
    if (end - at == 1) {
      PutRow(first, out);
    } else {
      bool has_zero = false;
      for (size_t i = at; i < end; ++i) has_zero |= !model::SameBits(histograms[i]->zero_count, 0.0);
      PutLayout(first, has_zero, out);
      const absl::Status status = ForEachField(has_zero, first.positive_buckets.size(), first.negative_buckets.size(),
                                               [&](auto get) -> absl::Status {
                                                 column.clear();
                                                 for (size_t i = at; i < end; ++i)
                                                   column.push_back(get(*histograms[i]));
                                                 PutColumn(column, out);
                                                 return absl::OkStatus();
                                               });
      VARVE_CHECK(status.ok());
    }
    at = end;
  }
}

absl::Status DecodeHistograms(std::string_view bytes, size_t count,
                              std::vector<std::shared_ptr<const Histogram>>& out) {
  if (count == 0 || count > kColumnMax) return Bad("histogram column has an impossible size");
  base::ByteReader reader(bytes);
  if (reader.U8() != kVersion) return Bad("histogram column has an unknown version");
  std::vector<model::ResetHint> hints;
  while (hints.size() < count) {
    const uint64_t head = reader.Varint();
    if (!reader.ok() || head >> 2 == 0 || head >> 2 > count - hints.size()) return Bad("histogram hints are malformed");
    hints.insert(hints.end(), head >> 2, static_cast<model::ResetHint>(head & 3));
  }
  std::vector<std::shared_ptr<Histogram>> decoded;
  std::vector<double> column;
  while (decoded.size() < count) {
    const uint64_t length = reader.Varint();
    if (!reader.ok() || length == 0 || length > count - decoded.size()) return Bad("histogram run is malformed");
    Histogram first;
    bool has_zero = false;
    RETURN_IF_ERROR(TakeLayout(reader, first, has_zero));
    if (length > RunMax(Cells(first))) return Bad("histogram run is too long");
    const size_t begin = decoded.size();
    if (length == 1) {
      RETURN_IF_ERROR(TakeRow(reader, has_zero, first));
      decoded.push_back(std::make_shared<Histogram>(std::move(first)));
    } else {
      for (size_t i = 0; i < length; ++i) decoded.push_back(std::make_shared<Histogram>(first));
      column.resize(length);
      RETURN_IF_ERROR(ForEachField(has_zero, first.positive_buckets.size(), first.negative_buckets.size(),
                                   [&](auto get) -> absl::Status {
                                     RETURN_IF_ERROR(TakeColumn(reader, column));
                                     for (size_t i = 0; i < length; ++i) get(*decoded[begin + i]) = column[i];
                                     return absl::OkStatus();
                                   }));
    }
  }
  if (!reader.ok() || !reader.AtEnd()) return Bad("histogram column has bytes left over");
  for (size_t i = 0; i < count; ++i) {
    decoded[i]->hint = hints[i];
    out.push_back(std::move(decoded[i]));
  }
  return absl::OkStatus();
}

void EncodeHistogram(const Histogram& histogram, std::string& out) {
  base::PutU8(out, static_cast<uint8_t>(kVersion << 2 | static_cast<uint8_t>(histogram.hint)));
  PutRow(histogram, out);
}

absl::StatusOr<Histogram> DecodeHistogram(std::string_view bytes) {
  base::ByteReader reader(bytes);
  const uint8_t head = reader.U8();
  if (head >> 2 != kVersion) return Bad("histogram has an unknown version");
  Histogram h;
  bool has_zero = false;
  RETURN_IF_ERROR(TakeLayout(reader, h, has_zero));
  h.hint = static_cast<model::ResetHint>(head & 3);
  RETURN_IF_ERROR(TakeRow(reader, has_zero, h));
  if (!reader.ok() || !reader.AtEnd()) return Bad("histogram has bytes left over");
  return h;
}

}  // namespace varve::codec
