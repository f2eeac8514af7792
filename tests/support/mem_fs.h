#pragma once
// A file system in memory that knows what a power cut would leave of it. Any thread.
//
// The model: bytes are durable up to the last Sync of their file, names (created, renamed, removed) as of the last
// SyncFolder of their folder; folders themselves are durable at once.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/mutex.h"
#include "storage/fs/file_system.h"

namespace varve::test {

enum class Unsynced {
  kLost,  // the least that the contract promises
  kKept,  // everything, as after a kill of the process
  kTorn,  // any part of it, some of it as zeros: per file and per folder by the seed
};

class MemFs : public fs::FileSystem {
 public:
  MemFs();
  ~MemFs() override;

  absl::StatusOr<std::unique_ptr<fs::AppendFile>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<fs::AppendFile>> OpenForAppend(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<fs::MappedFile>> Map(const std::string& path) override;
  absl::StatusOr<std::string> ReadAll(const std::string& path) override;
  absl::StatusOr<std::vector<fs::FileInfo>> List(const std::string& folder) override;
  absl::Status CreateFolders(const std::string& folder) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status SyncFolder(const std::string& folder) override;
  absl::StatusOr<uint64_t> FreeBytes(const std::string& path) override;

  // ---- For tests ----
  void Overwrite(const std::string& path, std::string_view bytes);  // creates or replaces the file, durably
  std::string Bytes(const std::string& path);                       // "" when there is none
  std::vector<std::string> Paths();                                 // of all files, sorted
  // What a kernel does after a failed fdatasync: the file's unsynced bytes stay readable but never reach the disk,
  // however often they are synced later; a reboot finds zeros in their place.
  void LoseUnsynced(const std::string& path);
  // The files as the next boot finds them, in a new file system. This one lives on.
  std::unique_ptr<MemFs> AfterReboot(Unsynced unsynced = Unsynced::kLost, uint64_t seed = 0);

 private:
  struct Node;
  class File;
  class Mapping;
  using Names = std::map<std::string, std::shared_ptr<Node>>;
  absl::Status CheckFolderLocked(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Mutex mu_;  // leaf
  Names names_ ABSL_GUARDED_BY(mu_);
  Names durable_names_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> folders_ ABSL_GUARDED_BY(mu_);
};

}  // namespace varve::test
