// The reading half of records.h. A record's checksum held, so what does not decode here is our own mistake or
// somebody's forgery; either way it is DataLoss and never more than that.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "storage/base/strings.h"
#include "storage/wal/records.h"

namespace varve::wal {
namespace {

absl::Status Malformed(RecordType type, std::string_view what) {
  return absl::DataLossError(base::StrCat(ToString(type), " record: ", what));
}

TenantRef ReadTenant(base::ByteReader& in) {
  const uint64_t ref = in.Varint();
  if (ref > UINT32_MAX) in.Fail();
  return static_cast<TenantRef>(ref);
}
uint64_t ReadDelta(base::ByteReader& in, uint64_t before) { return before + static_cast<uint64_t>(in.Signed()); }
int64_t ReadDelta(base::ByteReader& in, int64_t before) {
  return static_cast<int64_t>(static_cast<uint64_t>(before) + static_cast<uint64_t>(in.Signed()));
}

// The count of items of at least `bytes_min` each: checked against what is left, so that a forged one reserves no
// memory.
size_t ReadCount(base::ByteReader& in, size_t bytes_min) {
  const uint64_t count = in.Varint();
  if (count > in.left() / bytes_min) {
    in.Fail();
    return 0;
  }
  return count;
}

bool IsCanonicalLabels(std::string_view bytes) {
  if (model::IsCanonical(bytes)) return true;  // the quick test, which does not know very long labels
  const absl::StatusOr<model::Labels> labels = model::Labels::FromWire(bytes);
  return labels.ok() && labels->bytes() == bytes;
}

// Reads `count` items after a record's tenant and count.
template <class Item, class ReadItem>
absl::Status DecodeItems(RecordType type, size_t bytes_min, std::string_view payload, TenantRef* tenant,
                         std::vector<Item>* out, ReadItem read) {
  base::ByteReader in(payload);
  out->clear();
  *tenant = ReadTenant(in);
  const size_t count = ReadCount(in, bytes_min);
  out->reserve(count);
  for (size_t i = 0; i < count && in.ok(); ++i) out->push_back(read(in));
  if (!in.ok() || !in.AtEnd()) {
    out->clear();
    return Malformed(type, in.ok() ? "bytes left over" : "ends early or has a value out of range");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TenantRecord> DecodeTenant(std::string_view payload) {
  base::ByteReader in(payload);
  TenantRecord record;
  record.ref = ReadTenant(in);
  record.name = in.Bytes();
  if (!in.ok() || !in.AtEnd()) return Malformed(RecordType::kTenant, "does not decode");
  return record;
}

absl::Status SeriesDecoder::Decode(std::string_view payload) {
  const auto malformed = [this](std::string_view what) {
    pairs_.clear();
    ids_.clear();
    return Malformed(RecordType::kSeries, what);
  };
  base::ByteReader in(payload);
  names_.clear();
  pairs_.clear();
  pair_rank_.clear();
  tenant_ = ReadTenant(in);

  const size_t names = ReadCount(in, 2);
  for (size_t i = 0; i < names; ++i) {
    names_.push_back(in.Bytes());
    if (names_.back().empty()) return malformed("empty label name");
  }
  // Names are in the order of their first use; ranks let the order of a series' labels be checked without their texts.
  std::vector<uint32_t>& order = refs_;
  order.resize(names);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) { return names_[a] < names_[b]; });
  name_rank_.resize(names);
  for (size_t i = 0; i < names; ++i) {
    if (i > 0 && names_[order[i]] == names_[order[i - 1]]) return malformed("label name listed twice");
    name_rank_[order[i]] = static_cast<uint32_t>(i);
  }

  const size_t pairs = ReadCount(in, 3);
  for (size_t i = 0; i < pairs; ++i) {
    const uint64_t name = in.Varint();
    const std::string_view value = in.Bytes();
    if (!in.ok()) break;
    if (name >= names) return malformed("label pair without a name");
    if (value.empty()) return malformed("empty label value");
    pairs_.push_back({names_[name], value});
    pair_rank_.push_back(name_rank_[name]);
  }

  const size_t series = ReadCount(in, 1 + 1 + 16);
  if (!in.ok()) return malformed("ends early");
  ids_.resize(series);
  uint64_t id = 0;
  for (uint64_t& out : ids_) out = id = ReadDelta(in, id);
  ref_begin_.resize(series + 1);
  uint64_t refs = 0;
  for (size_t i = 0; i < series; ++i) {
    ref_begin_[i] = static_cast<uint32_t>(refs);
    refs += std::min<uint64_t>(in.Varint(), payload.size() + 1);  // each takes a byte at least, so more cannot be
    if (refs > in.left()) return malformed("more labels than bytes");
  }
  ref_begin_[series] = static_cast<uint32_t>(refs);
  refs_.resize(refs);
  for (size_t i = 0; i < series; ++i) {
    int64_t last_rank = -1;
    for (uint32_t at = ref_begin_[i]; at < ref_begin_[i + 1]; ++at) {
      const uint64_t ref = in.Varint();
      if (ref >= pairs_.size()) return malformed("unknown label pair");
      const int64_t rank = pair_rank_[ref];
      if (rank <= last_rank) return malformed("labels out of order");
      last_rank = rank;
      refs_[at] = static_cast<uint32_t>(ref);
    }
  }
  hashes_.resize(series);
  for (model::SeriesHash& hash : hashes_) {
    hash.low = in.Fixed<uint64_t>();
    hash.high = in.Fixed<uint64_t>();
  }
  if (!in.ok() || !in.AtEnd()) return malformed(in.ok() ? "bytes left over" : "ends early");
  return absl::OkStatus();
}

void SeriesDecoder::AppendCanonical(size_t i, std::string& out) const {
  const auto varint_bytes = [](uint64_t v) {
    size_t n = 1;
    for (; v >= 0x80; v >>= 7) ++n;
    return n;
  };
  for (const uint32_t ref : refs(i)) {
    const auto [name, value] = pairs_[ref];
    base::PutU8(out, 0x0A);
    base::PutVarint(out, 2 + varint_bytes(name.size()) + name.size() + varint_bytes(value.size()) + value.size());
    base::PutU8(out, 0x0A);
    base::PutBytes(out, name);
    base::PutU8(out, 0x12);
    base::PutBytes(out, value);
  }
}

absl::Status FloatsDecoder::Begin(std::string_view payload) {
  in_ = base::ByteReader(payload);
  last_series_ = 0;
  last_time_ = 0;
  tenant_ = ReadTenant(in_);
  status_ = in_.ok() ? absl::OkStatus() : Malformed(RecordType::kFloats, "no tenant");
  return status_;
}

bool FloatsDecoder::Next(FloatGroup* group) {
  if (!status_.ok() || in_.AtEnd()) return false;
  const uint8_t flags = in_.U8();
  const bool shared = (flags & kGroupSharesTime) != 0;
  const bool starts = (flags & kGroupHasStartTimes) != 0;
  const size_t n = ReadCount(in_, 1 + 8 + (shared ? 0 : 1) + (starts ? 1 : 0));
  if (flags > kGroupFlagsKnown || n == 0) {
    status_ = Malformed(RecordType::kFloats, flags > kGroupFlagsKnown ? "unknown flags" : "bad number of samples");
    return false;
  }
  if (shared) last_time_ = ReadDelta(in_, last_time_);
  group->time_ms = last_time_;

  series_.resize(n);
  uint64_t id = last_series_;
  for (size_t i = 0; i < n;) {
    // Ids that count up are the rule: eight deltas of one byte each at once.
    uint64_t word;
    if (n - i >= 8 && in_.left() >= 8 && (std::memcpy(&word, in_.position(), 8), (word & 0x8080808080808080u) == 0)) {
      in_.Take(8);
      for (int k = 0; k < 8; ++k, word >>= 8) series_[i++] = id += static_cast<uint64_t>(base::UnZigZag(word & 0x7F));
    } else {
      series_[i++] = id = ReadDelta(in_, id);
    }
  }
  last_series_ = id;

  times_.resize(shared ? 0 : n);
  for (int64_t& t : times_) t = last_time_ = ReadDelta(in_, last_time_);
  start_times_.resize(starts ? n : 0);
  for (size_t i = 0; i < start_times_.size(); ++i) {
    const uint64_t coded = in_.Varint();
    const int64_t t = shared ? group->time_ms : times_[i];
    const auto before = static_cast<uint64_t>(base::UnZigZag(coded - 1));
    start_times_[i] = coded == 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(t) - before);
  }
  const std::string_view raw = in_.Take(n * sizeof(double));
  if (!in_.ok()) {
    status_ = Malformed(RecordType::kFloats, "ends early");
    return false;
  }
  values_.resize(n);
  std::memcpy(values_.data(), raw.data(), raw.size());
  group->series = series_;
  group->values = values_;
  group->times_ms = times_;
  group->start_times_ms = start_times_;
  return true;
}

absl::Status DecodeHistograms(std::string_view payload, TenantRef* tenant, std::vector<HistogramEntry>* out) {
  uint64_t series = 0;
  int64_t time = 0;
  return DecodeItems(RecordType::kHistograms, 4, payload, tenant, out, [&](base::ByteReader& in) {
    HistogramEntry entry;
    entry.series = series = ReadDelta(in, series);
    entry.t_ms = time = ReadDelta(in, time);
    entry.start_ms = in.Signed();
    entry.encoded = in.Bytes();
    return entry;
  });
}

absl::Status DecodeExemplars(std::string_view payload, TenantRef* tenant, std::vector<ExemplarEntry>* out) {
  uint64_t series = 0;
  int64_t time = 0;
  return DecodeItems(RecordType::kExemplars, 11, payload, tenant, out, [&](base::ByteReader& in) {
    ExemplarEntry entry;
    entry.series = series = ReadDelta(in, series);
    entry.t_ms = time = ReadDelta(in, time);
    entry.value = in.Fixed<double>();
    const std::string_view labels = in.Bytes();
    if (!IsCanonicalLabels(labels)) in.Fail();
    entry.labels = model::LabelsView(labels);
    return entry;
  });
}

absl::Status DecodeMetadata(std::string_view payload, TenantRef* tenant, std::vector<MetadataEntry>* out) {
  return DecodeItems(RecordType::kMetadata, 4, payload, tenant, out, [](base::ByteReader& in) {
    MetadataEntry entry;
    const uint8_t type = in.U8();
    if (type > static_cast<uint8_t>(model::MetricType::kStateset)) in.Fail();
    entry.type = static_cast<model::MetricType>(type);
    entry.metric = in.Bytes();
    entry.help = in.Bytes();
    entry.unit = in.Bytes();
    return entry;
  });
}

absl::Status DecodeForget(std::string_view payload, TenantRef* tenant, std::vector<uint64_t>* out) {
  uint64_t series = 0;
  return DecodeItems(RecordType::kForget, 1, payload, tenant, out,
                     [&](base::ByteReader& in) { return series = ReadDelta(in, series); });
}

}  // namespace varve::wal
