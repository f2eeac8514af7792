#include "storage/block/file.h"

#include <algorithm>
#include <cstring>

#include "storage/base/check.h"
#include "storage/base/crc32c.h"
#include "storage/base/strings.h"
#include "storage/block/ordinals.h"
#include "storage/codec/columns.h"

namespace varve::block {

using base::StrCat;

absl::Status File::Corrupt(uint64_t offset, std::string_view what) const {
  return absl::DataLossError(StrCat(path_, " at ", offset, ": ", what));
}

absl::StatusOr<std::shared_ptr<const File>> File::Open(std::unique_ptr<fs::MappedFile> mapped, std::string path) {
  auto file = std::make_shared<File>();
  file->mapped_ = std::move(mapped);
  file->path_ = std::move(path);
  RETURN_IF_ERROR(file->ParseFooter());
  RETURN_IF_ERROR(file->ParseNames());
  return std::shared_ptr<const File>(std::move(file));
}

absl::Status File::ParseFooter() {
  const std::string_view all = bytes();
  if (all.size() < kHeaderBytes + kTailBytes) return Corrupt(0, StrCat("only ", all.size(), " bytes"));
  base::ByteReader header(all);
  if (header.Take(kHeaderMagic.size()) != kHeaderMagic) return Corrupt(0, "not a block file");
  if (const uint32_t version = header.Fixed<uint32_t>(); version != kVersion) {
    return Corrupt(kHeaderMagic.size(), StrCat("version ", version, ", want ", kVersion));
  }
  const uint64_t tail_at = all.size() - kTailBytes;
  base::ByteReader tail(all.substr(tail_at));
  const uint64_t footer_size = tail.Fixed<uint32_t>();
  const uint32_t footer_crc = tail.Fixed<uint32_t>();
  if (tail.Take(kTailMagic.size()) != kTailMagic) return Corrupt(tail_at, "the end of the file is missing");
  if (footer_size > tail_at - kHeaderBytes) return Corrupt(tail_at, "bad footer size");
  const uint64_t footer_at = tail_at - footer_size;
  const std::string_view footer = all.substr(footer_at, footer_size);
  if (base::Crc32c(footer) != footer_crc) return Corrupt(footer_at, "footer fails its checksum");
  base::ByteReader in(footer);
  meta_.tenant = in.Bytes();
  const uint64_t shard = in.Varint();
  meta_.shard = static_cast<uint32_t>(shard);
  meta_.range.after_ms = in.Signed();
  meta_.range.until_ms = in.Signed();
  meta_.series = in.Varint();
  meta_.chunks = in.Varint();
  meta_.samples = in.Varint();
  meta_.min_time_ms = in.Signed();
  meta_.max_time_ms = in.Signed();
  meta_.file_bytes = all.size();
  if (!in.ok() || shard > UINT32_MAX || meta_.series >= UINT32_MAX || in.Varint() != kSectionCount) {
    return Corrupt(footer_at, "bad footer");
  }
  data_end_ = footer_at;
  uint64_t end = kHeaderBytes;  // sections follow the data and each other without a gap
  for (uint8_t kind = 1; kind <= kSectionCount; ++kind) {
    const uint8_t got = in.U8();
    Bounds& at = sections_[kind];
    at.offset = in.Varint();
    at.size = in.Varint();
    const uint32_t crc = in.Fixed<uint32_t>();
    if (!in.ok() || got != kind || at.offset < end || (kind > 1 && at.offset != end) || at.offset > footer_at ||
        at.size > footer_at - at.offset) {
      return Corrupt(footer_at, StrCat("bad bounds of section ", kind));
    }
    end = at.offset + at.size;
    if (kind == 1) data_end_ = at.offset;
    if (base::Crc32c(all.substr(at.offset, at.size)) != crc) {
      return Corrupt(at.offset, StrCat("section ", kind, " fails its checksum"));
    }
  }
  if (!in.AtEnd() || end != footer_at) return Corrupt(footer_at, "bad footer");
  const uint64_t columns = section(Section::kColumns).size();
  if (columns % kColumnEntryBytes != 0 || columns / kColumnEntryBytes > UINT32_MAX ||
      section(Section::kHashes).size() != meta_.series * kHashBytes ||
      section(Section::kSeriesGroups).size() !=
          (meta_.series + kSeriesPerGroup - 1) / kSeriesPerGroup * sizeof(uint32_t)) {
    return Corrupt(footer_at, "section sizes contradict the counts");
  }
  column_count_ = static_cast<uint32_t>(columns / kColumnEntryBytes);
  return absl::OkStatus();
}

absl::Status File::ParseNames() {
  base::ByteReader in(section(Section::kNames));
  const uint64_t count = in.Varint();
  uint64_t pairs = 0, groups = 0;
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    Name name;
    name.name = in.Bytes();
    const uint64_t of_name = in.Varint();
    if (!in.ok() || name.name.empty() || of_name == 0 || of_name >= UINT32_MAX - pairs ||
        (i > 0 && names_.back().name >= name.name)) {
      return Corrupt(section_offset(Section::kNames), "bad label name");
    }
    name.first_pair = static_cast<uint32_t>(pairs);
    name.pairs = static_cast<uint32_t>(of_name);
    name.first_group = static_cast<uint32_t>(groups);
    pairs += of_name;
    groups += (of_name + kPairsPerGroup - 1) / kPairsPerGroup;
    names_.push_back(std::move(name));
  }
  if (!in.ok() || !in.AtEnd() || section(Section::kPairGroups).size() != groups * sizeof(uint32_t)) {
    return Corrupt(section_offset(Section::kNames), "label names contradict the label values");
  }
  pair_count_ = static_cast<uint32_t>(pairs);
  return absl::OkStatus();
}

size_t File::name_of(uint32_t pair) const {
  const auto it = std::upper_bound(names_.begin(), names_.end(), pair,
                                   [](uint32_t p, const Name& name) { return p < name.first_pair; });
  VARVE_CHECK(it != names_.begin() && pair < pair_count_);
  return static_cast<size_t>(it - names_.begin()) - 1;
}

absl::StatusOr<File::Column> File::column(uint32_t i) const {
  if (i >= column_count_) return Corrupt(section_offset(Section::kSeries), StrCat("no time column ", i));
  base::ByteReader in(section(Section::kColumns).substr(size_t{i} * kColumnEntryBytes, kColumnEntryBytes));
  Column out;
  out.offset = in.Fixed<uint64_t>();
  out.size = in.Fixed<uint32_t>();
  out.count = in.Fixed<uint32_t>();
  out.first = in.Fixed<int64_t>();
  out.last = in.Fixed<int64_t>();
  if (out.offset < kHeaderBytes || out.offset > data_end_ || uint64_t{out.size} + kCrcBytes > data_end_ - out.offset ||
      out.count == 0 || out.count > codec::kColumnMax || out.first > out.last) {
    return Corrupt(section_offset(Section::kColumns), StrCat("bad entry of time column ", i));
  }
  return out;
}

absl::Status File::ReadColumn(uint32_t i, std::vector<int64_t>& times) const {
  ASSIGN_OR_RETURN(const Column at, column(i));
  const std::string_view payload = bytes().substr(at.offset, at.size);
  if (base::Crc32c(payload) != base::ByteReader(bytes().substr(at.offset + at.size)).Fixed<uint32_t>()) {
    return Corrupt(at.offset, "time column fails its checksum");
  }
  times.clear();
  if (const absl::Status status = codec::DecodeTimes(payload, times); !status.ok()) {
    return Corrupt(at.offset, base::Message(status));
  }
  if (times.size() != at.count || times.front() != at.first || times.back() != at.last) {
    return Corrupt(at.offset, "time column is not the one in the index");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string_view> File::ReadChunk(const Chunk& chunk) const {
  if (chunk.offset < kHeaderBytes || chunk.offset > data_end_ ||
      uint64_t{chunk.size} + kCrcBytes > data_end_ - chunk.offset) {
    return Corrupt(chunk.offset, "chunk out of bounds");
  }
  const std::string_view payload = bytes().substr(chunk.offset, chunk.size);
  if (base::Crc32c(payload) != base::ByteReader(bytes().substr(chunk.offset + chunk.size)).Fixed<uint32_t>()) {
    return Corrupt(chunk.offset, "chunk fails its checksum");
  }
  return payload;
}

model::SeriesHash File::hash(uint32_t series) const {
  model::SeriesHash out;
  const char* at = section(Section::kHashes).data() + size_t{series} * kHashBytes;
  std::memcpy(&out.low, at, 8);
  std::memcpy(&out.high, at + 8, 8);
  return out;
}

absl::StatusOr<std::string_view> File::PairGroup(uint32_t group) const {
  const std::string_view groups = section(Section::kPairGroups);
  VARVE_CHECK((size_t{group} + 1) * sizeof(uint32_t) <= groups.size());
  uint32_t offset;
  std::memcpy(&offset, groups.data() + size_t{group} * sizeof offset, sizeof offset);
  const std::string_view pairs = section(Section::kPairs);
  if (offset >= pairs.size()) return Corrupt(section_offset(Section::kPairGroups), "bad group of label values");
  return pairs.substr(offset);
}

absl::StatusOr<File::Pair> File::ReadPair(size_t name, uint32_t pair, std::string& value) const {
  Pair out{};
  const uint32_t i = pair - names_[name].first_pair;
  RETURN_IF_ERROR(ForEachPair(name, i, i + 1, [&](uint32_t, std::string_view v, const Pair& p) {
    value.assign(v);
    out = p;
    return absl::OkStatus();
  }));
  return out;
}

absl::Status File::ReadPostings(const Pair& pair, std::vector<uint32_t>& series) const {
  const std::string_view encoded = section(Section::kPostings).substr(pair.postings_offset, pair.postings_size);
  if (DecodeOrdinals(encoded, pair.series, series_count(), series)) return absl::OkStatus();
  return Corrupt(section_offset(Section::kPostings) + pair.postings_offset, "bad postings");
}

absl::StatusOr<uint32_t> File::GroupFor(uint32_t name, std::string_view value) const {
  const Name& n = names_[name];
  uint32_t low = 0, high = (n.pairs + kPairsPerGroup - 1) / kPairsPerGroup;  // first values of [0, low) are not above
  while (low + 1 < high) {
    const uint32_t middle = low + (high - low) / 2;
    ASSIGN_OR_RETURN(const std::string_view bytes, PairGroup(n.first_group + middle));
    base::ByteReader in(bytes);
    in.Varint(), in.Varint();
    const std::string_view first = in.Bytes();
    if (!in.ok()) return Corrupt(section_offset(Section::kPairs), "bad label value");
    if (first <= value)
      low = middle;
    else
      high = middle;
  }
  return low;
}

absl::Status File::SeriesCursor::Seek(uint32_t series) {
  VARVE_CHECK(series < file_.series_count() && (!begun_ || series + 1 >= next_));
  if (begun_ && series + 1 == next_) return absl::OkStatus();
  const uint32_t group = series / kSeriesPerGroup;
  if (!begun_ || next_ / kSeriesPerGroup < group || next_ % kSeriesPerGroup == 0) {
    const std::string_view groups = file_.section(Section::kSeriesGroups);
    uint32_t offset;
    std::memcpy(&offset, groups.data() + size_t{group} * sizeof offset, sizeof offset);
    const std::string_view records = file_.section(Section::kSeries);
    if (offset >= records.size())
      return file_.Corrupt(file_.section_offset(Section::kSeriesGroups), "bad series group");
    in_ = base::ByteReader(records.substr(offset));
    offset_ = in_.Varint();
    column_ = in_.Varint();
    pairs_.clear();
    next_ = group * kSeriesPerGroup;
    begun_ = true;
  }
  while (next_ <= series) RETURN_IF_ERROR(Next());
  return absl::OkStatus();
}

absl::Status File::SeriesCursor::Next() {
  const auto corrupt = [&] {
    begun_ = false;
    return file_.Corrupt(file_.section_offset(Section::kSeries), base::StrCat("bad record of series ", next_));
  };
  const uint64_t shared = in_.Varint();
  const uint64_t more = in_.Varint();
  if (!in_.ok() || shared > pairs_.size() || more > in_.left()) return corrupt();
  pairs_.resize(shared);
  uint64_t last = shared == 0 ? 0 : pairs_.back();
  for (uint64_t i = 0; i < more; ++i) {
    const uint64_t distance = in_.Varint();
    if (!in_.ok() || distance >= file_.pair_count_ - last || (distance == 0 && !pairs_.empty())) return corrupt();
    last += distance;
    pairs_.push_back(static_cast<uint32_t>(last));
  }
  const uint64_t chunks = in_.Varint();
  if (!in_.ok() || chunks > in_.left()) return corrupt();
  chunks_.clear();
  for (uint64_t i = 0; i < chunks; ++i) {
    column_ += static_cast<uint64_t>(in_.Signed());
    offset_ += static_cast<uint64_t>(in_.Signed());
    const uint64_t size = in_.Varint();
    if (!in_.ok() || column_ >= file_.column_count_ || offset_ > file_.data_end_ || size > file_.data_end_) {
      return corrupt();
    }
    chunks_.push_back({static_cast<uint32_t>(column_), static_cast<uint32_t>(size), offset_});
    offset_ += size + kCrcBytes;
  }
  ++next_;
  return absl::OkStatus();
}

index::Bitmap File::All() const {
  index::Bitmap out;
  if (series_count() > 0) out.addRange(0, series_count());
  return out;
}

std::optional<uint32_t> File::FindName(std::string_view name) const {
  const auto it = std::lower_bound(names_.begin(), names_.end(), name,
                                   [](const Name& a, std::string_view b) { return a.name < b; });
  if (it == names_.end() || it->name != name) return std::nullopt;
  return static_cast<uint32_t>(it - names_.begin());
}

absl::StatusOr<std::optional<uint32_t>> File::FindValue(uint32_t name, std::string_view value) const {
  ASSIGN_OR_RETURN(const uint32_t group, GroupFor(name, value));
  const uint32_t begin = group * kPairsPerGroup;
  std::optional<uint32_t> out;
  RETURN_IF_ERROR(ForEachPair(name, begin, std::min(names_[name].pairs, begin + kPairsPerGroup),
                              [&](uint32_t pair, std::string_view v, const Pair&) {
                                if (v == value) out = pair - names_[name].first_pair;
                                return absl::OkStatus();
                              }));
  return out;
}

absl::Status File::ScanValues(uint32_t name, std::string_view prefix,
                              const std::function<absl::StatusOr<bool>(std::string_view)>& accept,
                              std::vector<uint32_t>& out) const {
  uint32_t begin = 0;
  if (!prefix.empty()) {
    ASSIGN_OR_RETURN(const uint32_t group, GroupFor(name, prefix));
    begin = group * kPairsPerGroup;
  }
  const absl::Status status =
      ForEachPair(name, begin, names_[name].pairs, [&](uint32_t pair, std::string_view value, const Pair&) {
        if (!value.starts_with(prefix)) {
          return value < prefix ? absl::OkStatus() : absl::OutOfRangeError("beyond the prefix");
        }
        const absl::StatusOr<bool> accepted = accept(value);
        if (!accepted.ok()) return accepted.status();
        if (*accepted) out.push_back(pair - names_[name].first_pair);
        return absl::OkStatus();
      });
  return status.code() == absl::StatusCode::kOutOfRange ? absl::OkStatus() : status;
}

uint64_t File::Count(uint32_t name, uint32_t value) const {
  std::string scratch;
  const absl::StatusOr<Pair> pair = ReadPair(name, names_[name].first_pair + value, scratch);
  return pair.ok() ? pair->series : 1;  // whoever reads the postings gets the error
}

absl::Status File::AddPostings(uint32_t name, uint32_t value, index::Union& out) const {
  std::string scratch;
  ASSIGN_OR_RETURN(const Pair pair, ReadPair(name, names_[name].first_pair + value, scratch));
  std::vector<uint32_t> series;
  RETURN_IF_ERROR(ReadPostings(pair, series));
  out.Add(series);
  return absl::OkStatus();
}

absl::StatusOr<std::string_view> File::ValueOf(uint32_t series, uint32_t name, std::string& scratch) const {
  SeriesCursor cursor(*this);
  RETURN_IF_ERROR(cursor.Seek(series));
  const Name& n = names_[name];
  const std::vector<uint32_t>& pairs = cursor.pairs();
  const auto it = std::lower_bound(pairs.begin(), pairs.end(), n.first_pair);
  if (it == pairs.end() || *it - n.first_pair >= n.pairs) return std::string_view();
  RETURN_IF_ERROR(ReadPair(name, *it, scratch).status());
  return std::string_view(scratch);
}

}  // namespace varve::block
