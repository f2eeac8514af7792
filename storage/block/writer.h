#pragma once
// Writes one block file: the immutable samples of one (tenant, shard, time range), self-contained. Layout: FORMAT.md.
#include <memory>
#include <string>

#include "storage/base/status.h"
#include "storage/block/meta.h"
#include "storage/fs/file_system.h"
#include "storage/model/labels.h"
#include "storage/model/series_source.h"

namespace varve::block {

// One thread. Chunks go to the file as they come; what stays in memory is the index, some 100 bytes per series. The
// file appears under its name, whole and synced, in Finish; until then (also after a crash) there is only `path` +
// ".tmp", which the destructor removes and a later writer of the same path replaces.
class Writer {
 public:
  Writer(fs::FileSystem& fs, std::string path, BlockMeta meta);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Series in ascending order of their label sets, each once; InvalidArgument otherwise, or when a sample lies outside
  // meta.range. A series without samples is skipped. After an error the writer only gives that error again.
  absl::Status Add(model::LabelsView labels, model::SeriesHash hash, const model::SampleColumns& samples);
  // Writes the index, syncs, renames into place, syncs the folder. The finished block's meta.
  absl::StatusOr<BlockMeta> Finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace varve::block
