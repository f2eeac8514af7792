#pragma once
// An open block file: what its sections say, bounds-checked.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/bytes.h"
#include "storage/base/status.h"
#include "storage/block/format.h"
#include "storage/block/meta.h"
#include "storage/fs/file_system.h"
#include "storage/index/match.h"
#include "storage/model/labels.h"

namespace varve::block {

// Immutable; any thread. Every error is DataLoss.
class File final : public index::PostingsView {
 public:
  struct Column {
    uint64_t offset;
    uint32_t size, count;
    int64_t first, last;
  };
  struct Chunk {
    uint32_t column;
    uint32_t size;
    uint64_t offset;
  };
  struct Name {
    std::string name;
    uint32_t first_pair, pairs, first_group;
  };
  struct Pair {
    uint64_t series;
    uint64_t postings_offset, postings_size;
  };

  static absl::StatusOr<std::shared_ptr<const File>> Open(std::unique_ptr<fs::MappedFile> mapped, std::string path);

  const std::string& path() const { return path_; }
  const BlockMeta& meta() const { return meta_; }
  uint32_t series_count() const { return static_cast<uint32_t>(meta_.series); }
  uint32_t column_count() const { return column_count_; }
  uint32_t pair_count() const { return pair_count_; }
  const std::vector<Name>& names() const { return names_; }
  size_t name_of(uint32_t pair) const;  // index into names()

  absl::StatusOr<Column> column(uint32_t i) const;
  absl::Status ReadColumn(uint32_t i, std::vector<int64_t>& times) const;  // checks that it is what the index says
  absl::StatusOr<std::string_view> ReadChunk(const Chunk& chunk) const;    // the payload, its CRC checked
  model::SeriesHash hash(uint32_t series) const;
  // Of pair `pair`, whose name is names()[name]: value (built in `value`) and where its postings are.
  absl::StatusOr<Pair> ReadPair(size_t name, uint32_t pair, std::string& value) const;
  // Calls `visit(pair id, value, Pair)` for pairs [begin, end) of names()[name]; ids as in the whole file.
  template <class Visit>
  absl::Status ForEachPair(size_t name, uint32_t begin, uint32_t end, Visit&& visit) const;
  absl::Status ReadPostings(const Pair& pair, std::vector<uint32_t>& series) const;
  absl::Status Corrupt(uint64_t offset, std::string_view what) const;

  // Walks series records in ascending order; one that is far ahead is reached through its group.
  class SeriesCursor {
   public:
    explicit SeriesCursor(const File& file) : file_(file), in_({}) {}
    // `series` must not be smaller than the one before.
    absl::Status Seek(uint32_t series);
    const std::vector<uint32_t>& pairs() const { return pairs_; }
    const std::vector<Chunk>& chunks() const { return chunks_; }

   private:
    absl::Status Next();
    const File& file_;
    base::ByteReader in_;
    uint32_t next_ = 0;
    bool begun_ = false;
    uint64_t offset_ = 0, column_ = 0;
    std::vector<uint32_t> pairs_;
    std::vector<Chunk> chunks_;
  };

  // --- index::PostingsView: names by position in names(), values by their number within the name.
  index::Bitmap All() const override;
  std::optional<uint32_t> FindName(std::string_view name) const override;
  uint32_t value_count(uint32_t name) const override { return names_[name].pairs; }
  absl::StatusOr<std::optional<uint32_t>> FindValue(uint32_t name, std::string_view value) const override;
  absl::Status ScanValues(uint32_t name, std::string_view prefix,
                          const std::function<absl::StatusOr<bool>(std::string_view)>& accept,
                          std::vector<uint32_t>& out) const override;
  uint64_t Count(uint32_t name, uint32_t value) const override;
  absl::Status AddPostings(uint32_t name, uint32_t value, index::Union& out) const override;
  absl::StatusOr<std::string_view> ValueOf(uint32_t series, uint32_t name, std::string& scratch) const override;

 private:
  struct Bounds {
    uint64_t offset = 0, size = 0;
  };
  absl::Status ParseFooter();
  absl::Status ParseNames();
  std::string_view bytes() const { return mapped_->bytes(); }
  std::string_view section(Section kind) const {
    const Bounds& at = sections_[static_cast<size_t>(kind)];
    return bytes().substr(at.offset, at.size);
  }
  uint64_t section_offset(Section kind) const { return sections_[static_cast<size_t>(kind)].offset; }
  // The bytes of group `group` of name `name` on to the end of its section.
  absl::StatusOr<std::string_view> PairGroup(uint32_t group) const;
  // Number, within the name, of the group whose first value is the last one not above `value`.
  absl::StatusOr<uint32_t> GroupFor(uint32_t name, std::string_view value) const;

  std::unique_ptr<fs::MappedFile> mapped_;
  std::string path_;
  BlockMeta meta_;
  Bounds sections_[kSectionCount + 1];
  uint64_t data_end_ = 0;
  uint32_t column_count_ = 0, pair_count_ = 0;
  std::vector<Name> names_;
};

template <class Visit>
absl::Status File::ForEachPair(size_t name, uint32_t begin, uint32_t end, Visit&& visit) const {
  const Name& n = names_[name];
  std::string value;
  for (uint32_t group = begin / kPairsPerGroup; group * kPairsPerGroup < end; ++group) {
    ASSIGN_OR_RETURN(const std::string_view bytes, PairGroup(n.first_group + group));
    base::ByteReader in(bytes);
    uint64_t postings = in.Varint();
    value.clear();
    const uint32_t group_end = std::min(n.pairs, (group + 1) * kPairsPerGroup);
    for (uint32_t i = group * kPairsPerGroup; i < group_end && i < end; ++i) {
      const uint64_t shared = in.Varint();
      const std::string_view rest = in.Bytes();
      const uint64_t series = in.Varint();
      const uint64_t size = in.Varint();
      if (!in.ok() || shared > value.size() || rest.empty() || size > section(Section::kPostings).size() ||
          postings > section(Section::kPostings).size() - size) {
        return Corrupt(section_offset(Section::kPairs), "bad label value");
      }
      value.resize(shared);
      value += rest;
      if (i >= begin) RETURN_IF_ERROR(visit(n.first_pair + i, std::string_view(value), Pair{series, postings, size}));
      postings += size;
    }
  }
  return absl::OkStatus();
}

}  // namespace varve::block
