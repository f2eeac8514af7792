// A head to bytes, some series at a time.
#include <algorithm>

#include "storage/base/bytes.h"
#include "storage/base/check.h"
#include "storage/codec/columns.h"
#include "storage/head/checkpoint_format.h"
#include "storage/head/head_impl.h"

namespace varve::head {

namespace {

size_t BeginSection(std::string& out) {
  const size_t at = out.size();
  out.append(kSectionHeaderBytes, '\0');
  return at;
}

void EndSection(Section type, size_t at, std::string& out) {
  const std::string_view body = std::string_view(out).substr(at + kSectionHeaderBytes);
  const uint64_t size = body.size();
  const uint32_t crc = SectionCrc(type, body);
  const auto number = static_cast<uint32_t>(type);
  std::memcpy(out.data() + at, &kCheckpointMagic, 4);
  std::memcpy(out.data() + at + 4, &number, 4);
  std::memcpy(out.data() + at + 8, &size, 8);
  std::memcpy(out.data() + at + 16, &crc, 4);
}

template <class T>
void PutArray(const std::vector<T>& array, std::string& out) {
  base::PutFixed<uint64_t>(out, array.size());
  out.append(reinterpret_cast<const char*>(array.data()), array.size() * sizeof(T));
}

void PutHistograms(const std::vector<HistogramPtr>& histograms, std::string& out) {
  base::PutVarint(out, histograms.size());
  std::string encoded;
  if (!histograms.empty()) codec::EncodeHistograms(histograms, encoded);
  base::PutBytes(out, encoded);
}

void PutPoints(const std::vector<Point>& points, std::string& out) {
  base::PutVarint(out, points.size());
  std::string encoded;
  for (const Point& p : points) {
    base::PutFixed(out, p.t);
    base::PutFixed(out, p.bits);
    base::PutFixed(out, p.start);
    encoded.clear();
    if (p.histogram != nullptr) codec::EncodeHistogram(*p.histogram, encoded);
    base::PutBytes(out, encoded);
  }
}

}  // namespace

void Head::StartCheckpoint(LogPosition now, std::string& out) {
  Impl& h = *impl_;
  VARVE_CHECK(!h.checkpointing);
  h.checkpointing = true;
  h.checkpoint_cursor = 0;
  const size_t at = BeginSection(out);
  base::PutFixed(out, kCheckpointVersion);
  base::PutFixed(out, h.config.hash_seed);
  base::PutFixed(out, now);
  EndSection(Section::kHeader, at, out);
}

bool Head::CheckpointSlice(size_t series_max, LogPosition now, std::string& out) {
  VARVE_CHECK(impl_->checkpointing && series_max > 0);
  return impl_->CheckpointSlice(series_max, now, out);
}

bool Head::Impl::CheckpointSlice(size_t series_max, LogPosition now, std::string& out) {
  const uint32_t first = checkpoint_cursor;
  const auto count = static_cast<uint32_t>(std::min<size_t>(series_max, table.slot_end() - first));
  if (count == 0) return false;
  checkpoint_cursor = first + count;

  std::vector<Series> series(count);
  std::vector<uint64_t> words;
  std::vector<uint16_t> label_counts;
  std::vector<index::PairId> pairs;
  absl::flat_hash_map<uint32_t, uint32_t> local;  // column to its number in the slice, from 1
  std::vector<uint32_t> used;
  std::vector<uint32_t> with_extras;
  uint32_t last_column = TimeColumns::kNone;
  uint32_t last_local = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t slot = first + i;
    if (i + 16 < count) {
      const Series& ahead = table.at(slot + 16);
      if (ahead.buffer != Slab::kNone) __builtin_prefetch(values.At(ahead.buffer));
    }
    Series& copy = series[i];
    copy = table.at(slot);
    if (!copy.live()) continue;
    copy.set(kStaged, false);
    if (copy.mask != 0) {
      if (copy.column != last_column) {
        const auto [it, fresh] = local.try_emplace(copy.column, static_cast<uint32_t>(used.size() + 1));
        if (fresh) used.push_back(copy.column);
        last_column = copy.column;
        last_local = it->second;
      }
      copy.column = last_local;
    } else {
      copy.column = 0;
    }
    if (copy.buffer != Slab::kNone) {
      const uint64_t* from = values.At(copy.buffer);
      words.insert(words.end(), from, from + std::popcount(copy.mask));
      copy.buffer = 1;
    }
    const std::span<const index::PairId> labels = index.ListOf(slot).pairs();
    label_counts.push_back(static_cast<uint16_t>(labels.size()));
    pairs.insert(pairs.end(), labels.begin(), labels.end());
    if ((copy.flags & (kSide | kHistogramTail | kLastHistogram | kStartTimes)) != 0) with_extras.push_back(slot);
  }

  const size_t at = BeginSection(out);
  base::PutFixed(out, now);
  base::PutFixed(out, first);
  base::PutVarint(out, used.size());
  for (const uint32_t id : used) {
    const TimeColumns::Column& c = columns.at(id);
    base::PutFixed(out, c.serial);
    base::PutFixed(out, c.next == TimeColumns::kNone ? uint64_t{0} : c.next_serial);
    base::PutU8(out, c.count);
    base::PutU8(out, c.limit);
    out.append(reinterpret_cast<const char*>(columns.times(id)), size_t{c.count} * 8);
  }
  PutArray(series, out);
  PutArray(words, out);
  PutArray(label_counts, out);
  PutArray(pairs, out);
  base::PutVarint(out, with_extras.size());
  for (const uint32_t slot : with_extras) {
    const Series& s = table.at(slot);
    base::PutFixed(out, slot);
    std::vector<HistogramPtr> last;
    if (s.has(kLastHistogram)) last.push_back(histograms.at(slot).last);
    PutHistograms(last, out);
    PutHistograms(s.has(kHistogramTail) ? histograms.at(slot).tail : std::vector<HistogramPtr>(), out);
    PutArray(s.has(kStartTimes) ? starts.at(slot) : std::vector<int64_t>(), out);
    PutPoints(s.has(kSide) ? sides.at(slot) : std::vector<Point>(), out);
  }
  EndSection(Section::kSlice, at, out);
  return checkpoint_cursor < table.slot_end();
}

void Head::FinishCheckpoint(LogPosition now, std::string& out) {
  Impl& h = *impl_;
  VARVE_CHECK(h.checkpointing);
  const size_t at = BeginSection(out);
  base::PutFixed(out, now);
  base::PutFixed(out, h.oldest_ms);
  base::PutFixed(out, h.newest_ms);
  base::PutFixed(out, h.exemplars_max);
  // No series has been forgotten since the first slice, so ids mean what they meant then.
  base::PutVarint(out, h.index.pair_end());
  for (index::PairId pair = 0; pair < h.index.pair_end(); ++pair) base::PutBytes(out, h.index.PairBytes(pair));
  base::PutVarint(out, h.exemplars.items().size());
  for (const ExemplarRing::Item& item : h.exemplars.items()) {
    base::PutFixed(out, item.series);
    base::PutFixed(out, item.exemplar.t_ms);
    base::PutFixed(out, item.exemplar.value);
    base::PutBytes(out, item.exemplar.labels.bytes());
  }
  base::PutVarint(out, h.metadata.size());
  for (const auto& [metric, m] : h.metadata) {
    base::PutBytes(out, metric);
    base::PutU8(out, static_cast<uint8_t>(m.type));
    base::PutBytes(out, m.help);
    base::PutBytes(out, m.unit);
  }
  EndSection(Section::kEnd, at, out);
  h.checkpointing = false;
}

void Head::AbandonCheckpoint() { impl_->checkpointing = false; }

}  // namespace varve::head
