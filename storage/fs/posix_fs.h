#pragma once
#include "storage/fs/file_system.h"

namespace varve::fs {

// The machine's own files. Every error names the call and the path. Files are created 0644, folders 0755, less the
// umask.
class PosixFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<AppendFile>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<AppendFile>> OpenForAppend(const std::string& path) override;
  // A disk that fails to deliver a page of a mapped file ends the process with SIGBUS; where that must not be, ReadAll.
  absl::StatusOr<std::unique_ptr<MappedFile>> Map(const std::string& path) override;
  absl::StatusOr<std::string> ReadAll(const std::string& path) override;
  absl::StatusOr<std::vector<FileInfo>> List(const std::string& folder) override;
  absl::Status CreateFolders(const std::string& folder) override;  // and syncs the parents of those that it made
  absl::Status Remove(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status SyncFolder(const std::string& folder) override;
  absl::StatusOr<uint64_t> FreeBytes(const std::string& path) override;
};

}  // namespace varve::fs
