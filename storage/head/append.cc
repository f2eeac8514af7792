// From a request to the log to what can be read. A step is decided as a whole against what is committed, logged with
// one write, then committed; where a decision would depend on a sample of the same step, the step ends before it.
#include <algorithm>

#include "storage/base/check.h"
#include "storage/codec/columns.h"
#include "storage/head/head_impl.h"

namespace varve::head {

namespace {

using model::Reason;

constexpr int64_t kTimeLimitMs = 100'000'000'000'000;  // about 3,168 years on either side of 1970
constexpr size_t kBlock = 128;                         // series looked up together

std::string DurationText(int64_t ms) {
  if (ms == 0) return "0s";
  std::string out;
  const auto put = [&](int64_t unit, std::string_view name) {
    if (ms >= unit) base::StrAppend(out, ms / unit, name);
    ms %= unit;
  };
  put(3'600'000, "h");
  put(60'000, "m");
  put(1'000, "s");
  put(1, "ms");
  return out;
}

bool SameHistogram(const model::Histogram& a, const model::Histogram& b) {
  if (a.hint == b.hint) return model::Identical(a, b);
  model::Histogram copy = a;
  copy.hint = b.hint;
  return model::Identical(copy, b);
}

bool SameValue(const Point& a, const Point& b) {
  if ((a.histogram == nullptr) != (b.histogram == nullptr)) return false;
  return a.histogram == nullptr ? a.bits == b.bits : SameHistogram(*a.histogram, *b.histogram);
}

HistogramPtr StaleHistogram() {
  auto stale = std::make_shared<model::Histogram>();
  stale->sum = model::StaleNan();
  return stale;
}

// Where staging stands within one series of the request.
struct Cursor {
  uint32_t slot = 0;
  Series* s = nullptr;
  Point newest;                  // staged or committed, in order
  int64_t side_max = INT64_MIN;  // of the late samples that this step has for it

  struct Refused {
    Reason reason;
    uint64_t samples;
    std::string example;
  };
  std::vector<Refused> refused;
};

class Stager {
 public:
  Stager(Head::Impl& head, const model::WriteBatch& batch, const AppendContext& context, model::WriteResult& result)
      : head_(head), batch_(batch), context_(context), result_(result) {
    future_max_ = std::min(kTimeLimitMs, context.now_ms + std::max<int64_t>(0, context.limits.future_max_ms));
  }

  absl::Status Stage(const model::WriteBatch::Series& entry, uint32_t slot);

 private:
  bool StageOne(const model::WriteBatch::Series& entry, Series& s, uint32_t slot);
  absl::Status StageSlow(const model::WriteBatch::Series& entry, uint32_t slot);
  absl::Status StageSample(Cursor& cursor, Point point);
  absl::StatusOr<uint32_t> FindOrCreate(const model::WriteBatch::Series& entry);
  std::optional<Reason> CheckTime(int64_t t) const;
  void LoadCursor(Cursor& cursor) const;
  void Put(const Cursor& cursor, Point point);
  void Refuse(Cursor& cursor, Reason reason, const Point& point, const std::string& labels = {});
  void Duplicate(const Point& point) {
    ++(point.histogram == nullptr ? head_.step.duplicate_floats : head_.step.duplicate_histograms);
  }
  void StageExemplars(const model::WriteBatch::Series& entry, uint32_t slot);
  void ReportRefused(Cursor& cursor) {
    for (const Cursor::Refused& r : cursor.refused) result_.Reject(r.reason, r.samples, r.example);
  }

  Head::Impl& head_;
  const model::WriteBatch& batch_;
  const AppendContext& context_;
  model::WriteResult& result_;
  int64_t future_max_;
};

// The way that nearly all samples take: a known series, one float, newer than its newest.
inline bool Stager::StageOne(const model::WriteBatch::Series& entry, Series& s, uint32_t slot) {
  const int64_t t = batch_.timestamps[entry.float_begin];
  if (t <= s.last_t || t > future_max_ || t < -kTimeLimitMs) return false;
  Step& step = head_.step;
  s.set(kStaged, true);
  if (s.buffer != Slab::kNone) __builtin_prefetch(head_.values.At(s.buffer) + std::popcount(s.mask), 1);
  step.ids.push_back(SeriesTable::IdOf(slot, s.generation));
  step.times.push_back(t);
  step.values.push_back(batch_.values[entry.float_begin]);
  if (!batch_.start_timestamps.empty()) {
    const int64_t start = batch_.start_timestamps[entry.float_begin];
    step.starts.resize(step.ids.size() - 1);
    step.starts.push_back(start);
    step.any_start |= start != 0;
  }
  return true;
}

absl::Status Stager::Stage(const model::WriteBatch::Series& entry, uint32_t slot) {
  if (slot != SeriesTable::kNoSlot && entry.float_count == 1 && entry.histogram_count == 0 && entry.exemplar_count == 0)
      [[likely]] {
    Series& s = head_.table.at(slot);
    if ((s.flags & (kStaged | kLastHistogram)) == 0 && StageOne(entry, s, slot)) [[likely]]
      return absl::OkStatus();
  }
  return StageSlow(entry, slot);
}

absl::Status Stager::StageSlow(const model::WriteBatch::Series& entry, uint32_t slot) {
  if (slot == SeriesTable::kNoSlot) {
    ASSIGN_OR_RETURN(slot, FindOrCreate(entry));
    if (slot == SeriesTable::kNoSlot) return absl::OkStatus();  // refused, and said so
  }
  Cursor cursor;
  cursor.slot = slot;
  cursor.s = &head_.table.at(slot);
  if (cursor.s->has(kStaged)) RETURN_IF_ERROR(head_.Flush(context_, result_));
  LoadCursor(cursor);
  for (uint32_t i = entry.float_begin; i < entry.float_begin + entry.float_count; ++i) {
    Point point;
    point.t = batch_.timestamps[i];
    point.bits = std::bit_cast<uint64_t>(batch_.values[i]);
    if (!batch_.start_timestamps.empty()) point.start = batch_.start_timestamps[i];
    RETURN_IF_ERROR(StageSample(cursor, std::move(point)));
  }
  for (uint32_t i = entry.histogram_begin; i < entry.histogram_begin + entry.histogram_count; ++i) {
    const model::HistogramSample& sample = batch_.histograms[i];
    Point point;
    point.t = sample.t_ms;
    point.start = sample.start_ms;
    point.histogram = std::make_shared<const model::Histogram>(sample.histogram);
    point.bits = std::bit_cast<uint64_t>(sample.histogram.sum);
    RETURN_IF_ERROR(StageSample(cursor, std::move(point)));
  }
  ReportRefused(cursor);
  if (entry.exemplar_count > 0) StageExemplars(entry, slot);
  return absl::OkStatus();
}

std::optional<Reason> Stager::CheckTime(int64_t t) const {
  if (t > kTimeLimitMs || t < -kTimeLimitMs) return Reason::kTimestampOutOfRange;
  if (t > future_max_) return Reason::kTooFarInFuture;
  return std::nullopt;
}

void Stager::LoadCursor(Cursor& cursor) const {
  const Series& s = *cursor.s;
  cursor.newest = Point();
  cursor.newest.t = s.last_t;
  cursor.newest.bits = s.last_bits;
  if (s.has(kLastHistogram)) cursor.newest.histogram = head_.histograms.at(cursor.slot).last;
  cursor.side_max = INT64_MIN;
}

absl::Status Stager::StageSample(Cursor& cursor, Point point) {
  // Markers for a series that ended are sent as floats, whatever the series holds.
  if (point.histogram == nullptr && point.bits == model::kStaleNanBits && cursor.newest.histogram != nullptr) {
    point.histogram = StaleHistogram();
  }
  if (const auto reason = CheckTime(point.t); reason.has_value()) {
    Refuse(cursor, *reason, point);
    return absl::OkStatus();
  }
  if (point.t > cursor.newest.t) {
    Put(cursor, point);
    cursor.newest = std::move(point);
    return absl::OkStatus();
  }
  if (point.t == cursor.newest.t) {
    if (SameValue(point, cursor.newest)) {
      Duplicate(point);
    } else {
      Refuse(cursor, Reason::kDuplicateTimestamp, point);
    }
    return absl::OkStatus();
  }
  if (point.t < cursor.newest.t - context_.limits.out_of_order_window_ms) {
    Refuse(cursor, Reason::kTooOld, point);
    return absl::OkStatus();
  }
  // Between samples that are only staged, or not after a staged late one: it takes a look at what this step has made.
  if (point.t > cursor.s->last_t || point.t <= cursor.side_max) {
    RETURN_IF_ERROR(head_.Flush(context_, result_));
    LoadCursor(cursor);
  }
  if (const auto found = head_.FindAt(cursor.slot, *cursor.s, point.t); found.has_value()) {
    if (SameValue(point, *found)) {
      Duplicate(point);
    } else {
      Refuse(cursor, Reason::kDuplicateTimestamp, point);
    }
    return absl::OkStatus();
  }
  cursor.side_max = point.t;
  ++head_.step.out_of_order;
  Put(cursor, std::move(point));
  return absl::OkStatus();
}

void Stager::Put(const Cursor& cursor, Point point) {
  Step& step = head_.step;
  cursor.s->set(kStaged, true);
  const uint64_t id = SeriesTable::IdOf(cursor.slot, cursor.s->generation);
  if (point.histogram != nullptr) {
    step.histograms.push_back({id, point.t, point.start, std::move(point.histogram)});
    return;
  }
  step.ids.push_back(id);
  step.times.push_back(point.t);
  step.values.push_back(std::bit_cast<double>(point.bits));
  if (!batch_.start_timestamps.empty()) {
    step.starts.resize(step.ids.size() - 1);
    step.starts.push_back(point.start);
    step.any_start |= point.start != 0;
  }
}

void Stager::Refuse(Cursor& cursor, Reason reason, const Point& point, const std::string& labels) {
  for (Cursor::Refused& r : cursor.refused) {
    if (r.reason != reason) continue;
    ++r.samples;
    return;
  }
  std::string example;
  if (result_.rejections[static_cast<size_t>(reason)].examples.size() < model::WriteResult::kExamplesMax) {
    example = labels.empty() ? head_.index.LabelsOf(cursor.slot).ToString() : labels;
    if (point.histogram == nullptr) {
      base::StrAppend(example, ": sample ", std::bit_cast<double>(point.bits), " at ", point.t);
    } else {
      base::StrAppend(example, ": histogram at ", point.t);
    }
    switch (reason) {
      case Reason::kTooOld:
        base::StrAppend(example, " is ", DurationText(cursor.newest.t - point.t), " older than the newest at ",
                        cursor.newest.t,
                        "; limit out_of_order_window=", DurationText(context_.limits.out_of_order_window_ms));
        break;
      case Reason::kDuplicateTimestamp:
        base::StrAppend(example, " has a timestamp at which another value is stored");
        break;
      case Reason::kTooFarInFuture:
        base::StrAppend(example, " is ", DurationText(point.t - context_.now_ms), " ahead of the server's clock at ",
                        context_.now_ms, "; limit future_max=", DurationText(context_.limits.future_max_ms));
        break;
      default:
        base::StrAppend(example, " is not between ", -kTimeLimitMs, " and ", kTimeLimitMs, " ms");
    }
  }
  cursor.refused.push_back({reason, 1, std::move(example)});
}

absl::StatusOr<uint32_t> Stager::FindOrCreate(const model::WriteBatch::Series& entry) {
  const uint64_t samples = uint64_t{entry.float_count} + entry.histogram_count;
  if (const uint32_t slot = head_.table.Find(entry.hash); slot != SeriesTable::kNoSlot) {
    return slot;  // made by an earlier entry of this request
  }
  model::Labels rewritten;
  model::LabelsView labels(entry.labels);
  model::SeriesHash hash = entry.hash;
  if (!model::IsCanonical(entry.labels)) {
    absl::StatusOr<model::Labels> parsed = model::Labels::FromWire(entry.labels);
    if (!parsed.ok()) {
      const std::string_view what = base::Message(parsed.status());
      result_.Reject(what.ends_with("occurs twice") ? Reason::kDuplicateLabelName : Reason::kMalformedLabels, samples,
                     base::StrCat("series with ", entry.labels.size(), " bytes of labels: ", what));
      return SeriesTable::kNoSlot;
    }
    rewritten = *std::move(parsed);
    labels = rewritten;
    hash = model::HashLabels(labels.bytes(), head_.config.hash_seed);
    if (const uint32_t slot = head_.table.Find(hash); slot != SeriesTable::kNoSlot) return slot;
  }
  // A series comes into being with a sample that is stored, and not otherwise.
  bool any = false;
  for (uint32_t i = 0; i < entry.float_count && !any; ++i) {
    any = !CheckTime(batch_.timestamps[entry.float_begin + i]).has_value();
  }
  for (uint32_t i = 0; i < entry.histogram_count && !any; ++i) {
    any = !CheckTime(batch_.histograms[entry.histogram_begin + i].t_ms).has_value();
  }
  if (!any) {
    Cursor cursor;
    const std::string text = labels.ToString();
    for (uint32_t i = 0; i < entry.float_count; ++i) {
      Point point;
      point.t = batch_.timestamps[entry.float_begin + i];
      point.bits = std::bit_cast<uint64_t>(batch_.values[entry.float_begin + i]);
      Refuse(cursor, *CheckTime(point.t), point, text);
    }
    for (uint32_t i = 0; i < entry.histogram_count; ++i) {
      Point point;
      point.t = batch_.histograms[entry.histogram_begin + i].t_ms;
      point.histogram = StaleHistogram();
      Refuse(cursor, *CheckTime(point.t), point, text);
    }
    ReportRefused(cursor);
    return SeriesTable::kNoSlot;
  }
  if (!context_.gate.Admit(labels, head_.table.live(), samples, result_)) return SeriesTable::kNoSlot;
  const uint32_t slot = head_.table.Add(hash);
  head_.index.AddSeries(slot, labels);
  head_.builder.AddSeries(head_.config.tenant_ref, head_.table.IdAt(slot), hash, labels);
  head_.step.created.push_back(slot);
  return slot;
}

void Stager::StageExemplars(const model::WriteBatch::Series& entry, uint32_t slot) {
  if (context_.limits.exemplars_max == 0) return;
  Step& step = head_.step;
  const uint64_t id = head_.table.IdAt(slot);
  for (uint32_t i = entry.exemplar_begin; i < entry.exemplar_begin + entry.exemplar_count; ++i) {
    model::Exemplar exemplar = batch_.exemplars[i];
    if (exemplar.t_ms == 0) {
      exemplar.t_ms = entry.float_count > 0 ? batch_.timestamps[entry.float_begin + entry.float_count - 1]
                      : entry.histogram_count > 0
                          ? batch_.histograms[entry.histogram_begin + entry.histogram_count - 1].t_ms
                          : context_.now_ms;
    }
    if (const size_t size = LabelCharacters(exemplar.labels); size > kExemplarCharactersMax) {
      result_.Reject(Reason::kInvalidExemplar, 0,
                     base::StrCat(head_.index.LabelsOf(slot).ToString(), ": exemplar labels of ", size,
                                  " characters; at most ", kExemplarCharactersMax, " are allowed"));
      continue;
    }
    auto verdict = head_.exemplars.Judge(id, exemplar);
    for (auto it = step.exemplars.rbegin(); it != step.exemplars.rend(); ++it) {
      if (it->id != id) continue;
      const model::Exemplar& last = it->exemplar;
      verdict =
          exemplar.t_ms < last.t_ms ? ExemplarRing::Verdict::kOutOfOrder
          : exemplar.t_ms == last.t_ms && model::SameBits(exemplar.value, last.value) && exemplar.labels == last.labels
              ? ExemplarRing::Verdict::kRepeated
              : ExemplarRing::Verdict::kNew;
      break;
    }
    if (verdict == ExemplarRing::Verdict::kRepeated) {
      ++step.repeated_exemplars;
    } else if (verdict == ExemplarRing::Verdict::kOutOfOrder) {
      result_.Reject(Reason::kInvalidExemplar, 0,
                     base::StrCat(head_.index.LabelsOf(slot).ToString(), ": exemplar at ", exemplar.t_ms,
                                  " is older than the newest exemplar of its series"));
    } else {
      step.exemplars.push_back({id, std::move(exemplar)});
    }
  }
}

}  // namespace

void Step::Clear() {
  ids.clear();
  times.clear();
  starts.clear();
  values.clear();
  any_start = false;
  histograms.clear();
  exemplars.clear();
  created.clear();
  duplicate_floats = duplicate_histograms = out_of_order = repeated_exemplars = 0;
}

absl::Status Head::Impl::Append(const model::WriteBatch& batch, std::span<const uint32_t> which,
                                const AppendContext& context, model::WriteResult& result) {
  if (replaying) EndReplay();
  step.Clear();
  builder.Begin();
  Stager stager(*this, batch, context, result);
  const model::SeriesHash* hashes[kBlock];
  uint32_t slots[kBlock];
  for (size_t begin = 0; begin < which.size(); begin += kBlock) {
    const size_t n = std::min(kBlock, which.size() - begin);
    for (size_t i = 0; i < n; ++i) hashes[i] = &batch.series[which[begin + i]].hash;
    table.FindMany(hashes, n, slots);
    for (size_t i = 0; i < n; ++i) RETURN_IF_ERROR(stager.Stage(batch.series[which[begin + i]], slots[i]));
  }
  exemplars_max = context.limits.exemplars_max;
  return Flush(context, result);
}

absl::Status Head::Impl::Flush(const AppendContext& context, model::WriteResult& result) {
  // What is stored already stays stored, whatever becomes of the rest.
  result.samples_stored += step.duplicate_floats;
  result.histograms_stored += step.duplicate_histograms;
  result.exemplars_stored += step.repeated_exemplars;
  result.duplicates += step.duplicate_floats + step.duplicate_histograms;
  exemplars_max = context.limits.exemplars_max;
  if (!step.empty()) {
    if (step.any_start) step.starts.resize(step.ids.size());
    builder.AddFloats(config.tenant_ref, step.ids, step.times, step.values,
                      step.any_start ? std::span<const int64_t>(step.starts) : std::span<const int64_t>());
    for (const Step::StagedHistogram& h : step.histograms) {
      scratch.clear();
      codec::EncodeHistogram(*h.histogram, scratch);
      builder.AddHistogram(config.tenant_ref, h.id, h.t, h.start, scratch);
    }
    for (const Step::StagedExemplar& e : step.exemplars) builder.AddExemplar(config.tenant_ref, e.id, e.exemplar);
    if (absl::Status status = context.log(builder.Finish()); !status.ok()) {
      Undo();
      return status;
    }
    result.samples_stored += step.ids.size();
    result.histograms_stored += step.histograms.size();
    result.exemplars_stored += step.exemplars.size();
    result.series_created += step.created.size();
    result.out_of_order += step.out_of_order;
    Commit(context.now_ms);
  }
  step.Clear();
  builder.Begin();
  return absl::OkStatus();
}

void Head::Impl::Commit(int64_t now_ms) {
  const auto arrival = static_cast<uint32_t>(std::clamp<int64_t>(now_ms / 1000, 0, UINT32_MAX));
  const bool with_starts = step.any_start;
  for (size_t i = 0; i < step.ids.size(); ++i) {
    const uint32_t slot = SeriesTable::SlotOf(step.ids[i]);
    Series& s = table.at(slot);
    s.set(kStaged, false);
    s.arrival_s = arrival;
    CommitFloat(slot, s, step.times[i], std::bit_cast<uint64_t>(step.values[i]), with_starts ? step.starts[i] : 0);
  }
  for (Step::StagedHistogram& h : step.histograms) {
    const uint32_t slot = SeriesTable::SlotOf(h.id);
    Series& s = table.at(slot);
    s.set(kStaged, false);
    s.arrival_s = arrival;
    CommitHistogram(slot, s, h.t, std::move(h.histogram), h.start);
  }
  for (Step::StagedExemplar& e : step.exemplars) exemplars.Add(e.id, std::move(e.exemplar), exemplars_max);
  totals.series_created_total += step.created.size();
}

void Head::Impl::CommitFloat(uint32_t slot, Series& s, int64_t t, uint64_t bits, int64_t start) {
  ++totals.samples_total;
  if (t > newest_ms) newest_ms = t;
  if (t < oldest_ms) oldest_ms = t;
  if (t > s.last_t) [[likely]] {
    AppendFloat(slot, s, t, bits, start);
  } else {
    InsertSide(slot, s, {t, bits, start, nullptr});
  }
}

void Head::Impl::CommitHistogram(uint32_t slot, Series& s, int64_t t, HistogramPtr histogram, int64_t start) {
  ++totals.samples_total;
  if (t > newest_ms) newest_ms = t;
  if (t < oldest_ms) oldest_ms = t;
  if (t > s.last_t) {
    AppendHistogram(slot, s, t, std::move(histogram), start);
  } else {
    const uint64_t bits = std::bit_cast<uint64_t>(histogram->sum);
    InsertSide(slot, s, {t, bits, start, std::move(histogram)});
  }
}

void Head::Impl::Undo() {
  for (const uint64_t id : step.ids) table.at(SeriesTable::SlotOf(id)).set(kStaged, false);
  for (const Step::StagedHistogram& h : step.histograms) table.at(SeriesTable::SlotOf(h.id)).set(kStaged, false);
  // The log may have kept a part of the write that it could not take back; the slot's next series has another id.
  if (!step.created.empty()) {
    index.RemoveSeries(step.created);
    for (const uint32_t slot : step.created) table.Remove(slot);
  }
  step.Clear();
  builder.Begin();
}

}  // namespace varve::head
