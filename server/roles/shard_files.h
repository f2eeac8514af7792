#pragma once
// The files that say what in a shard's folder counts: the manifest (which checkpoints and blocks are live) and the
// checkpoint file (the heads of all tenants as bytes). Formats: FORMAT.md.
//
//   <shard>/MANIFEST                  replaced whole
//   <shard>/checkpoints/<seq>.ckpt    the newest and the one before it
//   <shard>/blocks/<seq>.block        immutable, see storage/block
//   <shard>/wal/                      see storage/wal
//   <shard>/sealed/                   see storage/head
//   <shard>/quarantine/               damaged bytes of the log, for whoever wants to look
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/status.h"
#include "storage/fs/file_system.h"
#include "storage/wal/position.h"

namespace varve::roles {

struct CheckpointEntry {
  uint64_t sequence = 0;  // names the file
  wal::Position replay_from;
};
struct BlockEntry {
  uint64_t sequence = 0;  // names the file
  std::string tenant;
  int64_t min_time_ms = 0, max_time_ms = 0;
  int64_t written_ms = 0;  // wall clock when it was published; retention counts from the later of the two
};

struct Manifest {
  uint64_t next_sequence = 1;
  std::vector<CheckpointEntry> checkpoints;  // newest first, at most two
  std::vector<BlockEntry> blocks;
  // Below it the sealed log's files may be gone. Written before they go, so that others that are gone are missed.
  static constexpr uint64_t kUnknown = UINT64_MAX;  // in manifests of before it was written, and rebuilt ones
  uint64_t sealed_floor = 0;

  std::string Encode() const;
  static absl::StatusOr<Manifest> Decode(std::string_view bytes);
};

std::string CheckpointPath(const std::string& shard_folder, uint64_t sequence);
std::string BlockPath(const std::string& shard_folder, uint64_t sequence);

// Writes <path>.tmp as bytes come; Commit makes it durable and gives it its name.
class CheckpointWriter {
 public:
  static absl::StatusOr<std::unique_ptr<CheckpointWriter>> Create(fs::FileSystem& fs, std::string path);
  ~CheckpointWriter();  // removes an unfinished file

  // Bytes of the head of `tenant`; consecutive calls for one tenant are one section.
  absl::Status AppendHead(uint32_t tenant_ref, std::string_view tenant, std::string_view bytes);
  // The last section and the directory of sections.
  absl::Status Finish(std::string_view sealed_log);
  absl::Status Commit();  // may be called on another thread than the rest, after it

 private:
  CheckpointWriter(fs::FileSystem& fs, std::string path, std::unique_ptr<fs::AppendFile> file);
  struct Section {
    uint32_t tenant_ref;
    std::string tenant;
    uint64_t offset, size;
  };
  fs::FileSystem& fs_;
  const std::string path_;
  std::unique_ptr<fs::AppendFile> file_;
  std::vector<Section> sections_;
  bool committed_ = false;
};

struct CheckpointFile {
  struct Head {
    uint32_t tenant_ref;
    std::string tenant;
    std::string_view bytes;
  };
  std::vector<Head> heads;
  std::string_view sealed_log;
  std::unique_ptr<fs::MappedFile> file;
};
// DataLoss when the file is not whole. The sections carry checksums of their own.
absl::StatusOr<CheckpointFile> OpenCheckpoint(fs::FileSystem& fs, const std::string& path);

}  // namespace varve::roles
