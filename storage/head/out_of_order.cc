// Samples that are older than their series' newest: kept beside the tail, sealed apart, merged by whoever reads.
#include <algorithm>

#include "storage/codec/columns.h"
#include "storage/head/head_impl.h"

namespace varve::head {

namespace {

constexpr size_t kSideMax = 32;

std::vector<Point>::const_iterator AtOrAfter(const std::vector<Point>& side, int64_t t) {
  return std::lower_bound(side.begin(), side.end(), t, [](const Point& p, int64_t time) { return p.t < time; });
}

}  // namespace

std::optional<Point> Head::Impl::FindAt(uint32_t slot, const Series& s, int64_t t) const {
  if (auto found = FindInTail(slot, s, t); found.has_value()) return found;
  if (s.has(kSide)) {
    const std::vector<Point>& side = sides.at(slot);
    const auto it = AtOrAfter(side, t);
    if (it != side.end() && it->t == t) return *it;
  }
  return FindInChain(slot, s, t);
}

std::optional<Point> Head::Impl::FindInTail(uint32_t slot, const Series& s, int64_t t) const {
  if (s.mask == 0) return std::nullopt;
  const auto position = columns.Find(s.column, t);
  if (!position.has_value() || (s.mask >> *position & 1) == 0) return std::nullopt;
  const auto i = static_cast<size_t>(std::popcount(s.mask & ((1u << *position) - 1)));
  Point point;
  point.t = t;
  if (s.has(kHistogramTail)) {
    point.histogram = histograms.at(slot).tail[i];
    point.bits = std::bit_cast<uint64_t>(point.histogram->sum);
  } else {
    point.bits = s.buffer == Slab::kNone ? s.last_bits : values.At(s.buffer)[i];
  }
  if (s.has(kStartTimes)) point.start = starts.at(slot)[i];
  return point;
}

std::optional<Point> Head::Impl::FindInChain(uint32_t slot, const Series& s, int64_t t) const {
  if (s.chain == SealedLog::kNone || s.chain < sealed.floor()) return std::nullopt;
  // Bytes that cannot be read hold nothing that a new sample could contradict: a reader is told of them, a writer is
  // not.
  const SealedView view = sealed.view();
  std::vector<int64_t> column;
  std::vector<int64_t> times;
  for (uint64_t at = s.chain; at != SealedLog::kNone && at >= sealed.floor();) {
    const auto bytes = view.Read(at);
    ChunkView chunk;
    if (!bytes.ok() || !ParseChunk(*bytes, at, &chunk).ok() || chunk.header.slot != slot) return std::nullopt;
    if (IsCut(chunk, view)) return std::nullopt;
    times.clear();
    if ((chunk.header.flags & kChunkInlineTimes) != 0) {
      if (!codec::DecodeTimes(chunk.inline_times, times).ok()) return std::nullopt;
    } else {
      column.clear();
      const auto column_bytes = view.Read(chunk.header.column);
      if (!column_bytes.ok() || !DecodeColumn(*column_bytes, column).ok()) return std::nullopt;
      ForEachBit(chunk.header.mask, [&](uint32_t i) {
        if (i < column.size()) times.push_back(column[i]);
      });
    }
    if (times.size() != chunk.header.count) return std::nullopt;
    const auto it = std::lower_bound(times.begin(), times.end(), t);
    if (it != times.end() && *it == t) {
      const auto i = static_cast<size_t>(it - times.begin());
      Point point;
      point.t = t;
      if (chunk.histograms()) {
        std::vector<HistogramPtr> decoded;
        if (!codec::DecodeHistograms(chunk.payload, times.size(), decoded).ok()) return std::nullopt;
        point.histogram = decoded[i];
        point.bits = std::bit_cast<uint64_t>(point.histogram->sum);
      } else {
        std::vector<double> decoded(times.size());
        if (!codec::DecodeValues(chunk.payload, decoded).ok()) return std::nullopt;
        point.bits = std::bit_cast<uint64_t>(decoded[i]);
      }
      return point;
    }
    // What stands further back is older than the first sample of a chunk that came in order.
    if (!chunk.side() && times.front() <= t) return std::nullopt;
    at = chunk.header.previous;
  }
  return std::nullopt;
}

void Head::Impl::InsertSide(uint32_t slot, Series& s, Point point) {
  if (point.histogram != nullptr && point.histogram->hint != model::ResetHint::kGauge &&
      point.histogram->hint != model::ResetHint::kUnknown) {
    auto copy = std::make_shared<model::Histogram>(*point.histogram);
    copy->hint = model::ResetHint::kUnknown;
    point.histogram = std::move(copy);
  }
  std::vector<Point>& side = sides[slot];
  side.insert(AtOrAfter(side, point.t), std::move(point));
  s.set(kSide, true);
  ++side_samples;
  if (side.size() >= kSideMax) SealSide(slot, s);
}

void Head::Impl::DropSide(uint32_t slot, Series& s) {
  if (!s.has(kSide)) return;
  const auto it = sides.find(slot);
  side_samples -= it->second.size();
  sides.erase(it);
  s.set(kSide, false);
}

void Head::Impl::SealSide(uint32_t slot, Series& s) {
  if (!s.has(kSide)) return;
  // The tail first: so a chunk of late samples holds nothing newer than the chunk before it, and a reader that walks
  // back may stop at the first in-order chunk that begins before its range.
  SealTail(slot, s);
  const std::vector<Point> side = std::move(sides.at(slot));
  for (const bool want_histograms : {false, true}) {
    std::vector<int64_t> times;
    std::vector<int64_t> starts_of_side;
    std::vector<double> floats;
    std::vector<HistogramPtr> decoded;
    bool any_start = false;
    for (const Point& p : side) {
      if ((p.histogram != nullptr) != want_histograms) continue;
      times.push_back(p.t);
      starts_of_side.push_back(p.start);
      any_start = any_start || p.start != 0;
      if (want_histograms)
        decoded.push_back(p.histogram);
      else
        floats.push_back(std::bit_cast<double>(p.bits));
    }
    if (times.empty()) continue;
    if (!any_start) starts_of_side.clear();
    ChunkHeader header;
    header.flags = kChunkInlineTimes | kChunkSide;
    header.previous = s.chain;
    header.slot = slot;
    header.generation = s.generation;
    header.count = static_cast<uint32_t>(times.size());
    if (want_histograms) {
      header.flags |= kChunkHistograms;
      AppendChunk(s, times.size() * (256 + model::MemoryBytes(*decoded.back())), [&](uint64_t position) {
        EncodeHistogramChunk(header, position, times, decoded, starts_of_side, body);
      });
    } else {
      AppendChunk(s, 1024,
                  [&](uint64_t position) { EncodeFloatChunk(header, position, times, floats, starts_of_side, body); });
    }
  }
  DropSide(slot, s);
  side_samples -= side.size();
}

}  // namespace varve::head
