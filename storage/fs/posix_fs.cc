#include "storage/fs/posix_fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "storage/base/strings.h"

namespace varve::fs {
namespace {

absl::Status Failed(std::string_view call, const std::string& path) {
  return base::ErrnoStatus(errno, base::StrCat(call, " ", path));
}

// Closes when it goes out of scope. Close errors say nothing that a sync did not say before.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&&) = delete;
  bool ok() const { return fd_ >= 0; }
  int get() const { return fd_; }

 private:
  int fd_;
};

Descriptor Open(const std::string& path, int flags) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  } while (fd < 0 && errno == EINTR);
  return Descriptor(fd);
}

class PosixAppendFile : public AppendFile {
 public:
  PosixAppendFile(std::string path, Descriptor fd, uint64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}

  absl::Status Append(std::string_view bytes) override {
    // pwrite at a position that we keep, so that what a failed call left behind is written over by the next one.
    uint64_t at = size_;
    while (!bytes.empty()) {
      const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
      if (n < 0) {
        if (errno == EINTR) continue;
        return Failed("write", path_);
      }
      if (n == 0) {  // never seen, but a loop that cannot end is worse than an error
        errno = EIO;
        return Failed("write", path_);
      }
      at += static_cast<uint64_t>(n);
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    size_ = at;
    return absl::OkStatus();
  }
  absl::Status Sync() override {
    int rc;
    do {
      rc = ::fdatasync(fd_.get());
    } while (rc != 0 && errno == EINTR);
    return rc == 0 ? absl::OkStatus() : Failed("fdatasync", path_);
  }
  absl::Status Truncate(uint64_t size) override {
    int rc;
    do {
      rc = ::ftruncate(fd_.get(), static_cast<off_t>(size));
    } while (rc != 0 && errno == EINTR);
    if (rc != 0) return Failed("ftruncate", path_);
    size_ = size;
    return absl::OkStatus();
  }
  uint64_t size() const override { return size_; }

 private:
  const std::string path_;
  const Descriptor fd_;
  uint64_t size_;
};

class PosixMappedFile : public MappedFile {
 public:
  PosixMappedFile(void* address, size_t size) : address_(address), size_(size) {}
  ~PosixMappedFile() override {
    if (size_ > 0) ::munmap(address_, size_);
  }
  PosixMappedFile(const PosixMappedFile&) = delete;
  PosixMappedFile& operator=(const PosixMappedFile&) = delete;
  std::string_view bytes() const override { return {static_cast<const char*>(address_), size_}; }
  void Forget(uint64_t offset, uint64_t size) const override {
    // Whole pages inside the range only: a neighbour may be reading the rest of a page at either end.
    const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    const uint64_t end = offset >= size_ ? size_ : offset + std::min<uint64_t>(size, size_ - offset);
    const uint64_t first = (offset + page - 1) / page * page;
    const uint64_t last = end == size_ ? end : end / page * page;
    if (first >= last) return;
    ::madvise(static_cast<char*>(address_) + first, last - first, MADV_DONTNEED);  // advice: failing costs memory only
  }

 private:
  void* const address_;
  const size_t size_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AppendFile>> PosixFileSystem::Create(const std::string& path) {
  Descriptor fd = Open(path, O_WRONLY | O_CREAT | O_EXCL);
  if (!fd.ok()) return Failed("create", path);
  return std::make_unique<PosixAppendFile>(path, std::move(fd), 0);
}

absl::StatusOr<std::unique_ptr<AppendFile>> PosixFileSystem::OpenForAppend(const std::string& path) {
  Descriptor fd = Open(path, O_WRONLY);
  if (!fd.ok()) return Failed("open", path);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return Failed("fstat", path);
  return std::make_unique<PosixAppendFile>(path, std::move(fd), static_cast<uint64_t>(info.st_size));
}

absl::StatusOr<std::unique_ptr<MappedFile>> PosixFileSystem::Map(const std::string& path) {
  const Descriptor fd = Open(path, O_RDONLY);
  if (!fd.ok()) return Failed("open", path);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return Failed("fstat", path);
  if (!S_ISREG(info.st_mode)) {
    errno = EISDIR;
    return Failed("map", path);
  }
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return std::make_unique<PosixMappedFile>(nullptr, 0);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) return Failed("mmap", path);
  return std::make_unique<PosixMappedFile>(address, size);
}

absl::StatusOr<std::string> PosixFileSystem::ReadAll(const std::string& path) {
  const Descriptor fd = Open(path, O_RDONLY);
  if (!fd.ok()) return Failed("open", path);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return Failed("fstat", path);
  std::string bytes;
  // One byte more than the file is said to have, so that the end is seen in the same call. Files in /proc say 0.
  bytes.resize(static_cast<size_t>(info.st_size) + 1);
  size_t used = 0;
  while (true) {
    const ssize_t n = ::read(fd.get(), bytes.data() + used, bytes.size() - used);
    if (n < 0) {
      if (errno == EINTR) continue;
      return Failed("read", path);
    }
    if (n == 0) break;
    used += static_cast<size_t>(n);
    if (used == bytes.size()) bytes.resize(2 * bytes.size());
  }
  bytes.resize(used);
  return bytes;
}

absl::StatusOr<std::vector<FileInfo>> PosixFileSystem::List(const std::string& folder) {
  DIR* dir = ::opendir(folder.c_str());
  if (dir == nullptr) return Failed("list", folder);
  std::vector<FileInfo> files;
  absl::Status status;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(dir);  // NOLINT(concurrency-mt-unsafe): each call has its own DIR
    if (entry == nullptr) {
      if (errno != 0) status = Failed("list", folder);
      break;
    }
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat info{};
    if (::fstatat(::dirfd(dir), entry->d_name, &info, 0) != 0) {
      if (errno == ENOENT) continue;  // removed in the meantime
      status = Failed("stat", base::StrCat(folder, "/", name));
      break;
    }
    const bool is_folder = S_ISDIR(info.st_mode);
    files.push_back({name, is_folder ? 0 : static_cast<uint64_t>(info.st_size), is_folder});
  }
  ::closedir(dir);
  if (!status.ok()) return status;
  std::sort(files.begin(), files.end(), [](const FileInfo& a, const FileInfo& b) { return a.name < b.name; });
  return files;
}

absl::Status PosixFileSystem::CreateFolders(const std::string& folder) {
  for (size_t end = folder.find('/', 1);; end = folder.find('/', end + 1)) {
    const std::string prefix = folder.substr(0, end);
    if (::mkdir(prefix.c_str(), 0755) == 0) {
      const size_t slash = prefix.find_last_of('/');
      const std::string parent = slash == std::string::npos ? "." : slash == 0 ? "/" : prefix.substr(0, slash);
      RETURN_IF_ERROR(SyncFolder(parent));
    } else if (errno != EEXIST) {
      // A parent that we may not write to is fine as long as it is there.
      const int error = errno;
      struct stat info{};
      if (::stat(prefix.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
        errno = error;
        return Failed("mkdir", prefix);
      }
    }
    if (end == std::string::npos) break;
  }
  struct stat info{};
  if (::stat(folder.c_str(), &info) != 0) return Failed("stat", folder);
  if (!S_ISDIR(info.st_mode)) {
    errno = ENOTDIR;
    return Failed("mkdir", folder);
  }
  return absl::OkStatus();
}

absl::Status PosixFileSystem::Remove(const std::string& path) {
  return std::remove(path.c_str()) == 0 ? absl::OkStatus() : Failed("remove", path);
}

absl::Status PosixFileSystem::Rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return Failed("rename", base::StrCat(from, " to ", to));
}

absl::Status PosixFileSystem::SyncFolder(const std::string& folder) {
  const Descriptor fd = Open(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  if (!fd.ok()) return Failed("open", folder);
  int rc;
  do {
    rc = ::fsync(fd.get());
  } while (rc != 0 && errno == EINTR);
  // Some file systems have nothing to sync in a folder, and say so.
  return rc == 0 || errno == EINVAL ? absl::OkStatus() : Failed("fsync", folder);
}

absl::StatusOr<uint64_t> PosixFileSystem::FreeBytes(const std::string& path) {
  struct statvfs info{};
  if (::statvfs(path.c_str(), &info) != 0) return Failed("statvfs", path);
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

}  // namespace varve::fs
