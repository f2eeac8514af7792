#pragma once
// Series of a head as they were at one moment. Filled on the shard's thread, then read from any.
#include <absl/container/flat_hash_map.h>

#include <memory>
#include <mutex>
#include <vector>

#include "storage/base/cancel.h"
#include "storage/base/mutex.h"
#include "storage/head/head_impl.h"
#include "storage/model/series_source.h"

namespace varve::head {

class Snapshot : public model::HashedSelection {
 public:
  struct Entry {
    model::SeriesHash hash;
    index::LabelList labels;
    uint64_t chain = 0;
    uint64_t last_bits = 0;
    size_t words = kConstant;  // values of the tail in words_, or kConstant: all are last_bits
    uint32_t slot = 0, generation = 0;
    uint32_t column = 0;  // into tail_columns_
    uint32_t mask = 0;
    uint32_t extra = kNoExtra;  // into extras_
    bool histogram_tail = false;
  };
  struct Extra {
    std::vector<Point> side;
    std::vector<HistogramPtr> histograms;
    std::vector<int64_t> starts;
  };
  static constexpr size_t kConstant = SIZE_MAX;
  static constexpr uint32_t kNoExtra = UINT32_MAX;

  // Chunks before `from`, and those at or after `below`, are left out.
  Snapshot(model::TimeRange range, index::Pin pin, SealedView sealed, uint64_t from, uint64_t below,
           base::MemoryBudget* memory)
      : range_(range), pin_(std::move(pin)), sealed_(std::move(sealed)), from_(from), below_(below), memory_(memory) {}
  ~Snapshot() override;

  size_t size() const override { return entries_.size(); }
  model::Labels labels(size_t i) const override;
  model::SeriesHash hash(size_t i) const override { return At(i).hash; }
  absl::Status Read(size_t i, model::SampleColumns* out) const override;

 private:
  friend struct Head::Impl;
  using Times = model::TimeColumn;

  // A stretch of samples on one column: a chunk or the tail.
  struct Piece {
    uint64_t identity = 0;  // of the column within this snapshot
    const std::vector<int64_t>* column = nullptr;
    uint32_t mask = 0;
    uint32_t count = 0;
    std::string_view payload;         // of a chunk
    const uint64_t* words = nullptr;  // of the tail; null: constant
    uint64_t constant = 0;
    bool is_tail = false;
  };
  struct Bounds {
    uint8_t begin, end;
  };
  // What series on the same columns share.
  struct Layout {
    Times times;
    std::vector<Bounds> bounds;  // per piece: the values in the range
    bool ascending = true;
  };

  const Entry& At(size_t i) const;
  absl::StatusOr<const std::vector<int64_t>*> ColumnAt(uint64_t position) const;
  std::shared_ptr<const Layout> LayoutOf(const std::vector<Piece>& pieces) const;
  Times Intern(std::vector<int64_t> times) const;
  absl::Status Walk(const Entry& e, std::vector<ChunkView>* newest_first, bool* plain) const;
  absl::Status FirstTime(const ChunkView& chunk, int64_t* first) const;
  absl::Status ReadPlain(const Entry& e, const std::vector<ChunkView>& newest_first, model::SampleColumns* out,
                         bool* done) const;
  absl::Status ReadMerged(const Entry& e, const std::vector<ChunkView>& newest_first, model::SampleColumns* out) const;
  absl::Status AppendPoints(const ChunkView& chunk, std::vector<Point>& out) const;

  const model::TimeRange range_;
  const index::Pin pin_;
  const SealedView sealed_;
  const uint64_t from_, below_;
  base::MemoryBudget* const memory_;
  int64_t charged_ = 0;
  std::vector<Entry> entries_;
  std::vector<uint64_t> words_;
  std::vector<std::vector<int64_t>> tail_columns_;
  std::vector<Extra> extras_;

  mutable std::once_flag sorted_;
  mutable std::vector<uint32_t> order_;
  mutable base::Mutex mu_;  // leaf
  // Nodes never move or go, so pointers to what is in them hold without the lock.
  mutable absl::flat_hash_map<uint64_t, std::unique_ptr<const std::vector<int64_t>>> columns_ ABSL_GUARDED_BY(mu_);
  mutable absl::flat_hash_map<std::vector<uint64_t>, std::shared_ptr<const Layout>> layouts_ ABSL_GUARDED_BY(mu_);
  mutable absl::flat_hash_map<uint64_t, std::vector<Times>> interned_ ABSL_GUARDED_BY(mu_);  // by hash of the content
};

}  // namespace varve::head
