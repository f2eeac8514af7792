// A checkpoint's bytes to a head: flat arrays in bulk, nothing per series that a bigger step could do.
#include <algorithm>

#include "storage/base/bytes.h"
#include "storage/base/check.h"
#include "storage/codec/columns.h"
#include "storage/head/checkpoint_format.h"
#include "storage/head/head_impl.h"

namespace varve::head {

namespace {

// Whole, but not for this program: nothing that a start may replace.
absl::Status Foreign(std::string_view what) {
  return absl::FailedPreconditionError(base::StrCat("head checkpoint: ", what));
}
absl::Status Bad(std::string_view what) { return absl::DataLossError(base::StrCat("head checkpoint: ", what)); }

// The array's bytes in place; they may be unaligned.
template <class T>
struct ArrayView {
  const char* data = nullptr;
  size_t size = 0;
  T operator[](size_t i) const {
    T v;
    std::memcpy(&v, data + i * sizeof(T), sizeof(T));
    return v;
  }
};

template <class T>
ArrayView<T> TakeArray(base::ByteReader& in) {
  const auto size = in.Fixed<uint64_t>();
  if (size > in.left() / sizeof(T)) return in.Fail(), ArrayView<T>();
  return {in.Take(size * sizeof(T)).data(), size};
}

absl::Status TakeHistograms(base::ByteReader& in, std::vector<HistogramPtr>& out) {
  const uint64_t count = in.Varint();
  const std::string_view bytes = in.Bytes();
  out.clear();
  if (!in.ok() || count > codec::kColumnMax) return Bad("malformed histograms");
  if (count == 0) return absl::OkStatus();
  RETURN_IF_ERROR(codec::DecodeHistograms(bytes, count, out));
  return out.size() == count ? absl::OkStatus() : Bad("malformed histograms");
}

absl::Status TakePoints(base::ByteReader& in, std::vector<Point>& out) {
  const uint64_t count = in.Varint();
  out.clear();
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    Point p;
    p.t = in.Fixed<int64_t>();
    p.bits = in.Fixed<uint64_t>();
    p.start = in.Fixed<int64_t>();
    const std::string_view encoded = in.Bytes();
    if (!encoded.empty()) {
      ASSIGN_OR_RETURN(model::Histogram histogram, codec::DecodeHistogram(encoded));
      p.histogram = std::make_shared<const model::Histogram>(std::move(histogram));
    }
    if (!out.empty() && p.t <= out.back().t) return Bad("a side buffer is not ascending");
    out.push_back(std::move(p));
  }
  return in.ok() ? absl::OkStatus() : Bad("malformed side buffer");
}

}  // namespace

absl::Status Head::LoadCheckpoint(std::string_view bytes) {
  VARVE_CHECK(impl_->table.slot_end() == 0);
  return impl_->LoadCheckpoint(bytes);
}

absl::Status Head::Impl::LoadCheckpoint(std::string_view bytes) {
  replaying = true;
  std::vector<std::pair<Section, std::string_view>> sections;
  base::ByteReader in(bytes);
  while (!in.AtEnd()) {
    const auto magic = in.Fixed<uint32_t>();
    const auto type = in.Fixed<uint32_t>();
    const auto size = in.Fixed<uint64_t>();
    const auto crc = in.Fixed<uint32_t>();
    const std::string_view section = in.Take(size);
    if (!in.ok() || magic != kCheckpointMagic) return Bad("truncated or not a checkpoint");
    if (SectionCrc(static_cast<Section>(type), section) != crc) return Bad("checksum mismatch");
    sections.emplace_back(static_cast<Section>(type), section);
  }
  if (sections.size() < 2 || sections.front().first != Section::kHeader || sections.back().first != Section::kEnd) {
    return Bad("incomplete");
  }
  base::ByteReader header(sections.front().second);
  if (header.Fixed<uint32_t>() != kCheckpointVersion) return Foreign("of another version");
  if (header.Fixed<uint64_t>() != config.hash_seed) return Foreign("made with another hash seed");

  base::ByteReader end(sections.back().second);
  loaded_end = end.Fixed<uint64_t>();
  oldest_ms = end.Fixed<int64_t>();
  newest_ms = end.Fixed<int64_t>();
  exemplars_max = end.Fixed<uint64_t>();
  const uint64_t pair_count = end.Varint();
  if (pair_count > end.left()) return Bad("malformed labels");
  std::vector<index::PairId> pairs(pair_count, UINT32_MAX);
  {
    std::vector<std::string_view> labels;
    std::vector<uint32_t> used;
    for (uint32_t i = 0; i < pair_count && end.ok(); ++i) {
      const std::string_view label = end.Bytes();
      if (label.empty()) continue;
      labels.push_back(label);
      used.push_back(i);
    }
    if (!end.ok()) return Bad("malformed labels");
    absl::StatusOr<std::vector<index::PairId>> ids = index.InternPairs(labels);
    if (!ids.ok()) return Bad(base::Message(ids.status()));
    for (size_t i = 0; i < used.size(); ++i) pairs[used[i]] = (*ids)[i];
  }

  size_t slots = 0;
  for (const auto& [type, section] : sections) slots += type == Section::kSlice ? section.size() / 128 : 0;
  table.Reserve(slots);
  absl::flat_hash_map<uint64_t, uint32_t> columns_by_serial;
  for (const auto& [type, section] : sections) {
    if (type == Section::kSlice) RETURN_IF_ERROR(LoadSlice(section, pairs, columns_by_serial));
  }
  for (const auto& [id, next] : loaded_next) {
    const auto it = columns_by_serial.find(next);
    if (it != columns_by_serial.end()) columns.Link(id, it->second);
  }
  loaded_next.clear();

  const uint64_t exemplar_count = end.Varint();
  for (uint64_t i = 0; i < exemplar_count && end.ok(); ++i) {
    const auto series = end.Fixed<uint64_t>();
    model::Exemplar exemplar;
    exemplar.t_ms = end.Fixed<int64_t>();
    exemplar.value = end.Fixed<double>();
    absl::StatusOr<model::Labels> labels = model::Labels::FromWire(end.Bytes());
    if (!labels.ok()) return Bad(base::Message(labels.status()));
    exemplar.labels = *std::move(labels);
    exemplars.Add(series, std::move(exemplar), exemplars_max);
  }
  const uint64_t metadata_count = end.Varint();
  for (uint64_t i = 0; i < metadata_count && end.ok(); ++i) {
    model::Metadata m;
    m.metric = end.Bytes();
    m.type = static_cast<model::MetricType>(end.U8() & 7);
    m.help = end.Bytes();
    m.unit = end.Bytes();
    metadata[m.metric] = std::move(m);
  }
  return end.ok() && end.AtEnd() ? absl::OkStatus() : Bad("malformed end");
}

absl::Status Head::Impl::LoadSlice(std::string_view section, const std::vector<index::PairId>& pair_ids,
                                   absl::flat_hash_map<uint64_t, uint32_t>& columns_by_serial) {
  base::ByteReader in(section);
  const auto position = in.Fixed<uint64_t>();
  const auto first = in.Fixed<uint32_t>();
  const uint64_t column_count = in.Varint();
  if (column_count > in.left()) return Bad("malformed slice");
  std::vector<uint32_t> local(1);
  for (uint64_t i = 0; i < column_count && in.ok(); ++i) {
    const auto serial = in.Fixed<uint64_t>();
    const auto next = in.Fixed<uint64_t>();
    const uint8_t count = in.U8();
    const uint8_t limit = in.U8();
    ArrayView<int64_t> times{in.Take(size_t{count} * 8).data(), count};
    if (!in.ok() || count == 0 || count > limit || limit > TimeColumns::kPositionsMax) return Bad("malformed column");
    auto [it, fresh] = columns_by_serial.try_emplace(serial, TimeColumns::kNone);
    if (fresh) {
      it->second = columns.Create(times[0], limit);
      if (next != 0) loaded_next.emplace_back(it->second, next);
    }
    // Another slice had the column when it was shorter.
    const uint32_t id = it->second;
    for (uint8_t k = 0; k < count; ++k) {
      if (k < columns.at(id).count) {
        if (columns.times(id)[k] != times[k]) return Bad("slices disagree about a column");
      } else {
        if (times[k] <= columns.at(id).last || columns.at(id).full()) return Bad("a column is not ascending");
        columns.Push(id, times[k]);
      }
    }
    local.push_back(id);
  }
  const auto series = TakeArray<Series>(in);
  const auto words = TakeArray<uint64_t>(in);
  const auto label_counts = TakeArray<uint16_t>(in);
  const auto label_pairs = TakeArray<uint32_t>(in);
  if (!in.ok() || first != table.slot_end() || series.size > UINT32_MAX - 2 - first) return Bad("malformed slice");

  const auto slot_end = static_cast<uint32_t>(first + series.size);
  table.EnsureSlots(slot_end);
  slice_of_slot.resize(slot_end, static_cast<uint32_t>(slice_positions.size()));
  slice_positions.push_back(position);
  std::vector<uint32_t> slots;
  std::vector<uint32_t> ends;
  std::vector<index::PairId> pairs;
  slots.reserve(label_counts.size);
  ends.reserve(label_counts.size);
  pairs.reserve(label_pairs.size);
  size_t word = 0;
  size_t label = 0;
  for (uint32_t i = 0; i < series.size; ++i) {
    Series s = series[i];
    if (!s.live()) {
      const uint32_t generation = s.generation;
      s = Series();
      s.generation = generation;
      table.at(first + i) = s;
      continue;
    }
    const auto n = static_cast<size_t>(std::popcount(s.mask));
    if (s.column >= local.size() || (s.mask != 0) != (s.column != 0)) return Bad("a series names no column");
    if (s.mask != 0) {
      s.column = local[s.column];
      if (32 - std::countl_zero(s.mask) > columns.at(s.column).count) return Bad("a series is longer than its column");
      columns.Ref(s.column);
    }
    if (s.buffer != Slab::kNone) {
      if (n == 0 || n > words.size - word) return Bad("values are missing");
      s.buffer = values.Allocate(static_cast<uint32_t>(n));
      std::memcpy(values.At(s.buffer), words.data + word * 8, n * 8);
      word += n;
    }
    table.at(first + i) = s;
    if (slots.size() == label_counts.size) return Bad("labels are missing");
    const uint16_t count = label_counts[slots.size()];
    if (count > label_pairs.size - label) return Bad("labels are missing");
    for (uint16_t k = 0; k < count; ++k) {
      const uint32_t pair = label_pairs[label++];
      if (pair >= pair_ids.size() || pair_ids[pair] == UINT32_MAX) return Bad("a series names no label");
      pairs.push_back(pair_ids[pair]);
    }
    slots.push_back(first + i);
    ends.push_back(static_cast<uint32_t>(pairs.size()));
  }
  table.IndexMany(slots);
  if (absl::Status status = index.BulkAdd(slots, ends, pairs); !status.ok()) return Bad(base::Message(status));

  const uint64_t extra_count = in.Varint();
  for (uint64_t i = 0; i < extra_count && in.ok(); ++i) {
    const auto slot = in.Fixed<uint32_t>();
    std::vector<HistogramPtr> last;
    std::vector<HistogramPtr> tail;
    std::vector<Point> side;
    RETURN_IF_ERROR(TakeHistograms(in, last));
    RETURN_IF_ERROR(TakeHistograms(in, tail));
    const auto start_times = TakeArray<int64_t>(in);
    RETURN_IF_ERROR(TakePoints(in, side));
    if (slot < first || slot >= slot_end) return Bad("a slot is out of its slice");
    const Series& s = table.at(slot);
    const auto n = static_cast<size_t>(std::popcount(s.mask));
    if (s.has(kLastHistogram) != (last.size() == 1) || (s.has(kHistogramTail) ? tail.size() != n : !tail.empty()) ||
        (s.has(kStartTimes) ? start_times.size != n : start_times.size != 0) || s.has(kSide) == side.empty()) {
      return Bad("a series lacks what it says it has");
    }
    if (!last.empty() || !tail.empty()) histograms[slot] = {last.empty() ? nullptr : last[0], std::move(tail)};
    std::vector<int64_t>* of_tail = start_times.size == 0 ? nullptr : &starts[slot];
    for (size_t k = 0; k < start_times.size; ++k) of_tail->push_back(start_times[k]);
    side_samples += side.size();
    if (!side.empty()) sides[slot] = std::move(side);
  }
  if (!in.ok() || !in.AtEnd() || word != words.size || label != label_pairs.size) return Bad("malformed slice");
  // Every flag that promises something on the side was kept.
  for (const uint32_t slot : slots) {
    const Series& s = table.at(slot);
    if ((s.flags & (kSide | kHistogramTail | kLastHistogram | kStartTimes)) == 0) continue;
    if ((s.has(kSide) && !sides.contains(slot)) || (s.has(kStartTimes) && !starts.contains(slot)) ||
        ((s.flags & (kHistogramTail | kLastHistogram)) != 0 && !histograms.contains(slot))) {
      return Bad("a series lacks what it says it has");
    }
  }
  return absl::OkStatus();
}

}  // namespace varve::head
