#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/status.h"
#include "storage/fs/file_system.h"
#include "storage/wal/format.h"
#include "storage/wal/position.h"

namespace varve::wal {

struct Record {
  Position begin, end;
  RecordType type{};         // may be a number that this version does not know: skip it
  std::string_view payload;  // holds until the next call
};

struct Damage {
  uint64_t segment = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::string reason;
  std::string quarantined_to;  // path of the copy; empty when none could be made
};

struct ReadReport {
  uint64_t records = 0, bytes = 0, segments = 0;
  // The end of the last segment, when it holds an unfinished write: what a crash leaves behind, nothing to worry about.
  std::optional<Damage> torn;
  std::vector<Damage> damages;  // everything else that could not be read
  std::string DebugString() const;
};

// Reads a log that nobody writes to, oldest record first. Whatever the bytes are, reading goes on: damage is stepped
// over up to the next record whose checksum holds, copied to `quarantine_folder` (when given) and listed in the report.
// One thread.
class Reader {
 public:
  // Starts at the first record that begins at or after `from`. The only errors are those of listing the folder; a
  // folder that does not exist is an empty log.
  static absl::StatusOr<std::unique_ptr<Reader>> Open(fs::FileSystem& fs, std::string folder, Position from,
                                                      std::string quarantine_folder);
  ~Reader();

  bool Next(Record* record);  // false at the end
  const ReadReport& report() const { return report_; }

 private:
  Reader(fs::FileSystem& fs, std::string folder, Position from, std::string quarantine_folder);
  bool OpenNextSegment();
  void OpenSegment(uint64_t segment);
  void StepOverDamage(std::string reason);
  size_t EndOfDamage(size_t begin);
  size_t FindRecord(size_t begin);
  void ReportDamage(uint64_t offset, uint64_t bytes, std::string reason);

  fs::FileSystem& fs_;
  const std::string folder_;
  const Position from_;
  const std::string quarantine_folder_;
  std::vector<uint64_t> segments_;
  size_t next_ = 0;  // into segments_
  uint64_t segment_ = 0;
  std::unique_ptr<fs::MappedFile> file_;
  std::string_view bytes_;
  size_t at_ = 0;
  size_t forgotten_ = 0;
  uint64_t search_budget_ = 0;  // bytes that looking for records in this segment may still check
  ReadReport report_;
};

// Cuts the unfinished write that `report.torn` names off its segment, so that the next reading does not find it in the
// middle of the log. Call it after reading and before Writer::Open.
absl::Status CutTornTail(fs::FileSystem& fs, const std::string& folder, const ReadReport& report);

}  // namespace varve::wal
