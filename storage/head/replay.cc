// What the log says again after a restart. The same records on the same state give the same state; what the checkpoint
// holds already is skipped per series, because its slices were taken at different positions.
#include <algorithm>

#include "storage/base/check.h"
#include "storage/codec/columns.h"
#include "storage/head/head_impl.h"

namespace varve::head {

namespace {

constexpr uint32_t kSlotMax = 1u << 30;  // no head comes near; a larger number is damage

uint32_t ArrivalOf(int64_t t_ms) { return static_cast<uint32_t>(std::clamp<int64_t>(t_ms / 1000, 0, UINT32_MAX)); }

std::string LabelBytes(model::LabelRef label) {
  model::LabelsBuilder builder;
  builder.Append(label.name, label.value);
  return std::string(std::move(builder).Build().bytes());
}

}  // namespace

Series* Head::Impl::Replayable(uint64_t id, LogPosition at) {
  const uint32_t slot = SeriesTable::SlotOf(id);
  if (slot >= table.slot_end()) return nullptr;
  Series& s = table.at(slot);
  if (!s.live() || s.generation != SeriesTable::GenerationOf(id)) return nullptr;
  if (slot < slice_of_slot.size() && at < slice_positions[slice_of_slot[slot]]) return nullptr;
  return &s;
}

void Head::Impl::EndReplay() {
  replaying = false;
  table.RebuildFree();
  slice_of_slot = {};
  slice_positions = {0};
}

absl::Status Head::Impl::Apply(wal::RecordType type, std::string_view payload, LogPosition at) {
  replaying = true;
  wal::TenantRef tenant = 0;
  switch (type) {
    case wal::RecordType::kSeries:
      return ApplySeries(payload, at);
    case wal::RecordType::kFloats:
      return ApplyFloats(payload, at);
    case wal::RecordType::kHistograms:
      return ApplyHistograms(payload, at);
    case wal::RecordType::kForget:
      return ApplyForget(payload, at);
    case wal::RecordType::kExemplars: {
      if (at < loaded_end) return absl::OkStatus();
      std::vector<wal::ExemplarEntry> entries;
      RETURN_IF_ERROR(wal::DecodeExemplars(payload, &tenant, &entries));
      for (const wal::ExemplarEntry& e : entries) {
        if (Replayable(e.series, ~LogPosition{0}) == nullptr) continue;
        model::Exemplar exemplar{model::Labels(e.labels), e.value, e.t_ms};
        if (exemplars.Judge(e.series, exemplar) == ExemplarRing::Verdict::kNew) {
          exemplars.Add(e.series, std::move(exemplar), exemplars_max);
        }
      }
      return absl::OkStatus();
    }
    case wal::RecordType::kMetadata: {
      if (at < loaded_end) return absl::OkStatus();
      std::vector<wal::MetadataEntry> entries;
      RETURN_IF_ERROR(wal::DecodeMetadata(payload, &tenant, &entries));
      for (const wal::MetadataEntry& e : entries) {
        metadata[std::string(e.metric)] = {std::string(e.metric), e.type, std::string(e.help), std::string(e.unit)};
      }
      return absl::OkStatus();
    }
    default:
      return absl::OkStatus();  // of a later version, or not of a head
  }
}

absl::Status Head::Impl::ApplySeries(std::string_view payload, LogPosition at) {
  wal::SeriesDecoder& decoder = series_decoder;
  RETURN_IF_ERROR(decoder.Decode(payload));
  struct New {
    uint32_t slot;
    uint32_t i;
  };
  std::vector<New> fresh;
  std::vector<uint32_t> replaced;
  for (uint32_t i = 0; i < decoder.size(); ++i) {
    const uint32_t slot = SeriesTable::SlotOf(decoder.id(i));
    const uint32_t generation = SeriesTable::GenerationOf(decoder.id(i));
    if (slot >= kSlotMax) return absl::DataLossError(base::StrCat("series record: slot ", slot));
    if (slot < slice_of_slot.size() && at < slice_positions[slice_of_slot[slot]]) continue;
    table.EnsureSlots(slot + 1);
    const Series& s = table.at(slot);
    if (s.generation > generation || (s.live() && s.generation == generation)) continue;
    const uint32_t twin = table.Find(decoder.hash(i));
    // An older series in the way: the record that forgot it was lost with a damaged part of the log.
    if (s.live()) replaced.push_back(slot);
    if (twin != SeriesTable::kNoSlot && twin != slot) replaced.push_back(twin);
    fresh.push_back({slot, i});
  }
  if (fresh.empty()) return absl::OkStatus();
  std::sort(fresh.begin(), fresh.end(), [](const New& a, const New& b) { return a.slot < b.slot; });
  for (size_t i = 1; i < fresh.size(); ++i) {
    if (fresh[i].slot == fresh[i - 1].slot) return absl::DataLossError("series record: a slot occurs twice");
  }
  if (!replaced.empty()) RemoveSeries(replaced);

  std::vector<std::string> bytes;
  bytes.reserve(decoder.pairs().size());
  std::vector<std::string_view> views;
  for (const model::LabelRef& label : decoder.pairs()) bytes.push_back(LabelBytes(label));
  views.assign(bytes.begin(), bytes.end());
  ASSIGN_OR_RETURN(const std::vector<index::PairId> ids, index.InternPairs(views));
  std::vector<uint32_t> slots;
  std::vector<uint32_t> ends;
  std::vector<index::PairId> pairs;
  for (const New& n : fresh) {
    slots.push_back(n.slot);
    for (const uint32_t ref : decoder.refs(n.i)) pairs.push_back(ids[ref]);
    ends.push_back(static_cast<uint32_t>(pairs.size()));
  }
  if (absl::Status status = index.BulkAdd(slots, ends, pairs); !status.ok()) {
    return absl::DataLossError(base::StrCat("series record: ", base::Message(status)));
  }
  for (const New& n : fresh) {
    table.AddAt(n.slot, SeriesTable::GenerationOf(decoder.id(n.i)), decoder.hash(n.i));
  }
  totals.series_created_total += fresh.size();
  return absl::OkStatus();
}

absl::Status Head::Impl::ApplyFloats(std::string_view payload, LogPosition at) {
  RETURN_IF_ERROR(floats_decoder.Begin(payload));
  wal::FloatGroup group;
  while (floats_decoder.Next(&group)) {
    const size_t n = group.size();
    const uint32_t end = table.slot_end();
    for (size_t i = 0; i < n; ++i) {
      if (i + 24 < n) {
        const uint32_t ahead = SeriesTable::SlotOf(group.series[i + 24]);
        if (ahead < end) table.PrefetchSeries(ahead);
      }
      if (i + 8 < n) {
        const uint32_t ahead = SeriesTable::SlotOf(group.series[i + 8]);
        if (ahead < end && table.at(ahead).buffer != Slab::kNone) {
          __builtin_prefetch(values.At(table.at(ahead).buffer) + std::popcount(table.at(ahead).mask), 1);
        }
      }
      Series* s = Replayable(group.series[i], at);
      if (s == nullptr) continue;
      const uint32_t slot = SeriesTable::SlotOf(group.series[i]);
      const int64_t t = group.t(i);
      if (t == kNoTime) continue;
      if (t <= s->last_t && FindAt(slot, *s, t).has_value()) continue;
      s->arrival_s = std::max(s->arrival_s, ArrivalOf(t));
      CommitFloat(slot, *s, t, std::bit_cast<uint64_t>(group.values[i]),
                  group.start_times_ms.empty() ? 0 : group.start_times_ms[i]);
    }
  }
  return floats_decoder.status();
}

absl::Status Head::Impl::ApplyHistograms(std::string_view payload, LogPosition at) {
  wal::TenantRef tenant = 0;
  std::vector<wal::HistogramEntry> entries;
  RETURN_IF_ERROR(wal::DecodeHistograms(payload, &tenant, &entries));
  for (const wal::HistogramEntry& e : entries) {
    Series* s = Replayable(e.series, at);
    if (s == nullptr || e.t_ms == kNoTime) continue;
    const uint32_t slot = SeriesTable::SlotOf(e.series);
    ASSIGN_OR_RETURN(model::Histogram histogram, codec::DecodeHistogram(e.encoded));
    if (e.t_ms <= s->last_t && FindAt(slot, *s, e.t_ms).has_value()) continue;
    s->arrival_s = std::max(s->arrival_s, ArrivalOf(e.t_ms));
    CommitHistogram(slot, *s, e.t_ms, std::make_shared<const model::Histogram>(std::move(histogram)), e.start_ms);
  }
  return absl::OkStatus();
}

absl::Status Head::Impl::ApplyForget(std::string_view payload, LogPosition at) {
  wal::TenantRef tenant = 0;
  std::vector<uint64_t> ids;
  RETURN_IF_ERROR(wal::DecodeForget(payload, &tenant, &ids));
  std::vector<uint32_t> slots;
  for (const uint64_t id : ids) {
    if (Replayable(id, at) != nullptr) slots.push_back(SeriesTable::SlotOf(id));
  }
  RemoveSeries(slots);
  return absl::OkStatus();
}

}  // namespace varve::head
