#include "storage/block/chunk.h"

#include <algorithm>

#include "storage/base/bytes.h"
#include "storage/block/format.h"
#include "storage/codec/columns.h"

namespace varve::block {

void EncodeChunk(const model::SampleColumns& samples, size_t begin, size_t end, std::string& out) {
  const auto lower = [&](size_t at) {
    return static_cast<size_t>(std::lower_bound(samples.histogram_at.begin(), samples.histogram_at.end(), at) -
                               samples.histogram_at.begin());
  };
  const size_t first = lower(begin);
  const size_t last = lower(end);
  const bool has_start_times =
      !samples.start_times.empty() &&
      std::any_of(samples.start_times.begin() + static_cast<ptrdiff_t>(begin),
                  samples.start_times.begin() + static_cast<ptrdiff_t>(end), [](int64_t t) { return t != 0; });
  base::PutU8(out, static_cast<uint8_t>((last > first ? kChunkHasHistograms : 0) |
                                        (has_start_times ? kChunkHasStartTimes : 0)));
  std::string part;
  if (last > first) {
    base::PutVarint(out, last - first);
    size_t next = begin;
    for (size_t i = first; i < last; ++i) {
      base::PutVarint(out, samples.histogram_at[i] - next);
      next = samples.histogram_at[i] + 1;
    }
    codec::EncodeHistograms(std::span(samples.histograms).subspan(first, last - first), part);
    base::PutBytes(out, part);
  }
  if (has_start_times) {
    part.clear();
    codec::EncodeStartTimes(std::span(samples.start_times).subspan(begin, end - begin),
                            std::span(*samples.times).subspan(begin, end - begin), part);
    base::PutBytes(out, part);
  }
  if (last == first) {
    codec::EncodeValues(std::span(samples.values).subspan(begin, end - begin), out);
  } else if (last - first < end - begin) {
    std::vector<double> values;
    size_t h = first;
    for (size_t i = begin; i < end; ++i) {
      if (h < last && samples.histogram_at[h] == i)
        ++h;
      else
        values.push_back(samples.values[i]);
    }
    codec::EncodeValues(values, out);
  }
}

bool ChunkNeedsTimes(std::string_view bytes) {
  return !bytes.empty() && (static_cast<uint8_t>(bytes[0]) & kChunkHasStartTimes) != 0;
}

absl::Status DecodeChunk(std::string_view bytes, std::span<const int64_t> times, size_t count, size_t begin, size_t end,
                         model::SampleColumns& out) {
  base::ByteReader in(bytes);
  const uint8_t flags = in.U8();
  if (!in.ok() || (flags & ~kChunkFlagsKnown) != 0) return absl::DataLossError("unknown chunk flags");
  const size_t base = out.values.size();
  std::vector<uint32_t> positions;
  std::vector<std::shared_ptr<const model::Histogram>> histograms;
  if ((flags & kChunkHasHistograms) != 0) {
    const uint64_t n = in.Varint();
    if (n == 0 || n > count) return absl::DataLossError("bad number of histograms");
    uint64_t next = 0;
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t gap = in.Varint();
      if (!in.ok() || gap >= count - next) return absl::DataLossError("bad histogram position");
      next += gap;
      positions.push_back(static_cast<uint32_t>(next++));
      if (next == count && i + 1 < n) return absl::DataLossError("bad histogram position");
    }
    const std::string_view part = in.Bytes();
    if (!in.ok()) return absl::DataLossError("chunk ends early");
    RETURN_IF_ERROR(codec::DecodeHistograms(part, n, histograms));
    if (histograms.size() != n) return absl::DataLossError("bad number of histograms");
  }
  std::vector<int64_t> start_times;
  if ((flags & kChunkHasStartTimes) != 0) {
    const std::string_view part = in.Bytes();
    if (!in.ok() || times.size() != count) return absl::DataLossError("chunk ends early");
    start_times.resize(count);
    RETURN_IF_ERROR(codec::DecodeStartTimes(part, times, start_times));
  }
  const std::string_view part = in.Take(in.left());
  out.values.resize(base + (end - begin));
  const std::span<double> target = std::span(out.values).subspan(base);
  if (positions.empty()) {
    if (begin == 0 && end == count)
      RETURN_IF_ERROR(codec::DecodeValues(part, target));
    else
      RETURN_IF_ERROR(codec::DecodeValuesRange(part, count, begin, target));
  } else {
    std::vector<double> floats(count - positions.size());
    if (!floats.empty())
      RETURN_IF_ERROR(codec::DecodeValues(part, floats));
    else if (!part.empty())
      return absl::DataLossError("chunk goes on behind its end");
    size_t h = 0, f = 0;
    for (size_t i = 0; i < count; ++i) {
      const bool is_histogram = h < positions.size() && positions[h] == i;
      if (i >= begin && i < end) {
        target[i - begin] = is_histogram ? histograms[h]->sum : floats[f];
        if (is_histogram) {
          out.histogram_at.push_back(static_cast<uint32_t>(base + i - begin));
          out.histograms.push_back(histograms[h]);
        }
      }
      if (is_histogram)
        ++h;
      else
        ++f;
    }
  }
  if (!start_times.empty()) {
    out.start_times.resize(base, 0);
    out.start_times.insert(out.start_times.end(), start_times.begin() + static_cast<ptrdiff_t>(begin),
                           start_times.begin() + static_cast<ptrdiff_t>(end));
  } else if (!out.start_times.empty()) {
    out.start_times.resize(base + (end - begin), 0);
  }
  return absl::OkStatus();
}

}  // namespace varve::block
