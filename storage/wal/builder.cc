// The writing half of records.h.
#include <algorithm>
#include <cstring>

#include "storage/base/check.h"
#include "storage/base/strings.h"
#include "storage/wal/records.h"

namespace varve::wal {
namespace {

// Groups shorter than this give each sample its own time: a group's head costs about as much as so many time deltas.
constexpr size_t kSharedRunMin = 8;

char* PutVarintAt(char* p, uint64_t v) {
  while (v >= 0x80) {
    *p++ = static_cast<char>(v | 0x80);
    v >>= 7;
  }
  *p++ = static_cast<char>(v);
  return p;
}

uint64_t Delta(uint64_t now, uint64_t before) { return base::ZigZag(static_cast<int64_t>(now - before)); }
uint64_t Delta(int64_t now, int64_t before) {
  return base::ZigZag(static_cast<int64_t>(static_cast<uint64_t>(now) - static_cast<uint64_t>(before)));
}

// Grows without writing what will be overwritten anyway, then is cut to what was used.
class Room {
 public:
  Room(std::string& out, size_t bytes_max) : out_(out), begin_(out.size()) {
    if (out.capacity() < begin_ + bytes_max) out.reserve(std::max(2 * out.capacity(), begin_ + bytes_max));
    out.resize(begin_ + bytes_max);
  }
  char* data() { return out_.data() + begin_; }
  void Used(const char* end) { out_.resize(static_cast<size_t>(end - out_.data())); }

 private:
  std::string& out_;
  const size_t begin_;
};

}  // namespace

// The label pairs of the series record that is open. Looked up by a pair's canonical bytes, which name and value share
// with every other series that has the pair.
class RecordBuilder::PairTable {
 public:
  void Clear() {
    if (ids_.empty()) return;  // most requests have no new series, and should not pay for clearing the slots
    names_.clear();
    pairs_.clear();
    last_.clear();
    bytes_.clear();
    std::fill(slots_.begin(), slots_.end(), 0);
    ids_.clear();
    counts_.clear();
    refs_.clear();
    hashes_.clear();
    name_bytes_.clear();
    pair_bytes_.clear();
  }

  void Add(uint64_t id_delta, model::SeriesHash hash, model::LabelsView labels) {
    base::PutVarint(ids_, id_delta);
    size_t count = 0;
    for (const model::LabelRef label : labels) {
      // Most labels of a series are those of the one before, at the same place: the target's, the metric's name.
      if (count == last_.size()) last_.push_back(kNoPair);
      if (last_[count] == kNoPair || !Is(pairs_[last_[count]], label)) last_[count] = PairOf(label);
      base::PutVarint(refs_, last_[count++]);
    }
    base::PutVarint(counts_, count);
    base::PutFixed(hashes_, hash.low);
    base::PutFixed(hashes_, hash.high);
  }

  void AppendTo(std::string& out, uint64_t series) const {
    base::PutVarint(out, names_.size());
    out += name_bytes_;
    base::PutVarint(out, pairs_.size());
    out += pair_bytes_;
    base::PutVarint(out, series);
    out += ids_;
    out += counts_;
    out += refs_;
    out += hashes_;
  }
  size_t bytes() const {
    return name_bytes_.size() + pair_bytes_.size() + ids_.size() + counts_.size() + refs_.size() + hashes_.size();
  }

 private:
  struct Entry {
    uint64_t hash;
    size_t offset;  // into bytes_
    uint32_t name_size, value_size;
  };

  static uint64_t HashPair(model::LabelRef label) {
    return absl::Hash<std::pair<std::string_view, std::string_view>>{}({label.name, label.value});
  }

  bool Is(const Entry& entry, model::LabelRef label) const {
    return entry.name_size == label.name.size() && entry.value_size == label.value.size() &&
           std::memcmp(bytes_.data() + entry.offset, label.name.data(), label.name.size()) == 0 &&
           std::memcmp(bytes_.data() + entry.offset + entry.name_size, label.value.data(), label.value.size()) == 0;
  }

  uint32_t PairOf(model::LabelRef label) {
    if (2 * (pairs_.size() + 1) > slots_.size()) Grow();
    const uint64_t hash = HashPair(label);
    const size_t mask = slots_.size() - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      if (slots_[at] == 0) {
        const auto index = static_cast<uint32_t>(pairs_.size());
        slots_[at] = index + 1;
        pairs_.push_back(
            {hash, bytes_.size(), static_cast<uint32_t>(label.name.size()), static_cast<uint32_t>(label.value.size())});
        bytes_.append(label.name);
        bytes_.append(label.value);
        base::PutVarint(pair_bytes_, NameOf(label.name));
        base::PutBytes(pair_bytes_, label.value);
        return index;
      }
      const Entry& entry = pairs_[slots_[at] - 1];
      if (entry.hash == hash && Is(entry, label)) return slots_[at] - 1;
    }
  }

  uint32_t NameOf(std::string_view name) {
    const auto [it, added] = names_.try_emplace(name, static_cast<uint32_t>(names_.size()));
    if (added) base::PutBytes(name_bytes_, name);
    return it->second;
  }

  void Grow() {
    slots_.assign(std::max<size_t>(256, 2 * slots_.size()), 0);
    const size_t mask = slots_.size() - 1;
    for (size_t i = 0; i < pairs_.size(); ++i) {
      size_t at = pairs_[i].hash & mask;
      while (slots_[at] != 0) at = (at + 1) & mask;
      slots_[at] = static_cast<uint32_t>(i + 1);
    }
  }

  static constexpr uint32_t kNoPair = UINT32_MAX;
  std::vector<uint32_t> last_;  // by place, the pair that a series had there last
  base::StringMap<uint32_t> names_;
  std::vector<Entry> pairs_;
  std::string bytes_;
  std::vector<uint32_t> slots_;  // power of two; 0 = free, else pair + 1
  std::string name_bytes_, pair_bytes_, ids_, counts_, refs_, hashes_;
};

RecordBuilder::RecordBuilder() : pairs_(std::make_unique<PairTable>()) {}
RecordBuilder::~RecordBuilder() = default;

void RecordBuilder::Begin() {
  out_.clear();
  items_.clear();
  pairs_->Clear();
  open_items_ = 0;
  records_ = 0;
}

size_t RecordBuilder::OpenFrame() {
  const size_t start = out_.size();
  out_.resize(start + kRecordHeaderBytes);
  return start;
}

void RecordBuilder::CloseFrame(size_t start, RecordType type) {
  char* const header = out_.data() + start;
  const std::string_view payload = std::string_view(out_).substr(start + kRecordHeaderBytes);
  VARVE_CHECK(payload.size() <= kPayloadBytesMax);
  const auto size = static_cast<uint32_t>(payload.size());
  const auto type_byte = static_cast<uint8_t>(type);
  const uint32_t crc = RecordCrc(size, type_byte, payload);
  std::memcpy(header, kRecordMarker.data(), 4);
  std::memcpy(header + 4, &size, 4);
  std::memcpy(header + 8, &crc, 4);
  std::memcpy(header + 12, &type_byte, 1);
  ++records_;
}

// Readies for an item of `kind`: into the record that is open if it fits there, else into a new one.
void RecordBuilder::Switch(RecordType kind, TenantRef tenant) {
  // Damage to a record loses all that is in it; beyond this size sharing strings gains little more.
  constexpr size_t kItemsBytesMax = 256u << 10u;
  if (open_items_ > 0 && (kind != open_ || tenant != tenant_ || items_.size() > kItemsBytesMax ||
                          (kind == RecordType::kSeries && pairs_->bytes() > kItemsBytesMax))) {
    Close();
  }
  if (open_items_ == 0) {
    open_ = kind;
    tenant_ = tenant;
    last_series_ = 0;
    last_time_ = 0;
  }
}

void RecordBuilder::Close() {
  if (open_items_ == 0) return;
  const size_t start = OpenFrame();
  base::PutVarint(out_, tenant_);
  if (open_ == RecordType::kSeries) {
    pairs_->AppendTo(out_, open_items_);
    pairs_->Clear();
  } else {
    base::PutVarint(out_, open_items_);
    out_ += items_;
  }
  CloseFrame(start, open_);
  items_.clear();
  open_items_ = 0;
}

void RecordBuilder::AddTenant(TenantRef ref, std::string_view name) {
  Close();
  const size_t start = OpenFrame();
  base::PutVarint(out_, ref);
  base::PutBytes(out_, name);
  CloseFrame(start, RecordType::kTenant);
}

void RecordBuilder::AddSeries(TenantRef tenant, uint64_t series, model::SeriesHash hash, model::LabelsView labels) {
  Switch(RecordType::kSeries, tenant);
  pairs_->Add(Delta(series, last_series_), hash, labels);
  last_series_ = series;
  ++open_items_;
}

void RecordBuilder::AddFloats(TenantRef tenant, std::span<const uint64_t> series, std::span<const int64_t> times_ms,
                              std::span<const double> values, std::span<const int64_t> start_times_ms) {
  VARVE_CHECK(times_ms.size() == series.size() && values.size() == series.size());
  VARVE_CHECK(start_times_ms.empty() || start_times_ms.size() == series.size());
  if (series.empty()) return;
  Close();
  for (size_t begin = 0; begin < series.size(); begin += kFloatsPerRecord) {
    const size_t end = std::min(series.size(), begin + kFloatsPerRecord);
    const size_t start = OpenFrame();
    base::PutVarint(out_, tenant);
    uint64_t last_series = 0;
    int64_t last_time = 0;
    for (size_t at = begin; at < end;) {
      // A run of equal times, or everything up to the next run that is long enough.
      size_t run = at + 1;
      while (run < end && times_ms[run] == times_ms[at]) ++run;
      const bool shared = run - at >= kSharedRunMin || run == end;
      if (!shared) {
        size_t equal = run;  // where the current run of equal times begins
        for (++run; run < end && run - equal < kSharedRunMin; ++run) {
          if (times_ms[run] != times_ms[equal]) equal = run;
        }
        if (run - equal >= kSharedRunMin) run = equal;
        run = std::min(run, end);
      }
      const size_t n = run - at;
      const bool starts = !start_times_ms.empty() && std::any_of(start_times_ms.begin() + static_cast<ptrdiff_t>(at),
                                                                 start_times_ms.begin() + static_cast<ptrdiff_t>(run),
                                                                 [](int64_t t) { return t != 0; });
      Room room(out_, 32 + n * (10 + 8 + (shared ? 0 : 10) + (starts ? 10 : 0)));
      char* p = room.data();
      *p++ = static_cast<char>((shared ? kGroupSharesTime : 0) | (starts ? kGroupHasStartTimes : 0));
      p = PutVarintAt(p, n);
      if (shared) {
        p = PutVarintAt(p, Delta(times_ms[at], last_time));
        last_time = times_ms[at];
      }
      for (size_t i = at; i < run; ++i) {
        const uint64_t delta = Delta(series[i], last_series);
        last_series = series[i];
        if (delta < 0x80) [[likely]] {
          *p++ = static_cast<char>(delta);
        } else {
          p = PutVarintAt(p, delta);
        }
      }
      for (size_t i = at; !shared && i < run; ++i) {
        p = PutVarintAt(p, Delta(times_ms[i], last_time));
        last_time = times_ms[i];
      }
      for (size_t i = at; starts && i < run; ++i) {
        // 0 is "unknown"; any other start is one more than its distance before the sample, so that 0 stays free. The
        // one distance that has no successor cannot be told from it and counts as unknown.
        const uint64_t before = Delta(times_ms[i], start_times_ms[i]);
        p = PutVarintAt(p, start_times_ms[i] == 0 ? 0 : before + 1);
      }
      std::memcpy(p, values.data() + at, n * sizeof(double));
      room.Used(p + n * sizeof(double));
      at = run;
    }
    CloseFrame(start, RecordType::kFloats);
  }
}

void RecordBuilder::AddHistogram(TenantRef tenant, uint64_t series, int64_t t_ms, int64_t start_ms,
                                 std::string_view encoded) {
  Switch(RecordType::kHistograms, tenant);
  base::PutVarint(items_, Delta(series, last_series_));
  base::PutVarint(items_, Delta(t_ms, last_time_));
  base::PutSigned(items_, start_ms);
  base::PutBytes(items_, encoded);
  last_series_ = series;
  last_time_ = t_ms;
  ++open_items_;
}

void RecordBuilder::AddExemplar(TenantRef tenant, uint64_t series, const model::Exemplar& exemplar) {
  Switch(RecordType::kExemplars, tenant);
  base::PutVarint(items_, Delta(series, last_series_));
  base::PutVarint(items_, Delta(exemplar.t_ms, last_time_));
  base::PutFixed(items_, exemplar.value);
  base::PutBytes(items_, exemplar.labels.bytes());
  last_series_ = series;
  last_time_ = exemplar.t_ms;
  ++open_items_;
}

void RecordBuilder::AddMetadata(TenantRef tenant, const model::Metadata& metadata) {
  Switch(RecordType::kMetadata, tenant);
  base::PutU8(items_, static_cast<uint8_t>(metadata.type));
  base::PutBytes(items_, metadata.metric);
  base::PutBytes(items_, metadata.help);
  base::PutBytes(items_, metadata.unit);
  ++open_items_;
}

void RecordBuilder::AddForget(TenantRef tenant, uint64_t series) {
  Switch(RecordType::kForget, tenant);
  base::PutVarint(items_, Delta(series, last_series_));
  last_series_ = series;
  ++open_items_;
}

std::string_view RecordBuilder::Finish() {
  Close();
  return out_;
}

}  // namespace varve::wal
