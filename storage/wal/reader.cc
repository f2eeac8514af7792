#include "storage/wal/reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/base/bytes.h"
#include "storage/base/strings.h"

namespace varve::wal {
namespace {

constexpr size_t kForgetEvery = 8u << 20u;
constexpr size_t kDamagesMax = 10'000;  // of which the report keeps details and copies
constexpr uint64_t kSearchFactor = 16;

struct Header {
  uint32_t payload_bytes = 0, crc = 0;
  uint8_t type = 0;
};

// What keeps the bytes at `at` from being a record; nullptr when they are one.
const char* CheckRecord(std::string_view bytes, size_t at, Header* header) {
  const std::string_view rest = bytes.substr(at);
  if (!kRecordMarker.starts_with(rest.substr(0, kRecordMarker.size()))) return "no record begins here";
  if (rest.size() < kRecordHeaderBytes) return "record header ends early";
  base::ByteReader in(rest.substr(kRecordMarker.size(), kRecordHeaderBytes - kRecordMarker.size()));
  header->payload_bytes = in.Fixed<uint32_t>();
  header->crc = in.Fixed<uint32_t>();
  header->type = in.U8();
  if (header->payload_bytes > kPayloadBytesMax) return "record size is absurd";
  if (header->payload_bytes > rest.size() - kRecordHeaderBytes) return "record ends early";
  const std::string_view payload = rest.substr(kRecordHeaderBytes, header->payload_bytes);
  if (RecordCrc(header->payload_bytes, header->type, payload) != header->crc) return "checksum does not match";
  return nullptr;
}

}  // namespace

std::string ReadReport::DebugString() const {
  std::string out =
      base::StrCat("records=", records, " bytes=", bytes, " segments=", segments, " damages=", damages.size(), "\n");
  const auto add = [&out](std::string_view what, const Damage& d) {
    base::StrAppend(out, "  ", what, " segment=", d.segment, " offset=", d.offset, " bytes=", d.bytes,
                    " reason=", base::QuoteGo(d.reason),
                    d.quarantined_to.empty() ? "" : base::StrCat(" copy=", d.quarantined_to), "\n");
  };
  if (torn) add("torn", *torn);
  for (const Damage& damage : damages) add("damage", damage);
  return out;
}

Reader::Reader(fs::FileSystem& fs, std::string folder, Position from, std::string quarantine_folder)
    : fs_(fs), folder_(std::move(folder)), from_(from), quarantine_folder_(std::move(quarantine_folder)) {}

Reader::~Reader() = default;

absl::StatusOr<std::unique_ptr<Reader>> Reader::Open(fs::FileSystem& fs, std::string folder, Position from,
                                                     std::string quarantine_folder) {
  std::unique_ptr<Reader> reader(new Reader(fs, std::move(folder), from, std::move(quarantine_folder)));
  absl::StatusOr<std::vector<fs::FileInfo>> files = fs.List(reader->folder_);
  if (absl::IsNotFound(files.status())) return reader;
  RETURN_IF_ERROR(files.status());
  for (const fs::FileInfo& file : *files) {
    uint64_t segment = 0;
    if (file.is_folder || !ParseSegmentName(file.name, &segment) || segment < from.segment) continue;
    reader->segments_.push_back(segment);
  }
  std::sort(reader->segments_.begin(), reader->segments_.end());  // names of nine digits sort before those of eight
  return reader;
}

bool Reader::OpenNextSegment() {
  if (file_ != nullptr && forgotten_ < bytes_.size()) file_->Forget(forgotten_, bytes_.size() - forgotten_);
  file_.reset();
  bytes_ = {};
  at_ = forgotten_ = 0;
  if (next_ == segments_.size()) return false;
  const uint64_t segment = segments_[next_];
  const uint64_t expected = next_ > 0 ? segments_[next_ - 1] + 1 : from_.segment;
  if (expected > 0 && segment != expected) {
    segment_ = expected;
    ReportDamage(0, 0, base::StrCat("segments ", expected, " to ", segment - 1, " are missing"));
  }
  ++next_;
  OpenSegment(segment);
  return true;
}

void Reader::OpenSegment(uint64_t segment) {
  segment_ = segment;
  ++report_.segments;
  absl::StatusOr<std::unique_ptr<fs::MappedFile>> file = fs_.Map(base::StrCat(folder_, "/", SegmentName(segment)));
  if (!file.ok()) return ReportDamage(0, 0, std::string(base::Message(file.status())));
  file_ = *std::move(file);
  bytes_ = file_->bytes();
  search_budget_ = kSearchFactor * bytes_.size() + (1u << 20u);
  const bool last = next_ == segments_.size();

  const std::string expected = SegmentHeader(segment);
  if (bytes_.starts_with(expected)) {
    at_ = kSegmentHeaderBytes;
  } else if (expected.starts_with(bytes_)) {
    // Shorter than its header: the process died, or the disk filled up, while the segment was begun.
    if (last) {
      report_.torn = Damage{segment_, 0, bytes_.size(), "segment header ends early", ""};
    } else {
      ReportDamage(0, bytes_.size(), "segment header ends early");
    }
    at_ = bytes_.size();
  } else {
    base::ByteReader in(bytes_.substr(0, kSegmentHeaderBytes));
    const bool magic = in.Take(kSegmentMagic.size()) == kSegmentMagic;
    const auto version = in.Fixed<uint32_t>();
    if (magic && version > kSegmentVersion && version < 100) {
      // Most likely what a later version wrote. Its records may mean something else, and they are not ours to cut off.
      ReportDamage(0, bytes_.size(), base::StrCat("segment has version ", version, ", want ", kSegmentVersion));
      at_ = bytes_.size();
    } else {
      StepOverDamage("segment header is damaged");
    }
  }
  if (segment_ == from_.segment)
    at_ = std::max(at_, static_cast<size_t>(std::min<uint64_t>(from_.offset, bytes_.size())));
}

// The next record at or after `begin`, or the end of the segment.
size_t Reader::FindRecord(size_t begin) {
  for (size_t at = begin; (at = bytes_.find(kRecordMarker, at)) != std::string_view::npos; ++at) {
    Header header;
    const char* const problem = CheckRecord(bytes_, at, &header);
    if (problem == nullptr) return at;
    // Bytes made to look like many records that overlap would have each of them checked to its end, in quadratic time.
    const uint64_t cost = kRecordHeaderBytes + std::min<uint64_t>(header.payload_bytes, bytes_.size() - at);
    if (cost > search_budget_) break;
    search_budget_ -= cost;
  }
  return bytes_.size();
}

void Reader::ReportDamage(uint64_t offset, uint64_t bytes, std::string reason) {
  Damage damage{segment_, offset, bytes, std::move(reason), ""};
  if (report_.damages.size() >= kDamagesMax) return;
  if (!quarantine_folder_.empty() && bytes > 0) {
    const std::string path = base::StrCat(quarantine_folder_, "/", SegmentName(segment_), ".", offset);
    absl::Status status = fs_.CreateFolders(quarantine_folder_);
    if (status.ok()) status = fs::WriteWhole(fs_, path, bytes_.substr(offset, bytes));
    if (status.ok()) damage.quarantined_to = path;
  }
  report_.damages.push_back(std::move(damage));
}

// Where the damage that begins at `begin` ends. A damaged record's own size is believed unless it lies; searching its
// payload for records comes second, since what stands there may have been chosen by whoever sent it.
size_t Reader::EndOfDamage(size_t begin) {
  Header header;
  CheckRecord(bytes_, begin, &header);
  const std::string_view rest = bytes_.substr(begin);
  const size_t found = FindRecord(begin + 1);
  if (!rest.starts_with(kRecordMarker) || rest.size() < kRecordHeaderBytes || header.payload_bytes > kPayloadBytesMax) {
    return found;
  }
  const size_t claimed = begin + kRecordHeaderBytes + header.payload_bytes;
  if (found >= claimed && claimed <= bytes_.size()) {
    const std::string_view behind = bytes_.substr(claimed, kRecordMarker.size());
    return kRecordMarker.starts_with(behind) ? claimed : found;  // one that is damaged as well is reported by itself
  }
  // The size lies when records go on across the end that it claims. When it claims more than there is, then when they
  // go on to the very end of the segment; a torn write would have been cut somewhere in its payload.
  for (size_t at = found; at < std::min(claimed, bytes_.size()); at = FindRecord(at)) {
    for (Header next; at < bytes_.size() && CheckRecord(bytes_, at, &next) == nullptr;) {
      const size_t size = kRecordHeaderBytes + next.payload_bytes;
      if (size > search_budget_) return std::min(claimed, bytes_.size());
      search_budget_ -= size;
      at += size;
      if (claimed > bytes_.size() ? at == bytes_.size() : (at - size < claimed && at > claimed)) return found;
      if (claimed <= bytes_.size() && at >= claimed) break;
    }
  }
  return std::min(claimed, bytes_.size());
}

void Reader::StepOverDamage(std::string reason) {
  const size_t begin = at_;
  at_ = EndOfDamage(begin);
  if (at_ == bytes_.size() && next_ == segments_.size()) {
    report_.torn = Damage{segment_, begin, at_ - begin, std::move(reason), ""};
  } else {
    ReportDamage(begin, at_ - begin, std::move(reason));
  }
}

bool Reader::Next(Record* record) {
  while (true) {
    if (at_ >= bytes_.size()) {
      if (!OpenNextSegment()) return false;
      continue;
    }
    if (at_ - forgotten_ >= kForgetEvery) {
      file_->Forget(forgotten_, at_ - forgotten_);
      forgotten_ = at_;
    }
    Header header;
    if (const char* problem = CheckRecord(bytes_, at_, &header)) {
      StepOverDamage(problem);
      continue;
    }
    const size_t size = kRecordHeaderBytes + header.payload_bytes;
    record->begin = {segment_, at_};
    record->end = {segment_, at_ + size};
    record->type = static_cast<RecordType>(header.type);
    record->payload = bytes_.substr(at_ + kRecordHeaderBytes, header.payload_bytes);
    at_ += size;
    ++report_.records;
    report_.bytes += size;
    return true;
  }
}

absl::Status CutTornTail(fs::FileSystem& fs, const std::string& folder, const ReadReport& report) {
  if (!report.torn) return absl::OkStatus();
  const std::string path = base::StrCat(folder, "/", SegmentName(report.torn->segment));
  if (report.torn->offset == 0) return fs.Remove(path);  // not even a header; numbers go on from the segment before
  ASSIGN_OR_RETURN(const std::unique_ptr<fs::AppendFile> file, fs.OpenForAppend(path));
  return file->Truncate(report.torn->offset);
}

}  // namespace varve::wal
