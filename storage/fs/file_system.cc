#include "storage/fs/file_system.h"

#include "storage/base/strings.h"

namespace varve::fs {
namespace {

absl::Status WriteTemporary(FileSystem& fs, const std::string& path, std::string_view bytes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<AppendFile> file, fs.Create(path));
  RETURN_IF_ERROR(file->Append(bytes));
  return file->Sync();
}

}  // namespace

absl::Status WriteWhole(FileSystem& fs, const std::string& path, std::string_view bytes) {
  const size_t slash = path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
  const std::string temporary = base::StrCat(path, ".tmp");
  // One that a crash left behind is of no use to anybody.
  if (const absl::Status removed = fs.Remove(temporary); !removed.ok() && !absl::IsNotFound(removed)) return removed;
  absl::Status status = WriteTemporary(fs, temporary, bytes);
  if (status.ok()) status = fs.Rename(temporary, path);
  if (!status.ok()) {
    // Best effort, so that a full disk gets its space back; the error that matters is the first one.
    fs.Remove(temporary).IgnoreError();
    return status;
  }
  return fs.SyncFolder(folder);
}

}  // namespace varve::fs
