#include "server/roles/shard_files.h"

#include "storage/base/bytes.h"
#include "storage/base/crc32c.h"
#include "storage/base/strings.h"

namespace varve::roles {

namespace {

constexpr std::string_view kManifestMagic = "VARVEMAN";
constexpr std::string_view kCheckpointMagic = "VARVECKP";
constexpr uint32_t kVersion = 1;

std::string Numbered(const std::string& folder, std::string_view kind, uint64_t sequence, std::string_view suffix) {
  std::string digits = base::StrCat(sequence);
  if (digits.size() < 8) digits.insert(0, 8 - digits.size(), '0');
  return base::StrCat(folder, "/", kind, "/", digits, suffix);
}

}  // namespace

std::string CheckpointPath(const std::string& shard_folder, uint64_t sequence) {
  return Numbered(shard_folder, "checkpoints", sequence, ".ckpt");
}
std::string BlockPath(const std::string& shard_folder, uint64_t sequence) {
  return Numbered(shard_folder, "blocks", sequence, ".block");
}

std::string Manifest::Encode() const {
  std::string out(kManifestMagic);
  base::PutFixed(out, kVersion);
  base::PutVarint(out, next_sequence);
  base::PutVarint(out, checkpoints.size());
  for (const CheckpointEntry& entry : checkpoints) {
    base::PutVarint(out, entry.sequence);
    base::PutVarint(out, entry.replay_from.segment);
    base::PutVarint(out, entry.replay_from.offset);
  }
  base::PutVarint(out, blocks.size());
  for (const BlockEntry& entry : blocks) {
    base::PutVarint(out, entry.sequence);
    base::PutBytes(out, entry.tenant);
    base::PutSigned(out, entry.min_time_ms);
    base::PutSigned(out, entry.max_time_ms);
    base::PutSigned(out, entry.written_ms);
  }
  base::PutVarint(out, sealed_floor);
  base::PutFixed(out, base::Crc32c(out));
  return out;
}

absl::StatusOr<Manifest> Manifest::Decode(std::string_view bytes) {
  if (bytes.size() < kManifestMagic.size() + 8 || !bytes.starts_with(kManifestMagic)) {
    return absl::DataLossError("not a shard manifest");
  }
  base::ByteReader crc(bytes.substr(bytes.size() - 4));
  bytes.remove_suffix(4);
  if (crc.Fixed<uint32_t>() != base::Crc32c(bytes)) return absl::DataLossError("shard manifest: checksum mismatch");
  base::ByteReader in(bytes.substr(kManifestMagic.size()));
  if (const uint32_t version = in.Fixed<uint32_t>(); version != kVersion) {
    return absl::FailedPreconditionError(
        base::StrCat("shard manifest has version ", version, ", this program reads ", kVersion));
  }
  Manifest out;
  out.next_sequence = in.Varint();
  for (uint64_t n = in.Varint(); in.ok() && n > 0; --n) {
    CheckpointEntry entry;
    entry.sequence = in.Varint();
    entry.replay_from.segment = in.Varint();
    entry.replay_from.offset = in.Varint();
    out.checkpoints.push_back(entry);
  }
  for (uint64_t n = in.Varint(); in.ok() && n > 0; --n) {
    BlockEntry entry;
    entry.sequence = in.Varint();
    entry.tenant = in.Bytes();
    entry.min_time_ms = in.Signed();
    entry.max_time_ms = in.Signed();
    entry.written_ms = in.Signed();
    out.blocks.push_back(std::move(entry));
  }
  out.sealed_floor = in.ok() && in.AtEnd() ? kUnknown : in.Varint();
  if (!in.ok() || !in.AtEnd()) return absl::DataLossError("shard manifest: malformed");
  return out;
}

CheckpointWriter::CheckpointWriter(fs::FileSystem& fs, std::string path, std::unique_ptr<fs::AppendFile> file)
    : fs_(fs), path_(std::move(path)), file_(std::move(file)) {}

absl::StatusOr<std::unique_ptr<CheckpointWriter>> CheckpointWriter::Create(fs::FileSystem& fs, std::string path) {
  const std::string temporary = path + ".tmp";
  fs.Remove(temporary).IgnoreError();
  ASSIGN_OR_RETURN(auto file, fs.Create(temporary));
  auto writer = std::unique_ptr<CheckpointWriter>(new CheckpointWriter(fs, std::move(path), std::move(file)));
  std::string header(kCheckpointMagic);
  base::PutFixed(header, kVersion);
  RETURN_IF_ERROR(writer->file_->Append(header));
  return writer;
}

CheckpointWriter::~CheckpointWriter() {
  if (committed_) return;
  file_.reset();
  fs_.Remove(path_ + ".tmp").IgnoreError();
}

absl::Status CheckpointWriter::AppendHead(uint32_t tenant_ref, std::string_view tenant, std::string_view bytes) {
  if (sections_.empty() || sections_.back().tenant_ref != tenant_ref) {
    sections_.push_back({tenant_ref, std::string(tenant), file_->size(), 0});
  }
  sections_.back().size += bytes.size();
  return file_->Append(bytes);
}

absl::Status CheckpointWriter::Finish(std::string_view sealed_log) {
  std::string tail;
  const uint64_t sealed_offset = file_->size();
  tail += sealed_log;
  std::string directory;
  base::PutVarint(directory, sections_.size());
  for (const Section& section : sections_) {
    base::PutVarint(directory, section.tenant_ref);
    base::PutBytes(directory, section.tenant);
    base::PutVarint(directory, section.offset);
    base::PutVarint(directory, section.size);
  }
  base::PutVarint(directory, sealed_offset);
  base::PutVarint(directory, sealed_log.size());
  tail += directory;
  base::PutFixed(tail, base::Crc32c(directory));
  base::PutFixed(tail, static_cast<uint32_t>(directory.size()));
  tail += kCheckpointMagic;
  return file_->Append(tail);
}

absl::Status CheckpointWriter::Commit() {
  RETURN_IF_ERROR(file_->Sync());
  file_.reset();
  RETURN_IF_ERROR(fs_.Rename(path_ + ".tmp", path_));
  committed_ = true;
  return fs_.SyncFolder(path_.substr(0, path_.rfind('/')));
}

absl::StatusOr<CheckpointFile> OpenCheckpoint(fs::FileSystem& fs, const std::string& path) {
  CheckpointFile out;
  ASSIGN_OR_RETURN(out.file, fs.Map(path));
  const std::string_view bytes = out.file->bytes();
  const auto bad = [&](std::string_view what) { return absl::DataLossError(base::StrCat(path, ": ", what)); };
  const size_t header = kCheckpointMagic.size() + 4;
  const size_t trailer = kCheckpointMagic.size() + 8;
  if (bytes.size() < header + trailer || !bytes.starts_with(kCheckpointMagic) || !bytes.ends_with(kCheckpointMagic)) {
    return bad("not a whole checkpoint");
  }
  if (base::ByteReader(bytes.substr(kCheckpointMagic.size(), 4)).Fixed<uint32_t>() != kVersion) {
    return absl::FailedPreconditionError(base::StrCat(path, ": unknown version"));
  }
  base::ByteReader end(bytes.substr(bytes.size() - trailer, 8));
  const uint32_t crc = end.Fixed<uint32_t>();
  const uint32_t directory_size = end.Fixed<uint32_t>();
  if (directory_size > bytes.size() - header - trailer) return bad("directory does not fit");
  const std::string_view directory = bytes.substr(bytes.size() - trailer - directory_size, directory_size);
  if (base::Crc32c(directory) != crc) return bad("directory checksum mismatch");
  base::ByteReader in(directory);
  const auto section = [&](uint64_t offset, uint64_t size) -> std::string_view {
    if (offset > bytes.size() || size > bytes.size() - offset) {
      in.Fail();
      return {};
    }
    return bytes.substr(offset, size);
  };
  for (uint64_t n = in.Varint(); in.ok() && n > 0; --n) {
    CheckpointFile::Head head;
    head.tenant_ref = static_cast<uint32_t>(in.Varint());
    head.tenant = in.Bytes();
    const uint64_t offset = in.Varint();
    head.bytes = section(offset, in.Varint());
    out.heads.push_back(std::move(head));
  }
  const uint64_t offset = in.Varint();
  out.sealed_log = section(offset, in.Varint());
  if (!in.ok() || !in.AtEnd()) return bad("malformed directory");
  return out;
}

}  // namespace varve::roles
