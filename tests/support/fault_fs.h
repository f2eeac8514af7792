#pragma once
// A file system that fails on demand, in front of another one. Any thread.
//
// Mutating calls (Create, Append, Sync, Truncate, CreateFolders, Remove, Rename, SyncFolder) are counted from 0. A
// scenario is run once to learn how many there are, then once for each of them with the fault there.
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "storage/base/mutex.h"
#include "tests/support/mem_fs.h"

namespace varve::test {

class FaultFs : public fs::FileSystem {
 public:
  FaultFs() : FaultFs(std::make_unique<MemFs>()) {}
  explicit FaultFs(std::unique_ptr<MemFs> inner);
  ~FaultFs() override;

  // Calls from number `n` on fail, and change nothing; call `n` itself, when it is an append, gets half of its bytes
  // written.
  void CutPowerAt(uint64_t n);
  // Call number `n` fails with Internal (EIO), an append after half of its bytes.
  void FailCallAt(uint64_t n);
  // Appends take this many more bytes, then fail with ResourceExhausted after writing what fits. Space can come back.
  void SetSpace(uint64_t bytes);
  // The next `n` syncs fail with Internal, and the bytes that they would have saved are lost for good.
  void FailSyncs(uint64_t n);
  // Truncate calls fail as long as this is set.
  void FailTruncates(bool fail);
  uint64_t mutating_calls() const;
  bool power_is_off() const;
  // The files as the next boot finds them.
  std::unique_ptr<MemFs> AfterReboot(Unsynced unsynced = Unsynced::kLost, uint64_t seed = 0) {
    return inner_->AfterReboot(unsynced, seed);
  }
  MemFs& inner() { return *inner_; }

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

 private:
  class File;
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
  absl::Status Mutate();                              // counts one mutating call
  absl::Status Alive() const;                         // of calls that do not change anything
  absl::Status SyncOutcome(const std::string& path);  // after Mutate
  uint64_t TakeSpace(uint64_t bytes);

  const std::unique_ptr<MemFs> inner_;
  mutable base::Mutex mu_;  // leaf
  uint64_t calls_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t power_cut_at_ ABSL_GUARDED_BY(mu_) = kNever;
  uint64_t fail_at_ ABSL_GUARDED_BY(mu_) = kNever;
  uint64_t space_ ABSL_GUARDED_BY(mu_) = kNever;
  uint64_t failing_syncs_ ABSL_GUARDED_BY(mu_) = 0;
  bool failing_truncates_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace varve::test
