#include "tests/support/fault_fs.h"

#include <algorithm>
#include <utility>

namespace varve::test {

class FaultFs::File : public fs::AppendFile {
 public:
  File(FaultFs& fs, std::string path, std::unique_ptr<fs::AppendFile> inner)
      : fs_(fs), path_(std::move(path)), inner_(std::move(inner)) {}

  absl::Status Append(std::string_view bytes) override {
    const bool was_off = fs_.power_is_off();
    if (const absl::Status status = fs_.Mutate(); !status.ok()) {
      if (!was_off) LeaveBehind(bytes.substr(0, bytes.size() / 2));
      return status;
    }
    if (const uint64_t fits = fs_.TakeSpace(bytes.size()); fits < bytes.size()) {
      LeaveBehind(bytes.substr(0, fits));
      return absl::ResourceExhaustedError(path_ + ": no space left on device");
    }
    return inner_->Append(bytes);
  }
  absl::Status Sync() override {
    RETURN_IF_ERROR(fs_.Mutate());
    if (const absl::Status status = fs_.SyncOutcome(path_); !status.ok()) {
      fs_.inner_->LoseUnsynced(path_);
      return status;
    }
    return inner_->Sync();
  }
  absl::Status Truncate(uint64_t size) override {
    RETURN_IF_ERROR(fs_.Mutate());
    {
      base::MutexLock lock(fs_.mu_);
      if (fs_.failing_truncates_) return absl::InternalError(path_ + ": truncate: input/output error");
    }
    return inner_->Truncate(size);
  }
  uint64_t size() const override { return inner_->size(); }

 private:
  // What a failed write has put into the file: there, but not counted; the next append goes over it, as with the real
  // one.
  void LeaveBehind(std::string_view bytes) {
    auto other = fs_.inner_->OpenForAppend(path_);
    if (other.ok() && (*other)->size() == inner_->size()) (*other)->Append(bytes).IgnoreError();
  }

  FaultFs& fs_;
  const std::string path_;
  const std::unique_ptr<fs::AppendFile> inner_;
};

FaultFs::FaultFs(std::unique_ptr<MemFs> inner) : inner_(std::move(inner)) {}
FaultFs::~FaultFs() = default;

void FaultFs::CutPowerAt(uint64_t n) {
  base::MutexLock lock(mu_);
  power_cut_at_ = n;
}
void FaultFs::FailCallAt(uint64_t n) {
  base::MutexLock lock(mu_);
  fail_at_ = n;
}
void FaultFs::SetSpace(uint64_t bytes) {
  base::MutexLock lock(mu_);
  space_ = bytes;
}
void FaultFs::FailSyncs(uint64_t n) {
  base::MutexLock lock(mu_);
  failing_syncs_ = n;
}
void FaultFs::FailTruncates(bool fail) {
  base::MutexLock lock(mu_);
  failing_truncates_ = fail;
}
uint64_t FaultFs::mutating_calls() const {
  base::MutexLock lock(mu_);
  return calls_;
}
bool FaultFs::power_is_off() const {
  base::MutexLock lock(mu_);
  return calls_ > power_cut_at_;
}

absl::Status FaultFs::Mutate() {
  base::MutexLock lock(mu_);
  const uint64_t call = calls_++;
  if (call >= power_cut_at_) return absl::InternalError("power is off");
  if (call == fail_at_) return absl::InternalError("input/output error");
  return absl::OkStatus();
}
absl::Status FaultFs::Alive() const { return power_is_off() ? absl::InternalError("power is off") : absl::OkStatus(); }
absl::Status FaultFs::SyncOutcome(const std::string& path) {
  base::MutexLock lock(mu_);
  if (failing_syncs_ == 0) return absl::OkStatus();
  --failing_syncs_;
  return absl::InternalError(path + ": sync: input/output error");
}
uint64_t FaultFs::TakeSpace(uint64_t bytes) {
  base::MutexLock lock(mu_);
  if (space_ == kNever) return bytes;
  const uint64_t taken = std::min(space_, bytes);
  space_ -= taken;
  return taken;
}

absl::StatusOr<std::unique_ptr<fs::AppendFile>> FaultFs::Create(const std::string& path) {
  RETURN_IF_ERROR(Mutate());
  ASSIGN_OR_RETURN(std::unique_ptr<fs::AppendFile> file, inner_->Create(path));
  return std::make_unique<File>(*this, path, std::move(file));
}
absl::StatusOr<std::unique_ptr<fs::AppendFile>> FaultFs::OpenForAppend(const std::string& path) {
  RETURN_IF_ERROR(Alive());
  ASSIGN_OR_RETURN(std::unique_ptr<fs::AppendFile> file, inner_->OpenForAppend(path));
  return std::make_unique<File>(*this, path, std::move(file));
}
absl::StatusOr<std::unique_ptr<fs::MappedFile>> FaultFs::Map(const std::string& path) {
  RETURN_IF_ERROR(Alive());
  return inner_->Map(path);
}
absl::StatusOr<std::string> FaultFs::ReadAll(const std::string& path) {
  RETURN_IF_ERROR(Alive());
  return inner_->ReadAll(path);
}
absl::StatusOr<std::vector<fs::FileInfo>> FaultFs::List(const std::string& folder) {
  RETURN_IF_ERROR(Alive());
  return inner_->List(folder);
}
absl::Status FaultFs::CreateFolders(const std::string& folder) {
  RETURN_IF_ERROR(Mutate());
  return inner_->CreateFolders(folder);
}
absl::Status FaultFs::Remove(const std::string& path) {
  RETURN_IF_ERROR(Mutate());
  return inner_->Remove(path);
}
absl::Status FaultFs::Rename(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(Mutate());
  return inner_->Rename(from, to);
}
absl::Status FaultFs::SyncFolder(const std::string& folder) {
  RETURN_IF_ERROR(Mutate());
  RETURN_IF_ERROR(SyncOutcome(folder));
  return inner_->SyncFolder(folder);
}
absl::StatusOr<uint64_t> FaultFs::FreeBytes(const std::string& path) {
  RETURN_IF_ERROR(Alive());
  base::MutexLock lock(mu_);
  if (space_ != kNever) return space_;
  return inner_->FreeBytes(path);
}

}  // namespace varve::test
