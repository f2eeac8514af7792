#include "storage/wal/writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/base/check.h"
#include "storage/base/strings.h"
#include "storage/wal/format.h"

namespace varve::wal {
namespace {

// The number of records; our own framing is checked just before it leaves memory.
uint64_t CountRecords(std::string_view framed) {
  uint64_t records = 0;
  while (!framed.empty()) {
    uint32_t payload_bytes = 0;
    VARVE_CHECK(framed.size() >= kRecordHeaderBytes && framed.starts_with(kRecordMarker));
    std::memcpy(&payload_bytes, framed.data() + 4, 4);
    VARVE_CHECK(payload_bytes <= framed.size() - kRecordHeaderBytes);
    framed.remove_prefix(kRecordHeaderBytes + payload_bytes);
    ++records;
  }
  return records;
}

}  // namespace

absl::Status WriterConfig::Validate() const {
  // The upper bound keeps offsets within 32 bits, whatever a last write adds; others pack positions into 64.
  constexpr uint64_t kMin = 4096, kMax = 1u << 30u;
  if (segment_bytes < kMin || segment_bytes > kMax) {
    return absl::InvalidArgumentError(
        base::StrCat("wal segment_bytes is ", segment_bytes, ", want ", kMin, " to ", kMax));
  }
  if (first_segment == 0) return absl::InvalidArgumentError("wal first_segment is 0, segments count from 1");
  return absl::OkStatus();
}

WriterMetrics::WriterMetrics(base::Registry& registry)
    : bytes(registry.AddCounter("varve_wal_written_bytes_total", "Bytes appended to write-ahead logs.")),
      records(registry.AddCounter("varve_wal_records_total", "Records appended to write-ahead logs.")),
      writes(registry.AddCounter("varve_wal_writes_total", "Write calls that appended records.")),
      write_errors(registry.AddCounter("varve_wal_write_errors_total",
                                       "Writes to write-ahead logs that failed; their requests were refused.")),
      sync_errors(registry.AddCounter("varve_wal_sync_errors_total",
                                      "Syncs of write-ahead logs that failed; a checkpoint has to follow.")),
      segments(registry.AddCounter("varve_wal_segments_total", "Segments started.")),
      sync_seconds(registry.AddHistogram("varve_wal_sync_seconds", "Duration of syncs of write-ahead logs.",
                                         base::Histogram::LatencySeconds())) {}

Writer::Writer(fs::FileSystem& fs, std::string folder, WriterConfig config, const base::Clock& clock,
               WriterMetrics& metrics)
    : fs_(fs), folder_(std::move(folder)), config_(config), clock_(clock), metrics_(metrics) {}

Writer::~Writer() = default;

absl::StatusOr<std::unique_ptr<Writer>> Writer::Open(fs::FileSystem& fs, std::string folder, WriterConfig config,
                                                     const base::Clock& clock, WriterMetrics& metrics) {
  RETURN_IF_ERROR(config.Validate());
  RETURN_IF_ERROR(fs.CreateFolders(folder));
  ASSIGN_OR_RETURN(const std::vector<fs::FileInfo> files, fs.List(folder));
  std::unique_ptr<Writer> writer(new Writer(fs, std::move(folder), config, clock, metrics));
  base::MutexLock lock(writer->mu_);
  writer->next_segment_ = writer->config_.first_segment;
  for (const fs::FileInfo& file : files) {
    uint64_t number = 0;
    if (file.is_folder || !ParseSegmentName(file.name, &number)) continue;
    writer->closed_.push_back({number, file.size});
    writer->next_segment_ = std::max(writer->next_segment_, number + 1);
    // The process before may have died with bytes still in the kernel. New records build on them, so they are saved
    // first.
    const std::string path = base::StrCat(writer->folder_, "/", file.name);
    ASSIGN_OR_RETURN(std::shared_ptr<fs::AppendFile> open, fs.OpenForAppend(path));
    writer->left_.push_back({path, number, std::move(open)});
  }
  writer->folder_dirty_ = !writer->left_.empty();
  std::sort(writer->closed_.begin(), writer->closed_.end(),
            [](const Closed& a, const Closed& b) { return a.number < b.number; });
  writer->position_ = writer->synced_ = {writer->next_segment_, kSegmentHeaderBytes};
  return writer;
}

absl::Status Writer::StartSegment() {
  Segment segment;
  {
    base::MutexLock lock(mu_);
    segment.number = next_segment_;
  }
  segment.path = base::StrCat(folder_, "/", SegmentName(segment.number));
  absl::StatusOr<std::unique_ptr<fs::AppendFile>> file = fs_.Create(segment.path);
  if (absl::IsAlreadyExists(file.status())) {
    // Nobody else writes here, so it is what an attempt that failed below could not remove. Its number is used up.
    base::MutexLock lock(mu_);
    ++next_segment_;
    position_ = {next_segment_, kSegmentHeaderBytes};
    return file.status();
  }
  RETURN_IF_ERROR(file.status());
  segment.file = *std::move(file);
  std::string head = SegmentHeader(segment.number);
  head += preamble_;
  if (const absl::Status status = segment.file->Append(head); !status.ok()) {
    fs_.Remove(segment.path).IgnoreError();  // one that stays is skipped: see above
    return status;
  }
  metrics_.segments.Add();
  base::MutexLock lock(mu_);
  next_segment_ = segment.number + 1;
  position_ = {segment.number, head.size()};
  folder_dirty_ = true;
  current_ = std::move(segment);
  return absl::OkStatus();
}

absl::Status Writer::Write(std::string_view framed_records) {
  const uint64_t records = CountRecords(framed_records);
  if (records == 0) return absl::OkStatus();
  std::shared_ptr<fs::AppendFile> file;
  for (int attempt = 0; file == nullptr; ++attempt) {
    {
      base::MutexLock lock(mu_);
      if (current_ && position_.offset >= config_.segment_bytes) LeaveSegmentLocked();
      if (current_) {
        file = current_->file;
        break;
      }
    }
    if (const absl::Status status = StartSegment(); !status.ok() && !(absl::IsAlreadyExists(status) && attempt < 100)) {
      metrics_.write_errors.Add();
      return base::Annotate(status, "write-ahead log");
    }
  }
  const uint64_t good = file->size();
  if (const absl::Status status = file->Append(framed_records); !status.ok()) {
    metrics_.write_errors.Add();
    // What is behind `good` now must not be taken for a record later on.
    if (!file->Truncate(good).ok()) {
      base::MutexLock lock(mu_);
      LeaveSegmentLocked();
    }
    return base::Annotate(status, "write-ahead log");
  }
  base::MutexLock lock(mu_);
  if (!current_ || current_->file != file) {
    // A Sync that failed meanwhile has left the segment behind; a later one would not cover these bytes.
    metrics_.write_errors.Add();
    return absl::UnavailableError("write-ahead log: a sync failed while this was written");
  }
  position_.offset += framed_records.size();
  metrics_.bytes.Add(framed_records.size());
  metrics_.records.Add(records);
  metrics_.writes.Add();
  return absl::OkStatus();
}

void Writer::AddPreamble(std::string_view framed_records) {
  CountRecords(framed_records);
  preamble_ += framed_records;
}

void Writer::LeaveSegmentLocked() {
  if (!current_) return;
  closed_.push_back({current_->number, position_.offset});
  left_.push_back(*std::move(current_));
  current_.reset();
  position_ = {next_segment_, kSegmentHeaderBytes};
}

void Writer::Rotate() {
  base::MutexLock lock(mu_);
  LeaveSegmentLocked();
}

absl::Status Writer::Sync() {
  std::vector<Segment> segments;
  Position target;
  bool folder_dirty = false;
  {
    base::MutexLock lock(mu_);
    target = position_;
    if (target == synced_ && left_.empty() && !folder_dirty_) return absl::OkStatus();
    segments = left_;
    if (current_) segments.push_back(*current_);
    folder_dirty = std::exchange(folder_dirty_, false);
  }
  const int64_t begin_ns = clock_.MonotonicNs();
  absl::Status status;
  for (const Segment& segment : segments) {
    status = segment.file->Sync();
    if (!status.ok()) break;
  }
  if (status.ok() && folder_dirty) status = fs_.SyncFolder(folder_);
  metrics_.sync_seconds.Observe(static_cast<double>(clock_.MonotonicNs() - begin_ns) * 1e-9);

  base::MutexLock lock(mu_);
  const uint64_t last = segments.empty() ? 0 : segments.back().number;
  std::erase_if(left_, [&](const Segment& segment) { return segment.number <= last; });
  if (status.ok()) {
    synced_ = target;
    return status;
  }
  metrics_.sync_errors.Add();
  // Nothing that was written to these files can be vouched for any more, what a write on the other thread is adding to
  // the current one included.
  if (current_ && current_->number <= last) {
    LeaveSegmentLocked();
    left_.pop_back();
  }
  folder_dirty_ = true;
  doubtful_ = position_;
  return base::Annotate(status, "write-ahead log");
}

absl::Status Writer::DropBefore(uint64_t segment) {
  std::vector<Closed> gone;
  {
    base::MutexLock lock(mu_);
    for (const Closed& closed : closed_) {
      if (closed.number < segment) gone.push_back(closed);
    }
    // A folder without any segment would not know which numbers were used.
    if (!current_ && !gone.empty() && gone.size() == closed_.size()) gone.pop_back();
  }
  for (const Closed& closed : gone) {
    const absl::Status status = fs_.Remove(base::StrCat(folder_, "/", SegmentName(closed.number)));
    if (!status.ok() && !absl::IsNotFound(status)) return status;
    base::MutexLock lock(mu_);
    std::erase_if(closed_, [&](const Closed& c) { return c.number == closed.number; });
    std::erase_if(left_, [&](const Segment& s) { return s.number == closed.number; });
  }
  base::MutexLock lock(mu_);
  if (doubtful_ && segment >= doubtful_->segment) doubtful_.reset();
  return absl::OkStatus();
}

Position Writer::position() const {
  base::MutexLock lock(mu_);
  return position_;
}
Position Writer::synced() const {
  base::MutexLock lock(mu_);
  return synced_;
}
std::optional<Position> Writer::doubtful() const {
  base::MutexLock lock(mu_);
  return doubtful_;
}
uint64_t Writer::bytes_on_disk() const {
  base::MutexLock lock(mu_);
  uint64_t bytes = current_ ? position_.offset : 0;
  for (const Closed& closed : closed_) bytes += closed.bytes;
  return bytes;
}

std::string Writer::DebugString() const {
  base::MutexLock lock(mu_);
  return base::StrCat("folder=", folder_, " position=", position_.ToString(), " synced=", synced_.ToString(),
                      " doubtful_before=", doubtful_ ? doubtful_->ToString() : "none",
                      " closed_segments=", closed_.size(), " unsynced_segments=", left_.size() + (current_ ? 1 : 0));
}

}  // namespace varve::wal
