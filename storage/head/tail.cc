// In-order samples: they join a shared time column and gather in the tail until it is sealed.
#include <algorithm>

#include "storage/head/head_impl.h"
#include "storage/model/histogram_math.h"

namespace varve::head {

namespace {

// A series on a column of which it has less than three quarters of the times shares it with the wrong neighbours.
bool Sparse(const Series& s, uint32_t column_count) {
  const auto has = static_cast<uint32_t>(std::popcount(s.mask));
  return has * 4 < (column_count - s.joined) * 3;
}

bool SameLayout(const model::Histogram& a, const model::Histogram& b) {
  return a.schema == b.schema && model::SameBits(a.zero_threshold, b.zero_threshold) &&
         a.custom_values == b.custom_values;
}

// The hint that is read back tells runs of a counter that was not reset.
model::ResetHint StoredHint(const HistogramPtr& previous, const model::Histogram& next) {
  if (next.hint == model::ResetHint::kGauge) return model::ResetHint::kGauge;
  const bool continues = previous != nullptr && !next.IsStale() && !previous->IsStale() &&
                         previous->hint != model::ResetHint::kGauge && next.hint != model::ResetHint::kReset &&
                         SameLayout(*previous, next) && !model::DetectReset(*previous, next);
  return continues ? model::ResetHint::kNotReset : model::ResetHint::kUnknown;
}

}  // namespace

void Head::Impl::Place(uint32_t slot, Series& s, int64_t t) {
  if (s.mask != 0) [[likely]] {
    TimeColumns::Column& c = columns.at(s.column);
    if (c.last == t) {
      s.mask |= 1u << (c.count - 1);
      return;
    }
    if (t > c.last && !c.full()) {
      columns.Push(s.column, t);
      s.mask |= 1u << (columns.at(s.column).count - 1);
      return;
    }
  }
  PlaceElsewhere(slot, s, t);
}

void Head::Impl::PlaceElsewhere(uint32_t slot, Series& s, int64_t t) {
  uint32_t target = TimeColumns::kNone;
  if (s.mask != 0) {
    const TimeColumns::Column& c = columns.at(s.column);
    if (t < c.last) {
      if (const auto position = columns.Find(s.column, t); position.has_value()) {
        s.mask |= 1u << *position;
        return;
      }
    } else if (!Sparse(s, c.count)) {
      target = columns.Successor(s.column, t);
    }
    SealTail(slot, s);
  }
  uint32_t position = 0;
  if (target != TimeColumns::kNone) {
    const TimeColumns::Column& c = columns.at(target);
    if (c.last == t) {
      position = c.count - 1u;
    } else if (t > c.last && !c.full()) {
      columns.Push(target, t);
      position = columns.at(target).count - 1u;
    } else if (const auto found = columns.Find(target, t); found.has_value()) {
      position = *found;
    } else {
      target = TimeColumns::kNone;
    }
  }
  if (target == TimeColumns::kNone) {
    target = columns.ForTime(t);
    position = columns.at(target).count - 1u;
  }
  columns.Ref(target);
  s.column = target;
  s.joined = static_cast<uint8_t>(position);
  s.mask = 1u << position;
}

void Head::Impl::NoteStart(uint32_t slot, Series& s, uint32_t count_before, int64_t start) {
  if (start == 0 && !s.has(kStartTimes)) return;
  std::vector<int64_t>& of_tail = starts[slot];
  of_tail.resize(count_before);
  of_tail.push_back(start);
  s.set(kStartTimes, true);
}

void Head::Impl::AppendFloat(uint32_t slot, Series& s, int64_t t, uint64_t bits, int64_t start) {
  if ((s.flags & (kHistogramTail | kLastHistogram)) != 0) [[unlikely]] {
    if (s.has(kHistogramTail)) SealTail(slot, s);
    histograms.erase(slot);
    s.set(kLastHistogram, false);
  }
  Place(slot, s, t);
  const auto before = static_cast<uint32_t>(std::popcount(s.mask)) - 1;
  if (s.buffer != Slab::kNone) {
    if (before == Slab::Words(s.buffer)) s.buffer = values.Grow(s.buffer, before);
    values.At(s.buffer)[before] = bits;
  } else if (before != 0 && bits != s.last_bits) {
    s.buffer = values.Allocate(before + 1);
    uint64_t* words = values.At(s.buffer);
    std::fill_n(words, before, s.last_bits);
    words[before] = bits;
  }
  if (start != 0 || s.has(kStartTimes)) [[unlikely]]
    NoteStart(slot, s, before, start);
  s.last_bits = bits;
  s.last_t = t;
  s.set(kStale, bits == model::kStaleNanBits);
}

void Head::Impl::AppendHistogram(uint32_t slot, Series& s, int64_t t, HistogramPtr histogram, int64_t start) {
  if (s.mask != 0 && !s.has(kHistogramTail)) SealTail(slot, s);
  HistogramTail& state = histograms[slot];
  const model::ResetHint hint = StoredHint(state.last, *histogram);
  if (histogram->hint != hint) {
    auto copy = std::make_shared<model::Histogram>(*histogram);
    copy->hint = hint;
    histogram = std::move(copy);
  }
  Place(slot, s, t);  // may seal what was in the tail
  s.set(kHistogramTail, true);
  s.set(kLastHistogram, true);
  HistogramTail& now = histograms[slot];
  const size_t before = now.tail.size();
  s.last_bits = std::bit_cast<uint64_t>(histogram->sum);
  s.last_t = t;
  s.set(kStale, histogram->IsStale());
  now.last = histogram;
  now.tail.push_back(std::move(histogram));
  NoteStart(slot, s, static_cast<uint32_t>(before), start);
}

void Head::Impl::RecordColumn(uint32_t column, uint32_t positions) {
  TimeColumns::Column& c = columns.at(column);
  if (c.recorded >= positions) return;
  body.clear();
  EncodeColumn({columns.times(column), c.count}, body);
  c.position = sealed.Append(body);
  c.recorded = c.count;
}

void Head::Impl::TailTimes(const Series& s, std::vector<int64_t>& out) const {
  const int64_t* times = columns.times(s.column);
  ForEachBit(s.mask, [&](uint32_t i) { out.push_back(times[i]); });
}

void Head::Impl::SealTail(uint32_t slot, Series& s) {
  if (s.mask == 0) return;
  const auto count = static_cast<uint32_t>(std::popcount(s.mask));
  RecordColumn(s.column, 32u - static_cast<uint32_t>(std::countl_zero(s.mask)));
  ChunkHeader header;
  header.previous = s.chain;
  header.slot = slot;
  header.generation = s.generation;
  header.column = columns.at(s.column).position;
  header.mask = s.mask;
  header.count = count;
  std::span<const int64_t> starts_of_tail;
  scratch_times.clear();
  if (s.has(kStartTimes)) {
    TailTimes(s, scratch_times);
    starts_of_tail = starts[slot];
  }
  if (s.has(kHistogramTail)) {
    header.flags = kChunkHistograms;
    std::vector<HistogramPtr>& tail = histograms[slot].tail;
    AppendChunk(s, tail.size() * (256 + model::MemoryBytes(*tail.back())), [&](uint64_t position) {
      EncodeHistogramChunk(header, position, scratch_times, tail, starts_of_tail, body);
    });
    tail.clear();
    if (!s.has(kLastHistogram)) histograms.erase(slot);
  } else {
    double constant[TimeColumns::kPositionsMax];
    const double* floats = constant;
    if (s.buffer != Slab::kNone) {
      floats = reinterpret_cast<const double*>(values.At(s.buffer));
    } else {
      std::fill_n(constant, count, std::bit_cast<double>(s.last_bits));
    }
    AppendChunk(s, 512, [&](uint64_t position) {
      EncodeFloatChunk(header, position, scratch_times, {floats, count}, starts_of_tail, body);
    });
  }
  if (s.buffer != Slab::kNone) values.Free(s.buffer);
  s.buffer = Slab::kNone;
  if (s.has(kStartTimes)) starts.erase(slot);
  columns.Unref(s.column);
  s.column = TimeColumns::kNone;
  s.mask = 0;
  s.joined = 0;
  s.set(kHistogramTail, false);
  s.set(kStartTimes, false);
}

}  // namespace varve::head
