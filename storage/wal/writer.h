#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/clock.h"
#include "storage/base/metrics.h"
#include "storage/base/mutex.h"
#include "storage/base/status.h"
#include "storage/fs/file_system.h"
#include "storage/wal/position.h"

namespace varve::wal {

struct WriterConfig {
  uint64_t segment_bytes = 64u << 20u;  // a segment that has reached this size is followed by another
  // Numbers of new segments begin here at least: the segment of the checkpoint's position, so that a log whose files
  // are all gone does not count up again from below what the checkpoint says it contains.
  uint64_t first_segment = 1;
  absl::Status Validate() const;
};

// Shared by the logs of all shards.
struct WriterMetrics {
  base::Counter& bytes;
  base::Counter& records;
  base::Counter& writes;
  base::Counter& write_errors;
  base::Counter& sync_errors;
  base::Counter& segments;
  base::Histogram& sync_seconds;
  explicit WriterMetrics(base::Registry& registry);
};

// Appends to a log: a folder of numbered segments. Write, Rotate, AddPreamble and DropBefore belong to one thread (the
// shard's); Sync may be called from one other thread at the same time, so that a slow disk does not hold up the shard;
// the accessors may be called from any.
class Writer {
 public:
  // Creates the folder when need be. Never touches what an earlier process has written: continues in a new segment,
  // which is created with the first write. `fs`, `clock` and `metrics` must outlive the writer.
  static absl::StatusOr<std::unique_ptr<Writer>> Open(fs::FileSystem& fs, std::string folder, WriterConfig config,
                                                      const base::Clock& clock, WriterMetrics& metrics);
  ~Writer();  // closes; does not sync

  // Framed records (RecordBuilder), whole: one write call. After an error none of them is in the log, and a later call
  // may succeed again: the segment is cut back to its last good byte, or abandoned when even that fails (then the
  // records may show up again when the log is read, as a write whose outcome was unknown to its sender; replay must
  // take duplicates).
  absl::Status Write(std::string_view framed_records);
  // These records also go to the head of every segment from the next one on: what later records cannot do without.
  void AddPreamble(std::string_view framed_records);
  // When it returns OK, everything written before the call survives a power cut.
  // After an error the kernel may have dropped any of the bytes since synced(), and asking again would not bring them
  // back nor tell. The segments in question are left behind: writing goes on in a new one and later Syncs vouch for
  // that one only. Until the caller has put the state itself on disk (a checkpoint taken after the error) and called
  // DropBefore with a segment after doubtful()->segment, records before *doubtful() may be gone after a power cut.
  absl::Status Sync();
  // The next write starts a new segment. Position() is then at that segment, so a checkpoint taken now allows
  // DropBefore(position().segment) once it is on disk.
  void Rotate();
  // Removes segments with smaller numbers, whoever wrote them. The newest stays in any case.
  absl::Status DropBefore(uint64_t segment);

  Position position() const;                 // where the next record will begin
  Position synced() const;                   // records before it survive a power cut, as far as no Sync failed
  std::optional<Position> doubtful() const;  // see Sync
  uint64_t bytes_on_disk() const;            // of all segments of the folder
  std::string DebugString() const;

 private:
  struct Segment {
    std::string path;
    uint64_t number = 0;
    std::shared_ptr<fs::AppendFile> file;
  };
  struct Closed {
    uint64_t number = 0, bytes = 0;
  };
  Writer(fs::FileSystem& fs, std::string folder, WriterConfig config, const base::Clock& clock, WriterMetrics& metrics);
  absl::Status StartSegment();
  void LeaveSegmentLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  fs::FileSystem& fs_;
  const std::string folder_;
  const WriterConfig config_;
  const base::Clock& clock_;
  WriterMetrics& metrics_;
  std::string preamble_;  // the writing thread's

  mutable base::Mutex mu_;  // leaf; not held during I/O
  std::optional<Segment> current_ ABSL_GUARDED_BY(mu_);
  std::vector<Segment> left_ ABSL_GUARDED_BY(mu_);  // no longer written to, not synced yet
  uint64_t next_segment_ ABSL_GUARDED_BY(mu_) = 1;
  bool folder_dirty_ ABSL_GUARDED_BY(mu_) = false;
  Position position_ ABSL_GUARDED_BY(mu_);
  Position synced_ ABSL_GUARDED_BY(mu_);
  std::optional<Position> doubtful_ ABSL_GUARDED_BY(mu_);
  std::vector<Closed> closed_ ABSL_GUARDED_BY(mu_);  // segments on disk other than the current one
};

}  // namespace varve::wal
