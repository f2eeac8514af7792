#include "tests/support/mem_fs.h"

#include <algorithm>
#include <utility>

#include "storage/base/dice.h"
#include "storage/base/strings.h"

namespace varve::test {
namespace {

std::string Clean(std::string path) {  // "a//b/" and "./a/b" are "a/b"
  std::string out;
  for (const std::string_view part : base::StrSplit(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (!out.empty()) out += '/';
    out += part;
  }
  return out;
}
std::string FolderOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}
absl::Status Missing(const std::string& path) { return absl::NotFoundError(base::StrCat(path, ": no such file")); }

}  // namespace

struct MemFs::Node {
  std::string bytes;
  size_t synced = 0;
  std::vector<std::pair<size_t, size_t>> lost;  // [begin, end): never reach the disk
};

class MemFs::File : public fs::AppendFile {
 public:
  File(MemFs& fs, std::shared_ptr<Node> node) : fs_(fs), node_(std::move(node)), size_(node_->bytes.size()) {}
  absl::Status Append(std::string_view bytes) override {
    base::MutexLock lock(fs_.mu_);
    node_->bytes.resize(std::max(node_->bytes.size(), size_ + bytes.size()));
    std::copy(bytes.begin(), bytes.end(), node_->bytes.begin() + static_cast<ptrdiff_t>(size_));
    size_ += bytes.size();
    return absl::OkStatus();
  }
  absl::Status Sync() override {
    base::MutexLock lock(fs_.mu_);
    node_->synced = node_->bytes.size();
    return absl::OkStatus();
  }
  absl::Status Truncate(uint64_t size) override {
    base::MutexLock lock(fs_.mu_);
    node_->bytes.resize(size);
    node_->synced = std::min(node_->synced, node_->bytes.size());
    size_ = size;
    return absl::OkStatus();
  }
  uint64_t size() const override { return size_; }

 private:
  MemFs& fs_;
  const std::shared_ptr<Node> node_;
  size_t size_;
};

class MemFs::Mapping : public fs::MappedFile {
 public:
  explicit Mapping(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string_view bytes() const override { return bytes_; }
  void Forget(uint64_t, uint64_t) const override {}

 private:
  const std::string bytes_;
};

MemFs::MemFs() { folders_.insert(""); }
MemFs::~MemFs() = default;

absl::Status MemFs::CheckFolderLocked(const std::string& path) {
  if (folders_.contains(path)) return absl::InternalError(base::StrCat(path, ": is a folder"));
  if (!folders_.contains(FolderOf(path))) return absl::NotFoundError(base::StrCat(path, ": no such folder"));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<fs::AppendFile>> MemFs::Create(const std::string& raw) {
  const std::string path = Clean(raw);
  base::MutexLock lock(mu_);
  RETURN_IF_ERROR(CheckFolderLocked(path));
  auto [it, created] = names_.try_emplace(path, nullptr);
  if (!created) return absl::AlreadyExistsError(base::StrCat(path, ": exists"));
  it->second = std::make_shared<Node>();
  return std::make_unique<File>(*this, it->second);
}

absl::StatusOr<std::unique_ptr<fs::AppendFile>> MemFs::OpenForAppend(const std::string& raw) {
  const std::string path = Clean(raw);
  base::MutexLock lock(mu_);
  const auto it = names_.find(path);
  if (it == names_.end()) return Missing(path);
  return std::make_unique<File>(*this, it->second);
}

absl::StatusOr<std::unique_ptr<fs::MappedFile>> MemFs::Map(const std::string& path) {
  ASSIGN_OR_RETURN(std::string bytes, ReadAll(path));
  return std::make_unique<Mapping>(std::move(bytes));
}

absl::StatusOr<std::string> MemFs::ReadAll(const std::string& raw) {
  const std::string path = Clean(raw);
  base::MutexLock lock(mu_);
  const auto it = names_.find(path);
  if (it == names_.end()) return Missing(path);
  return it->second->bytes;
}

absl::StatusOr<std::vector<fs::FileInfo>> MemFs::List(const std::string& raw) {
  const std::string folder = Clean(raw);
  base::MutexLock lock(mu_);
  if (!folders_.contains(folder)) return absl::NotFoundError(base::StrCat(folder, ": no such folder"));
  std::vector<fs::FileInfo> files;
  for (const auto& [path, node] : names_) {
    if (FolderOf(path) == folder)
      files.push_back({path.substr(folder.empty() ? 0 : folder.size() + 1), node->bytes.size()});
  }
  for (const std::string& path : folders_) {
    if (path.empty() || FolderOf(path) != folder) continue;
    files.push_back({path.substr(folder.empty() ? 0 : folder.size() + 1), 0, true});
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return files;
}

absl::Status MemFs::CreateFolders(const std::string& raw) {
  std::string folder = Clean(raw);
  base::MutexLock lock(mu_);
  for (std::string at = folder; !at.empty(); at = FolderOf(at)) {
    if (names_.contains(at)) return absl::InternalError(base::StrCat(at, ": is a file"));
  }
  for (; !folder.empty(); folder = FolderOf(folder)) folders_.insert(folder);
  return absl::OkStatus();
}

absl::Status MemFs::Remove(const std::string& raw) {
  const std::string path = Clean(raw);
  base::MutexLock lock(mu_);
  if (names_.erase(path) > 0) return absl::OkStatus();
  if (!folders_.contains(path)) return Missing(path);
  const std::string inside = path + "/";
  const auto file = names_.lower_bound(inside);
  const auto folder = folders_.lower_bound(inside);
  if ((file != names_.end() && file->first.starts_with(inside)) ||
      (folder != folders_.end() && folder->starts_with(inside))) {
    return absl::InternalError(base::StrCat(path, ": folder is not empty"));
  }
  folders_.erase(path);
  return absl::OkStatus();
}

absl::Status MemFs::Rename(const std::string& raw_from, const std::string& raw_to) {
  const std::string from = Clean(raw_from), to = Clean(raw_to);
  base::MutexLock lock(mu_);
  if (folders_.contains(from)) {  // with all that is in it, durably, as folders are here
    if (folders_.contains(to) || names_.contains(to)) return absl::AlreadyExistsError(base::StrCat(to, ": exists"));
    const auto moved = [&](const std::string& path) { return path == from || path.starts_with(from + "/"); };
    const auto move_names = [&](Names& names) {
      Names out;
      for (auto& [path, node] : names) out[moved(path) ? to + path.substr(from.size()) : path] = node;
      names.swap(out);
    };
    move_names(names_);
    move_names(durable_names_);
    std::set<std::string> folders;
    for (const std::string& path : folders_) folders.insert(moved(path) ? to + path.substr(from.size()) : path);
    folders_.swap(folders);
    return absl::OkStatus();
  }
  const auto it = names_.find(from);
  if (it == names_.end()) return Missing(from);
  RETURN_IF_ERROR(CheckFolderLocked(to));
  std::shared_ptr<Node> node = it->second;
  names_.erase(it);
  names_[to] = std::move(node);
  return absl::OkStatus();
}

absl::Status MemFs::SyncFolder(const std::string& raw) {
  const std::string folder = Clean(raw);
  base::MutexLock lock(mu_);
  if (!folders_.contains(folder)) return absl::NotFoundError(base::StrCat(folder, ": no such folder"));
  std::erase_if(durable_names_, [&](const auto& entry) { return FolderOf(entry.first) == folder; });
  for (const auto& [path, node] : names_) {
    if (FolderOf(path) == folder) durable_names_[path] = node;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> MemFs::FreeBytes(const std::string&) { return uint64_t{1} << 40; }

void MemFs::Overwrite(const std::string& raw, std::string_view bytes) {
  const std::string path = Clean(raw);
  base::MutexLock lock(mu_);
  for (std::string folder = FolderOf(path); !folder.empty(); folder = FolderOf(folder)) folders_.insert(folder);
  auto node = std::make_shared<Node>();
  node->bytes = bytes;
  node->synced = bytes.size();
  names_[path] = node;
  durable_names_[path] = node;
}

std::string MemFs::Bytes(const std::string& path) {
  absl::StatusOr<std::string> bytes = ReadAll(path);
  return bytes.ok() ? *std::move(bytes) : std::string();
}

std::vector<std::string> MemFs::Paths() {
  base::MutexLock lock(mu_);
  std::vector<std::string> paths;
  for (const auto& entry : names_) paths.push_back(entry.first);
  return paths;
}

void MemFs::LoseUnsynced(const std::string& raw) {
  const std::string path = Clean(raw);
  base::MutexLock lock(mu_);
  const auto it = names_.find(path);
  if (it == names_.end()) return;
  Node& node = *it->second;
  if (node.synced < node.bytes.size()) node.lost.emplace_back(node.synced, node.bytes.size());
}

std::unique_ptr<MemFs> MemFs::AfterReboot(Unsynced unsynced, uint64_t seed) {
  base::Dice dice(seed);
  auto after = std::make_unique<MemFs>();
  base::MutexLock lock(mu_);
  std::map<std::string, bool> names_kept;  // by folder
  for (const std::string& folder : folders_) {
    names_kept[folder] = unsynced == Unsynced::kKept || (unsynced == Unsynced::kTorn && dice.OneIn(2));
  }
  const auto reboot = [&](const std::string& path, const Node& node) {
    std::string bytes = node.bytes;
    if (unsynced != Unsynced::kKept) {
      size_t size = node.synced;
      if (unsynced == Unsynced::kTorn && bytes.size() > size) size += dice.Below(bytes.size() - size + 1);
      bytes.resize(size);
      for (size_t sector = node.synced / 512 * 512; unsynced == Unsynced::kTorn && sector < size; sector += 512) {
        if (!dice.OneIn(4)) continue;
        for (size_t i = std::max(sector, node.synced); i < std::min(sector + 512, size); ++i) bytes[i] = 0;
      }
      for (const auto& [begin, end] : node.lost) {
        for (size_t i = begin; i < std::min(end, bytes.size()); ++i) bytes[i] = 0;
      }
    }
    after->Overwrite(path, bytes);
  };
  for (const auto& [path, node] : names_) {
    if (names_kept[FolderOf(path)]) reboot(path, *node);
  }
  for (const auto& [path, node] : durable_names_) {
    if (!names_kept[FolderOf(path)]) reboot(path, *node);
  }
  base::MutexLock after_lock(after->mu_);
  after->folders_ = folders_;
  return after;
}

}  // namespace varve::test
