#pragma once
// Columns of timestamps, float values and histograms to bytes and back. Pure: no I/O, no threads, no allocation beyond
// the output. Every encoder is lossless bit for bit (NaN payloads, -0, ±Inf); the same input gives the same bytes on
// every machine. Decoders trust nothing: malformed bytes give DataLoss, never an overrun. Formats: FORMAT.md.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/status.h"
#include "storage/model/histogram.h"

namespace varve::codec {

// Largest number of samples in one column.
inline constexpr size_t kColumnMax = 4096;

// Timestamps in ms, strictly ascending, 1 to kColumnMax of them. Appends to `out`.
void EncodeTimes(std::span<const int64_t> times, std::string& out);
// Appends to `out`; fails unless `bytes` is exactly one column.
absl::Status DecodeTimes(std::string_view bytes, std::vector<int64_t>& out);

// Doubles, 1 to kColumnMax. Sub-blocks of 128 choose among constant, linear (constant delta), decimal integers
// bit-packed by frame of reference, delta or delta of delta with patched exceptions, sparse changes, XOR, and raw.
void EncodeValues(std::span<const double> values, std::string& out);
// Writes exactly `out.size()` values; the caller knows the count from the time column.
absl::Status DecodeValues(std::string_view bytes, std::span<double> out);
// Only values [begin, begin + out.size()) of `count`: skips whole sub-blocks.
absl::Status DecodeValuesRange(std::string_view bytes, size_t count, size_t begin, std::span<double> out);

// Histograms of one series, 1 to kColumnMax, in time order. Compact when they share schema, bounds and most of their
// spans. Hints are stored as given.
void EncodeHistograms(std::span<const std::shared_ptr<const model::Histogram>> histograms, std::string& out);
absl::Status DecodeHistograms(std::string_view bytes, size_t count,
                              std::vector<std::shared_ptr<const model::Histogram>>& out);
// One histogram on its own, as the log has it.
void EncodeHistogram(const model::Histogram& histogram, std::string& out);
absl::StatusOr<model::Histogram> DecodeHistogram(std::string_view bytes);

// Start timestamps (ms, 0 = unknown) of the samples of a column, relative to their times; run-length coded.
void EncodeStartTimes(std::span<const int64_t> start_times, std::span<const int64_t> times, std::string& out);
absl::Status DecodeStartTimes(std::string_view bytes, std::span<const int64_t> times, std::span<int64_t> out);

}  // namespace varve::codec
