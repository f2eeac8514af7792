#include "storage/head/sealed_log.h"

#include <algorithm>
#include <cstring>

#include "storage/base/bytes.h"
#include "storage/base/check.h"
#include "storage/base/crc32c.h"
#include "storage/base/strings.h"

namespace varve::head {

namespace {

constexpr size_t kFrameBytesMax = 10 + 4;  // size, checksum
constexpr uint32_t kCheckpointVersion = 1;

char* PutVarint(char* p, uint64_t v) {
  for (; v >= 0x80; v >>= 7) *p++ = static_cast<char>(v | 0x80);
  *p++ = static_cast<char>(v);
  return p;
}

}  // namespace

absl::Status SealedLogConfig::Validate() const {
  if (block_bytes < 4096) return absl::InvalidArgumentError("sealed log: block_bytes must be at least 4096");
  return absl::OkStatus();
}

SealedBlock::SealedBlock(uint64_t first, size_t capacity)
    : first_(first), capacity_(capacity), memory_(std::make_unique_for_overwrite<char[]>(capacity)) {
  data_ = memory_.get();
}

SealedBlock::SealedBlock(uint64_t first, std::unique_ptr<fs::MappedFile> file)
    : first_(first), capacity_(file->bytes().size()), data_(file->bytes().data()), file_(std::move(file)) {}

SealedBlock::~SealedBlock() = default;

void SealedBlock::Forget() const {
  if (file_ != nullptr) file_->Forget(0, capacity_);
}

absl::StatusOr<std::string_view> SealedView::Read(uint64_t position) const {
  const auto& list = blocks_->list;
  auto it = std::upper_bound(list.begin(), list.end(), position,
                             [](uint64_t p, const std::shared_ptr<const SealedBlock>& b) { return p < b->first(); });
  const auto bad = [&](std::string_view what) {
    return absl::DataLossError(base::StrCat(blocks_->folder, ": sealed record at ", position, ": ", what));
  };
  if (position >= end_ || it == list.begin()) return bad("no such position");
  const SealedBlock& block = **--it;
  const uint64_t readable = std::min<uint64_t>(block.capacity(), end_ - block.first());
  const uint64_t offset = position - block.first();
  if (offset >= readable) return bad("beyond its block");
  base::ByteReader in(std::string_view(block.data() + offset, readable - offset));
  const std::string_view body = in.Bytes();
  const auto crc = in.Fixed<uint32_t>();
  if (!in.ok() || body.empty()) return bad("truncated");
  if (base::Crc32c(body) != crc) return bad("checksum mismatch");
  return body;
}

absl::StatusOr<std::unique_ptr<SealedLog>> SealedLog::Open(fs::FileSystem& fs, std::string folder,
                                                           const SealedLogConfig& config) {
  RETURN_IF_ERROR(config.Validate());
  RETURN_IF_ERROR(fs.CreateFolders(folder));
  return std::unique_ptr<SealedLog>(new SealedLog(fs, std::move(folder), config));
}

SealedLog::SealedLog(fs::FileSystem& fs, std::string folder, const SealedLogConfig& config)
    : fs_(fs), folder_(std::move(folder)), config_(config) {
  Clear();
}

std::string SealedLog::PathOf(uint64_t first) const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string name(16, '0');
  for (size_t i = 0; i < 16; ++i) name[15 - i] = kDigits[(first >> (4 * i)) & 15];
  return base::StrCat(folder_, "/", name, ".log");
}

void SealedLog::Clear() {
  blocks_.clear();
  sizes_.clear();
  unsynced_.clear();
  floor_ = 0;
  end_ = kFirst;
  file_bytes_ = 0;
  OpenBlock(config_.block_bytes);
}

void SealedLog::OpenBlock(size_t capacity) {
  blocks_.push_back(std::make_shared<SealedBlock>(end_, capacity));
  sizes_.push_back(0);
  Publish();
}

void SealedLog::Publish() {
  auto blocks = std::make_shared<SealedView::Blocks>();
  blocks->folder = folder_;
  blocks->list.assign(blocks_.begin(), blocks_.end());
  published_ = std::move(blocks);
}

SealedView SealedLog::view() const {
  SealedView view;
  view.blocks_ = published_;
  view.floor_ = floor_;
  view.end_ = end_;
  return view;
}

uint64_t SealedLog::Reserve(size_t body_bytes_max) {
  const size_t need = body_bytes_max + kFrameBytesMax;
  if (sizes_.back() + need <= blocks_.back()->capacity()) return end_;
  // A block that stays in memory because its disk is full is tried again later; nothing is lost meanwhile.
  Flush().IgnoreError();
  WriteOut(blocks_.size() - 1).IgnoreError();
  OpenBlock(std::max(config_.block_bytes, need));
  return end_;
}

uint64_t SealedLog::Append(std::string_view body) {
  VARVE_CHECK(!body.empty());
  const uint64_t position = Reserve(body.size());
  SealedBlock& block = *blocks_.back();
  char* const begin = block.memory_.get() + sizes_.back();
  char* p = PutVarint(begin, body.size());
  std::memcpy(p, body.data(), body.size());
  p += body.size();
  const uint32_t crc = base::Crc32c(body);
  std::memcpy(p, &crc, sizeof crc);
  p += sizeof crc;
  const auto written = static_cast<size_t>(p - begin);
  sizes_.back() += written;
  end_ += written;
  return position;
}

absl::Status SealedLog::WriteOut(size_t i) {
  SealedBlock& block = *blocks_[i];
  if (block.mapped() || sizes_[i] == 0) return absl::OkStatus();
  const std::string path = PathOf(block.first());
  auto created = fs_.Create(path);
  if (absl::IsAlreadyExists(created.status())) {  // left by an attempt that failed, or by an earlier life
    RETURN_IF_ERROR(fs_.Remove(path));
    created = fs_.Create(path);
  }
  if (!created.ok()) return created.status();
  std::unique_ptr<fs::AppendFile> file = std::move(created).value();
  absl::Status status = file->Append({block.data(), sizes_[i]});
  absl::StatusOr<std::unique_ptr<fs::MappedFile>> mapped = nullptr;
  if (status.ok()) {
    mapped = fs_.Map(path);
    status = mapped.status();
  }
  if (status.ok() && (*mapped)->bytes() != std::string_view(block.data(), sizes_[i])) {
    status = absl::DataLossError(base::StrCat(path, ": reads back other bytes than were written"));
  }
  if (!status.ok()) {
    file.reset();
    fs_.Remove(path).IgnoreError();
    return status;
  }
  blocks_[i] = std::make_shared<SealedBlock>(block.first(), std::move(mapped).value());
  unsynced_.push_back(std::move(file));
  folder_dirty_ = true;
  file_bytes_ += sizes_[i];
  Publish();
  return absl::OkStatus();
}

absl::Status SealedLog::Flush() {
  absl::Status status;
  for (size_t i = 0; i + 1 < blocks_.size(); ++i) {
    if (blocks_[i]->mapped()) {
      blocks_[i]->Forget();
    } else if (status.ok()) {
      status = WriteOut(i);
    }
  }
  return status;
}

void SealedLog::AdvanceFloor(uint64_t position) {
  VARVE_CHECK(position <= end_);
  if (position <= floor_) return;
  floor_ = position;
  size_t gone = 0;
  while (gone + 1 < blocks_.size() && blocks_[gone]->first() + sizes_[gone] <= floor_) {
    if (blocks_[gone]->mapped()) {
      // A file that cannot be removed is found again, and removed, when the next life loads its checkpoint.
      fs_.Remove(PathOf(blocks_[gone]->first())).IgnoreError();
      file_bytes_ -= sizes_[gone];
    }
    ++gone;
  }
  if (gone == 0) return;
  blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<ptrdiff_t>(gone));
  sizes_.erase(sizes_.begin(), sizes_.begin() + static_cast<ptrdiff_t>(gone));
  Publish();
}

absl::Status SealedLog::StartEmpty() {
  Clear();
  ASSIGN_OR_RETURN(const std::vector<fs::FileInfo> files, fs_.List(folder_));
  for (const fs::FileInfo& file : files) {
    if (!file.is_folder && file.name.ends_with(".log"))
      RETURN_IF_ERROR(fs_.Remove(base::StrCat(folder_, "/", file.name)));
  }
  return absl::OkStatus();
}

absl::Status SealedLog::WriteCheckpoint(std::string& out) {
  RETURN_IF_ERROR(Flush());
  for (const auto& file : unsynced_) RETURN_IF_ERROR(file->Sync());
  unsynced_.clear();
  if (folder_dirty_) RETURN_IF_ERROR(fs_.SyncFolder(folder_));
  folder_dirty_ = false;
  std::string body;
  base::PutFixed(body, kCheckpointVersion);
  base::PutFixed(body, floor_);
  base::PutVarint(body, blocks_.size());
  for (size_t i = 0; i < blocks_.size(); ++i) {
    base::PutVarint(body, blocks_[i]->first());
    base::PutVarint(body, sizes_[i]);
  }
  body.append(blocks_.back()->data(), sizes_.back());
  base::PutFixed<uint64_t>(out, body.size());
  base::PutFixed(out, base::Crc32c(body));
  out += body;
  return absl::OkStatus();
}

absl::Status SealedLog::LoadCheckpoint(std::string_view bytes) {
  Clear();
  base::ByteReader in(bytes);
  const auto size = in.Fixed<uint64_t>();
  const auto crc = in.Fixed<uint32_t>();
  const std::string_view body = in.Take(size);
  if (!in.ok() || !in.AtEnd() || base::Crc32c(body) != crc)
    return absl::DataLossError("sealed log checkpoint: damaged");
  base::ByteReader fields(body);
  if (fields.Fixed<uint32_t>() != kCheckpointVersion)
    return absl::FailedPreconditionError("sealed log checkpoint: other version");
  uint64_t floor = fields.Fixed<uint64_t>();
  const uint64_t count = fields.Varint();
  std::vector<std::pair<uint64_t, uint64_t>> blocks;
  for (uint64_t i = 0; i < count && fields.ok(); ++i) {
    const uint64_t first = fields.Varint();
    blocks.emplace_back(first, fields.Varint());
  }
  bool sane = fields.ok() && !blocks.empty() && fields.left() == blocks.back().second;
  for (size_t i = 0; sane && i + 1 < blocks.size(); ++i) {
    sane = blocks[i].first + blocks[i].second == blocks[i + 1].first;
  }
  if (!sane || blocks[0].first < kFirst) return absl::DataLossError("sealed log checkpoint: makes no sense");

  std::vector<std::shared_ptr<SealedBlock>> mapped;
  std::vector<size_t> sizes;
  uint64_t file_bytes = 0;
  for (size_t i = 0; i + 1 < blocks.size(); ++i) {
    auto file = fs_.Map(PathOf(blocks[i].first));
    if (absl::IsNotFound(file.status()) && mapped.empty()) {
      // It went when a later floor, which this checkpoint does not know of, passed it.
      floor = std::max(floor, blocks[i + 1].first);
      continue;
    }
    if (absl::IsNotFound(file.status())) {
      return absl::DataLossError(base::StrCat("sealed log: ", base::Message(file.status())));
    }
    if (!file.ok()) return base::Annotate(file.status(), "sealed log");
    if ((*file)->bytes().size() != blocks[i].second) {
      return absl::DataLossError(
          base::StrCat(PathOf(blocks[i].first), ": ", (*file)->bytes().size(), " bytes, want ", blocks[i].second));
    }
    mapped.push_back(std::make_shared<SealedBlock>(blocks[i].first, std::move(file).value()));
    sizes.push_back(blocks[i].second);
    file_bytes += blocks[i].second;
  }
  ASSIGN_OR_RETURN(const std::vector<fs::FileInfo> files, fs_.List(folder_));
  for (const fs::FileInfo& file : files) {
    const std::string path = base::StrCat(folder_, "/", file.name);
    const bool known =
        std::any_of(mapped.begin(), mapped.end(), [&](const auto& b) { return PathOf(b->first()) == path; });
    if (!file.is_folder && file.name.ends_with(".log") && !known) RETURN_IF_ERROR(fs_.Remove(path));
  }
  blocks_ = std::move(mapped);
  sizes_ = std::move(sizes);
  file_bytes_ = file_bytes;
  floor_ = floor;
  end_ = blocks.back().first;
  const std::string_view open = fields.Take(blocks.back().second);
  OpenBlock(std::max(config_.block_bytes, open.size()));
  std::memcpy(blocks_.back()->memory_.get(), open.data(), open.size());
  sizes_.back() = open.size();
  end_ += open.size();
  return absl::OkStatus();
}

uint64_t SealedLog::memory_bytes() const {
  uint64_t bytes = 0;
  for (const auto& block : blocks_) bytes += block->mapped() ? 0 : block->capacity();
  return bytes;
}

uint64_t SealedLog::file_bytes() const { return file_bytes_; }

size_t SealedLog::blocks_waiting() const {
  size_t n = 0;
  for (size_t i = 0; i + 1 < blocks_.size(); ++i) n += blocks_[i]->mapped() ? 0 : 1;
  return n;
}

std::string SealedLog::DebugString() const {
  return base::StrCat("sealed log ", folder_, ": [", floor_, ", ", end_, ") in ", blocks_.size(), " blocks, ",
                      memory_bytes(), " bytes in memory, ", file_bytes_, " in files, ", blocks_waiting(), " waiting");
}

}  // namespace varve::head
