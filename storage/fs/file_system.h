#pragma once
// Files as the storage code sees them: append-only writers, positional readers, whole-folder operations. A parameter of
// everything that touches a disk, so that a test can pass in a bad one (tests/support/fault_fs.h).
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/status.h"

namespace varve::fs {

// One file open for appending. One thread at a time, but Sync may run beside the other calls.
class AppendFile {
 public:
  virtual ~AppendFile() = default;  // closes; does not sync
  // All or an error; after an error the file may hold a part of `bytes` (see Truncate). ENOSPC: ResourceExhausted.
  virtual absl::Status Append(std::string_view bytes) = 0;
  virtual absl::Status Sync() = 0;  // fdatasync
  // Cuts the file back to `size` bytes; later appends continue there.
  virtual absl::Status Truncate(uint64_t size) = 0;
  virtual uint64_t size() const = 0;  // what the appends that succeeded have put there
};

// Read-only bytes of a whole file, mapped where the file system can. Any thread. Bytes stay valid as long as this
// lives.
class MappedFile {
 public:
  virtual ~MappedFile() = default;
  virtual std::string_view bytes() const = 0;
  // The kernel may forget the pages of [offset, offset + size); they are read again when touched.
  virtual void Forget(uint64_t offset, uint64_t size) const = 0;
};

struct FileInfo {
  std::string name;  // within its folder
  uint64_t size = 0;
  bool is_folder = false;
};

// Paths are plain strings with '/'. Any thread.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Creates the file; AlreadyExists when there is one.
  virtual absl::StatusOr<std::unique_ptr<AppendFile>> Create(const std::string& path) = 0;
  virtual absl::StatusOr<std::unique_ptr<AppendFile>> OpenForAppend(const std::string& path) = 0;
  virtual absl::StatusOr<std::unique_ptr<MappedFile>> Map(const std::string& path) = 0;
  virtual absl::StatusOr<std::string> ReadAll(const std::string& path) = 0;
  virtual absl::StatusOr<std::vector<FileInfo>> List(const std::string& folder) = 0;  // sorted by name
  virtual absl::Status CreateFolders(const std::string& folder) = 0;                  // fine when it exists
  virtual absl::Status Remove(const std::string& path) = 0;                           // a file or an empty folder
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;    // replaces `to` atomically
  virtual absl::Status SyncFolder(const std::string& folder) = 0;
  virtual absl::StatusOr<uint64_t> FreeBytes(const std::string& path) = 0;
};

// `bytes` under `path`, all or nothing even when the power goes: temporary file, sync, rename, folder sync.
absl::Status WriteWhole(FileSystem& fs, const std::string& path, std::string_view bytes);

}  // namespace varve::fs
