#pragma once
// Where a shard's sealed samples live: an append-only sequence of bytes with 64-bit positions, cut into blocks. The
// last block is in memory, full ones are files `<folder>/<position of the first byte, 16 hex digits>.log`, read through
// maps. Format: FORMAT.md.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/status.h"
#include "storage/fs/file_system.h"

namespace varve::head {

struct SealedLogConfig {
  size_t block_bytes = 4 << 20;
  absl::Status Validate() const;
};

// A block's bytes. Published blocks never change, except that the open one grows behind what a reader may know of.
class SealedBlock {
 public:
  SealedBlock(uint64_t first, size_t capacity);
  SealedBlock(uint64_t first, std::unique_ptr<fs::MappedFile> file);
  ~SealedBlock();
  uint64_t first() const { return first_; }
  const char* data() const { return data_; }
  size_t capacity() const { return capacity_; }
  bool mapped() const { return file_ != nullptr; }
  void Forget() const;

 private:
  friend class SealedLog;
  uint64_t first_;
  size_t capacity_;  // bytes that may be read, of a mapped one; that fit, of one in memory
  const char* data_;
  std::unique_ptr<char[]> memory_;
  std::unique_ptr<fs::MappedFile> file_;
};

// The log as it was at one moment. Any thread; keeps blocks alive.
class SealedView {
 public:
  uint64_t end() const { return end_; }
  uint64_t floor() const { return floor_; }
  uint64_t first() const { return blocks_->list.front()->first(); }  // bytes before it are gone
  // The record's body (without size and checksum) at `position`, checked. DataLoss when there is none, or a damaged
  // one.
  absl::StatusOr<std::string_view> Read(uint64_t position) const;

 private:
  friend class SealedLog;
  struct Blocks {
    std::string folder;
    std::vector<std::shared_ptr<const SealedBlock>> list;  // ascending by first position
  };
  std::shared_ptr<const Blocks> blocks_;
  uint64_t floor_ = 0, end_ = 0;
};

// Lives on the shard's thread. Shared by the heads of the shard.
class SealedLog {
 public:
  static constexpr uint64_t kNone = 0;  // no position; the first record stands at kFirst
  static constexpr uint64_t kFirst = 8;

  // An empty log in `folder`, which is made; files of an earlier life stay until LoadCheckpoint or StartEmpty tells
  // what they are worth.
  static absl::StatusOr<std::unique_ptr<SealedLog>> Open(fs::FileSystem& fs, std::string folder,
                                                         const SealedLogConfig& config);

  // Starts from a checkpoint: maps the files it names, removes later ones, takes back the open block. DataLoss when the
  // bytes or the files are bad; the log is then empty.
  absl::Status LoadCheckpoint(std::string_view bytes);
  // Starts with nothing: removes all files.
  absl::Status StartEmpty();
  // Makes the files durable and appends what LoadCheckpoint needs.
  absl::Status WriteCheckpoint(std::string& out);

  // The position of the next record, provided that its body is not longer.
  uint64_t Reserve(size_t body_bytes_max);
  // Appends a record and returns its position. Never fails: a block that cannot be written stays in memory, and is
  // tried again when the next one is full and by Flush.
  uint64_t Append(std::string_view body);
  uint64_t end() const { return end_; }
  SealedView view() const;

  // Records below `position` are in a block file and will not be asked for again: their files go once no reader has
  // them.
  void AdvanceFloor(uint64_t position);
  uint64_t floor() const { return floor_; }

  // Writes full blocks that a bad disk kept in memory; gives back page cache of mapped ones. Call it now and then.
  absl::Status Flush();
  uint64_t memory_bytes() const;  // of blocks in memory
  uint64_t file_bytes() const;
  size_t blocks_waiting() const;  // full, but not on disk yet
  std::string DebugString() const;

 private:
  SealedLog(fs::FileSystem& fs, std::string folder, const SealedLogConfig& config);
  std::string PathOf(uint64_t first) const;
  void OpenBlock(size_t capacity);
  void Clear();
  absl::Status WriteOut(size_t i);
  void Publish();

  fs::FileSystem& fs_;
  const std::string folder_;
  const SealedLogConfig config_;
  std::vector<std::shared_ptr<SealedBlock>> blocks_;  // ascending; the last one is open
  std::vector<size_t> sizes_;                         // bytes used of each
  std::vector<std::unique_ptr<fs::AppendFile>> unsynced_;
  bool folder_dirty_ = false;
  std::shared_ptr<const SealedView::Blocks> published_;
  uint64_t floor_ = 0, end_ = kFirst;
  uint64_t file_bytes_ = 0;
};

}  // namespace varve::head
