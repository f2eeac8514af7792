#include "storage/block/selection.h"

#include <algorithm>

#include "storage/base/mutex.h"
#include "storage/base/strings.h"
#include "storage/block/chunk.h"
#include "storage/index/pair_map.h"

namespace varve::block {

namespace {

constexpr size_t kCheckEvery = 1024;  // series between two looks at the cancel flag and the budget

class BlockSelection final : public model::HashedSelection {
 public:
  BlockSelection(std::shared_ptr<const File> file, const model::SelectRequest& request)
      : file_(std::move(file)), range_(request.range), memory_(request.memory) {}
  ~BlockSelection() override {
    if (memory_ != nullptr) memory_->Release(charged_);
  }

  absl::Status Fill(const model::SelectRequest& request) {
    if (file_->series_count() == 0 || range_.empty() ||
        !range_.Overlaps(file_->meta().min_time_ms, file_->meta().max_time_ms)) {
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const index::Bitmap matching, index::Match(*file_, request.matchers, request.cancel));
    // To the number in labels_ plus one. Series have some ten labels, most of which they share.
    index::PairMap local(file_->pair_count(), matching.cardinality());
    File::SeriesCursor cursor(*file_);
    size_t seen = 0;
    for (const uint32_t series : matching) {
      if (++seen % kCheckEvery == 0) {
        if (request.cancel != nullptr) RETURN_IF_ERROR(request.cancel->Check());
        RETURN_IF_ERROR(ChargeFor(items_.capacity() * sizeof(Item) + pairs_.capacity() * sizeof(uint32_t) +
                                  chunks_.capacity() * sizeof(File::Chunk) + label_bytes_.capacity() +
                                  labels_.capacity() * sizeof(Label)));
      }
      RETURN_IF_ERROR(cursor.Seek(series));
      const size_t chunks_before = chunks_.size();
      RETURN_IF_ERROR(ChunksInRange(*file_, cursor.chunks(), range_, chunks_));
      if (chunks_.size() == chunks_before) continue;
      if (items_.size() >= request.series_max) {
        return absl::ResourceExhaustedError(base::StrCat("more than ", request.series_max, " series match"));
      }
      int64_t last_name = -1;
      for (const uint32_t pair : cursor.pairs()) {
        if (local[pair] == 0) RETURN_IF_ERROR(AddLabel(pair, local));
        const Label& label = labels_[local[pair] - 1];
        if (label.name <= last_name) return file_->Corrupt(0, base::StrCat("series ", series, " repeats a label name"));
        last_name = label.name;
        pairs_.push_back(local[pair] - 1);
      }
      items_.push_back({series, static_cast<uint32_t>(pairs_.size()), chunks_.size()});
    }
    return ChargeFor(items_.capacity() * sizeof(Item) + pairs_.capacity() * sizeof(uint32_t) +
                     chunks_.capacity() * sizeof(File::Chunk) + label_bytes_.capacity() +
                     labels_.capacity() * sizeof(Label));
  }

  size_t size() const override { return items_.size(); }
  model::SeriesHash hash(size_t i) const override { return file_->hash(items_[i].series); }

  model::Labels labels(size_t i) const override {
    std::string canonical;
    for (uint32_t at = i == 0 ? 0 : items_[i - 1].pairs_end; at < items_[i].pairs_end; ++at) {
      const Label& label = labels_[pairs_[at]];
      canonical.append(label_bytes_, label.offset, label.size);
    }
    return model::Labels(model::LabelsView(canonical));
  }

  absl::Status Read(size_t i, model::SampleColumns* out) const override {
    out->Clear();
    const size_t begin = i == 0 ? 0 : items_[i - 1].chunks_end;
    const std::span<const File::Chunk> chunks = std::span(chunks_).subspan(begin, items_[i].chunks_end - begin);
    ASSIGN_OR_RETURN(const std::shared_ptr<const Times> times, TimesOf(chunks));
    out->values.reserve(times->column->size());
    std::vector<int64_t> scratch;
    for (size_t c = 0; c < chunks.size(); ++c) {
      const Part& part = times->parts[c];
      if (part.begin == part.end) continue;
      ASSIGN_OR_RETURN(const std::string_view payload, file_->ReadChunk(chunks[c]));
      scratch.clear();
      if (ChunkNeedsTimes(payload)) RETURN_IF_ERROR(file_->ReadColumn(chunks[c].column, scratch));
      const absl::Status status = DecodeChunk(payload, scratch, part.count, part.begin, part.end, *out);
      if (!status.ok()) return file_->Corrupt(chunks[c].offset, base::Message(status));
    }
    out->times = times->column;
    return absl::OkStatus();
  }

 private:
  struct Item {
    uint32_t series;
    uint32_t pairs_end;
    size_t chunks_end;
  };
  struct Label {
    size_t offset;  // into label_bytes_
    uint32_t size;
    int64_t name;
  };
  struct Part {
    uint32_t begin, end, count;  // what of a chunk's samples is in the range
  };
  struct Times {
    model::TimeColumn column;
    std::vector<Part> parts;  // one per chunk
  };

  absl::Status AddLabel(uint32_t pair, index::PairMap& local) {
    const size_t name = file_->name_of(pair);
    std::string value;
    RETURN_IF_ERROR(file_->ReadPair(name, pair, value).status());
    model::LabelsBuilder builder;
    builder.Append(file_->names()[name].name, value);
    const model::Labels label = std::move(builder).Build();
    labels_.push_back({label_bytes_.size(), static_cast<uint32_t>(label.bytes().size()), static_cast<int64_t>(name)});
    label_bytes_.append(label.bytes());
    local[pair] = static_cast<uint32_t>(labels_.size());
    return absl::OkStatus();
  }

  absl::Status ChargeFor(size_t bytes) {
    const auto more = static_cast<int64_t>(bytes) - charged_;
    if (memory_ == nullptr || more <= 0) return absl::OkStatus();
    if (!memory_->TryCharge(more)) return absl::ResourceExhaustedError("the selected series need too much memory");
    charged_ += more;
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<const Times>> TimesOf(std::span<const File::Chunk> chunks) const {
    std::vector<uint32_t> key(chunks.size());
    for (size_t c = 0; c < chunks.size(); ++c) key[c] = chunks[c].column;
    {
      base::MutexLock lock(mu_);
      const auto it = times_.find(key);
      if (it != times_.end()) return it->second;
    }
    auto times = std::make_shared<Times>();
    auto all = std::make_shared<std::vector<int64_t>>();
    std::vector<int64_t> column;
    for (const uint32_t number : key) {
      RETURN_IF_ERROR(file_->ReadColumn(number, column));
      const auto begin = std::upper_bound(column.begin(), column.end(), range_.after_ms);
      const auto end = std::upper_bound(begin, column.end(), range_.until_ms);
      times->parts.push_back({static_cast<uint32_t>(begin - column.begin()),
                              static_cast<uint32_t>(end - column.begin()), static_cast<uint32_t>(column.size())});
      if (all->empty()) all->reserve(static_cast<size_t>(end - begin) * key.size());
      all->insert(all->end(), begin, end);
    }
    const auto bytes =
        static_cast<int64_t>(all->capacity() * sizeof(int64_t) + key.size() * (sizeof(Part) + sizeof(uint32_t)));
    if (memory_ != nullptr && !memory_->TryCharge(bytes)) {
      return absl::ResourceExhaustedError("the timestamps of the selected series need too much memory");
    }
    times->column = std::move(all);
    base::MutexLock lock(mu_);
    if (memory_ != nullptr) charged_ += bytes;
    return times_.try_emplace(std::move(key), std::move(times)).first->second;
  }

  const std::shared_ptr<const File> file_;
  const model::TimeRange range_;
  base::MemoryBudget* const memory_;
  std::vector<Item> items_;  // with flat lists behind them
  std::vector<uint32_t> pairs_;
  std::vector<File::Chunk> chunks_;
  std::vector<Label> labels_;  // those that occur
  std::string label_bytes_;    // canonical
  mutable base::Mutex mu_;     // leaf
  mutable absl::flat_hash_map<std::vector<uint32_t>, std::shared_ptr<const Times>> times_ ABSL_GUARDED_BY(mu_);
  mutable int64_t charged_ = 0;  // after Fill: only under mu_
};

}  // namespace

absl::Status ChunksInRange(const File& file, const std::vector<File::Chunk>& chunks, const model::TimeRange& range,
                           std::vector<File::Chunk>& out) {
  int64_t last = 0;
  for (size_t c = 0; c < chunks.size(); ++c) {
    ASSIGN_OR_RETURN(const File::Column column, file.column(chunks[c].column));
    if (c > 0 && column.first <= last)
      return file.Corrupt(chunks[c].offset, "chunks of a series are not in time order");
    last = column.last;
    if (range.Overlaps(column.first, column.last)) out.push_back(chunks[c]);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<model::HashedSelection>> SelectFrom(std::shared_ptr<const File> file,
                                                                   const model::SelectRequest& request) {
  auto selection = std::make_unique<BlockSelection>(std::move(file), request);
  RETURN_IF_ERROR(selection->Fill(request));
  return std::unique_ptr<model::HashedSelection>(std::move(selection));
}

}  // namespace varve::block
