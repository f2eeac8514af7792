// How series leave: sealed when they have ended, forgotten once a block file has what they held.
#include <algorithm>

#include "storage/head/head_impl.h"

namespace varve::head {

void Head::Impl::RemoveSeries(std::span<const uint32_t> slots) {
  if (slots.empty()) return;
  index.RemoveSeries(slots);
  for (const uint32_t slot : slots) {
    Series& s = table.at(slot);
    if (!s.live()) continue;
    if (s.mask != 0) columns.Unref(s.column);
    if (s.buffer != Slab::kNone) values.Free(s.buffer);
    DropSide(slot, s);
    histograms.erase(slot);
    starts.erase(slot);
    table.Remove(slot);
    ++totals.series_forgotten_total;
  }
}

bool Head::SealOlderThan(int64_t t_ms, size_t series_max, size_t* cursor) {
  Impl& h = *impl_;
  const size_t end = h.table.slot_end();
  for (; *cursor < end && series_max > 0; ++*cursor, --series_max) {
    const auto slot = static_cast<uint32_t>(*cursor);
    Series& s = h.table.at(slot);
    if (!s.live()) continue;
    if (s.has(kSide) && h.sides.at(slot).front().t < t_ms) h.SealSide(slot, s);
    if (s.mask != 0 && h.columns.times(s.column)[std::countr_zero(s.mask)] < t_ms) h.SealTail(slot, s);
  }
  return *cursor < end;
}

std::vector<SlotInfo> Head::CollectIdle(int64_t now_ms, int64_t idle_ms, size_t max, size_t* cursor) {
  Impl& h = *impl_;
  std::vector<SlotInfo> out;
  const size_t end = h.table.slot_end();
  for (; *cursor < end && out.size() < max; ++*cursor) {
    const auto slot = static_cast<uint32_t>(*cursor);
    Series& s = h.table.at(slot);
    if (!s.live()) continue;
    if (!s.has(kStale) && int64_t{s.arrival_s} * 1000 >= now_ms - idle_ms) continue;
    h.SealSide(slot, s);
    h.SealTail(slot, s);
    out.push_back({h.table.IdAt(slot), s.chain});
  }
  if (*cursor >= end) *cursor = 0;
  return out;
}

absl::StatusOr<size_t> Head::Forget(std::span<const SlotInfo> idle, const WriteLog& log) {
  Impl& h = *impl_;
  if (h.checkpointing) return 0;  // its slices name labels that must stay what they are until it is finished
  if (h.replaying) h.EndReplay();
  std::vector<uint32_t> slots;
  h.builder.Begin();
  for (const SlotInfo& info : idle) {
    const uint32_t slot = SeriesTable::SlotOf(info.series_id);
    if (slot >= h.table.slot_end()) continue;
    const Series& s = h.table.at(slot);
    if (!s.live() || h.table.IdAt(slot) != info.series_id) continue;
    if (s.mask != 0 || s.has(kSide) || s.chain != info.chain_position) continue;
    if (s.chain != SealedLog::kNone && s.chain >= h.sealed.floor()) continue;
    slots.push_back(slot);
    h.builder.AddForget(h.config.tenant_ref, info.series_id);
  }
  if (slots.empty()) return 0;
  RETURN_IF_ERROR(log(h.builder.Finish()));
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  h.RemoveSeries(slots);
  return slots.size();
}

}  // namespace varve::head
