// Reading, the part on the shard's thread: find the series, copy what will change, hand it over.
#include <algorithm>

#include "storage/head/head_impl.h"
#include "storage/head/snapshot.h"

namespace varve::head {

namespace {

std::vector<uint32_t> SlotsOf(const index::Bitmap& bitmap) {
  std::vector<uint32_t> slots(bitmap.cardinality());
  bitmap.toUint32Array(slots.data());
  return slots;
}

}  // namespace

// Copies series into a snapshot.
struct Head::Impl::Capture {
  const Head::Impl& head;
  Snapshot& to;
  absl::flat_hash_map<uint32_t, uint32_t> columns;  // the head's to the snapshot's
  uint32_t last_column = TimeColumns::kNone, last_copy = 0;

  uint32_t Column(uint32_t id) {
    if (id == last_column) return last_copy;
    const auto [it, fresh] = columns.try_emplace(id, static_cast<uint32_t>(to.tail_columns_.size()));
    if (fresh) {
      const int64_t* times = head.columns.times(id);
      to.tail_columns_.emplace_back(times, times + head.columns.at(id).count);
    }
    last_column = id;
    return last_copy = it->second;
  }

  void Add(uint32_t slot, const Series& s, bool with_tail) {
    Snapshot::Entry& e = to.entries_.emplace_back();
    e.hash = s.hash;
    e.labels = head.index.ListOf(slot);
    e.chain = s.chain;
    e.last_bits = s.last_bits;
    e.slot = slot;
    e.generation = s.generation;
    if (!with_tail) return;
    e.mask = s.mask;
    if (s.mask != 0) e.column = Column(s.column);
    if (s.buffer != Slab::kNone) {
      e.words = to.words_.size();
      const uint64_t* words = head.values.At(s.buffer);
      to.words_.insert(to.words_.end(), words, words + std::popcount(s.mask));
    }
    if ((s.flags & (kSide | kHistogramTail | kStartTimes)) != 0) {
      e.extra = static_cast<uint32_t>(to.extras_.size());
      e.histogram_tail = s.has(kHistogramTail);
      Snapshot::Extra& extra = to.extras_.emplace_back();
      if (s.has(kSide)) extra.side = head.sides.at(slot);
      if (s.has(kHistogramTail)) extra.histograms = head.histograms.at(slot).tail;
      if (s.has(kStartTimes)) extra.starts = head.starts.at(slot);
    }
  }
};

absl::StatusOr<std::unique_ptr<model::HashedSelection>> Head::Impl::Select(const model::SelectRequest& request) const {
  auto out = std::make_unique<Snapshot>(request.range, index.TakePin(), sealed.view(), 0, UINT64_MAX, request.memory);
  if (!MayHave(request.range)) return out;
  ASSIGN_OR_RETURN(const index::Bitmap bitmap, index.Match(request.matchers, request.cancel));
  const std::vector<uint32_t> slots = SlotsOf(bitmap);
  const auto charge = [&](size_t bytes) {
    const auto more = static_cast<int64_t>(bytes) - out->charged_;
    if (request.memory == nullptr || more <= 0) return true;
    if (!request.memory->TryCharge(more)) return false;
    out->charged_ += more;
    return true;
  };
  const auto too_much = [] {
    return absl::ResourceExhaustedError("the query's memory budget does not hold its series");
  };
  const uint64_t floor = sealed.floor();
  Capture capture{*this, *out, {}};
  if (!charge(slots.size() * sizeof(Snapshot::Entry))) return too_much();
  out->entries_.reserve(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    if (i + 16 < slots.size()) table.PrefetchSeries(slots[i + 16]);
    if (i + 6 < slots.size()) {
      const Series& ahead = table.at(slots[i + 6]);
      if (ahead.buffer != Slab::kNone) {
        __builtin_prefetch(values.At(ahead.buffer));
        __builtin_prefetch(values.At(ahead.buffer) + 8);
      }
    }
    const Series& s = table.at(slots[i]);
    if (!s.live() || s.last_t <= request.range.after_ms) continue;
    if (s.mask == 0 && !s.has(kSide) && (s.chain == SealedLog::kNone || s.chain < floor)) continue;
    if (out->entries_.size() >= request.series_max) {
      return absl::ResourceExhaustedError(
          base::StrCat("the selection has more than ", request.series_max, " series, the limit"));
    }
    capture.Add(slots[i], s, true);
    if ((i & 1023) == 1023) {
      if (request.cancel != nullptr) RETURN_IF_ERROR(request.cancel->Check());
      if (!charge(out->entries_.capacity() * sizeof(Snapshot::Entry) + out->words_.capacity() * 8)) return too_much();
    }
  }
  if (!charge(out->entries_.capacity() * sizeof(Snapshot::Entry) + out->words_.capacity() * 8)) return too_much();
  return out;
}

std::unique_ptr<model::HashedSelection> Head::Impl::StartCut(uint64_t from, uint64_t below) const {
  auto out = std::make_unique<Snapshot>(model::TimeRange::All(), index.TakePin(), sealed.view(), from, below, nullptr);
  Capture capture{*this, *out, {}};
  from = std::max(from, sealed.floor());
  for (uint32_t slot = 0; slot < table.slot_end(); ++slot) {
    const Series& s = table.at(slot);
    if (s.live() && s.chain != SealedLog::kNone && s.chain >= from) capture.Add(slot, s, false);
  }
  return out;
}

absl::StatusOr<std::unique_ptr<model::HashedSelection>> Head::Select(const model::SelectRequest& request) const {
  return impl_->Select(request);
}

std::unique_ptr<model::HashedSelection> Head::StartCut(uint64_t from, uint64_t below) {
  auto out = impl_->StartCut(from, below);
  // Chunks sealed from now on are read when everything before `below` is gone, so their columns must not stand there.
  impl_->columns.ForgetPositions();
  return out;
}

absl::StatusOr<std::vector<std::string>> Head::LabelNames(const model::SelectRequest& request) const {
  if (!impl_->MayHave(request.range)) return std::vector<std::string>();
  if (request.matchers.empty()) return impl_->index.LabelNames();
  ASSIGN_OR_RETURN(const index::Bitmap among, impl_->index.Match(request.matchers, request.cancel));
  return impl_->index.LabelNames(&among);
}

absl::StatusOr<std::vector<std::string>> Head::LabelValues(std::string_view name,
                                                           const model::SelectRequest& request) const {
  if (!impl_->MayHave(request.range)) return std::vector<std::string>();
  if (request.matchers.empty()) return impl_->index.LabelValues(name);
  ASSIGN_OR_RETURN(const index::Bitmap among, impl_->index.Match(request.matchers, request.cancel));
  return impl_->index.LabelValues(name, &among);
}

absl::StatusOr<std::vector<model::ExemplarSeries>> Head::Exemplars(const model::SelectRequest& request) const {
  const Impl& h = *impl_;
  ASSIGN_OR_RETURN(const index::Bitmap among, h.index.Match(request.matchers, request.cancel));
  absl::flat_hash_map<uint64_t, size_t> at;
  std::vector<model::ExemplarSeries> out;
  for (const ExemplarRing::Item& item : h.exemplars.items()) {
    if (!request.range.Contains(item.exemplar.t_ms)) continue;
    const uint32_t slot = SeriesTable::SlotOf(item.series);
    if (slot >= h.table.slot_end() || !h.table.at(slot).live() || h.table.IdAt(slot) != item.series) continue;
    if (!among.contains(slot)) continue;
    const auto [it, fresh] = at.try_emplace(item.series, out.size());
    if (fresh) out.push_back({h.index.LabelsOf(slot), {}});
    out[it->second].exemplars.push_back(item.exemplar);
  }
  std::sort(out.begin(), out.end(),
            [](const model::ExemplarSeries& a, const model::ExemplarSeries& b) { return a.labels < b.labels; });
  return out;
}

std::vector<model::Metadata> Head::MetadataFor(std::string_view metric) const {
  std::vector<model::Metadata> out;
  for (const auto& [name, metadata] : impl_->metadata) {
    if (metric.empty() || metric == name) out.push_back(metadata);
  }
  std::sort(out.begin(), out.end(),
            [](const model::Metadata& a, const model::Metadata& b) { return a.metric < b.metric; });
  return out;
}

absl::StatusOr<model::SourceStats> Head::SourceStats(size_t limit) const {
  const Impl& h = *impl_;
  model::SourceStats stats;
  h.index.FillStats(limit, stats);
  stats.series = h.table.live();
  stats.chunks = h.totals.chunks_sealed_total + h.columns.size();
  if (h.newest_ms != INT64_MIN) {
    stats.min_time_ms = h.oldest_ms;
    stats.max_time_ms = h.newest_ms;
  }
  return stats;
}

}  // namespace varve::head
