#pragma once
// Reads one block file. Immutable: any thread, several at once.
#include <memory>
#include <string>

#include "storage/base/status.h"
#include "storage/block/meta.h"
#include "storage/fs/file_system.h"
#include "storage/model/series_source.h"

namespace varve::block {

// Opening maps the file and checks header, footer and index by their CRCs, but reads no chunk: its cost does not grow
// with the samples. A chunk is checked when it is read. Whatever the bytes are, errors are DataLoss naming file and
// offset.
//
// Selections and their columns may outlive the reader: they hold the mapped file. The reader has no exemplars and no
// metadata; those calls give nothing.
class Reader : public model::SeriesSource {
 public:
  static absl::StatusOr<std::shared_ptr<const Reader>> Open(fs::FileSystem& fs, const std::string& path);
  // Of bytes in memory, for tests and remote files; `name` is for messages.
  static absl::StatusOr<std::shared_ptr<const Reader>> OpenBytes(std::string bytes, std::string name);
  ~Reader() override;

  const BlockMeta& meta() const;
  const std::string& path() const;

  // The series that match and have a chunk that overlaps the range.
  absl::StatusOr<std::unique_ptr<model::HashedSelection>> SelectHashed(const model::SelectRequest& request) const;
  absl::StatusOr<std::unique_ptr<model::Selection>> Select(const model::SelectRequest& request) const override;
  // Of series that match; the time range counts only if matchers are given.
  absl::StatusOr<std::vector<std::string>> LabelNames(const model::SelectRequest& request) const override;
  absl::StatusOr<std::vector<std::string>> LabelValues(std::string_view name,
                                                       const model::SelectRequest& request) const override;
  absl::StatusOr<std::vector<model::ExemplarSeries>> Exemplars(const model::SelectRequest& request) const override;
  std::vector<model::Metadata> MetadataFor(std::string_view metric) const override;
  absl::StatusOr<model::SourceStats> Stats(size_t limit) const override;

  // Reads everything: every checksum, every chunk decoded and compared with what the index says about it.
  absl::Status Verify() const;
  std::string DebugString() const;

 private:
  struct Impl;
  explicit Reader(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

// Opens and verifies.
absl::Status Verify(fs::FileSystem& fs, const std::string& path);

}  // namespace varve::block
