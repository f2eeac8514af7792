#pragma once
// The parts of a head and how they hang together; each is done in the file that is named beside it.
#include <absl/container/flat_hash_map.h>

#include <bit>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/strings.h"
#include "storage/head/chunk.h"
#include "storage/head/exemplars.h"
#include "storage/head/head.h"
#include "storage/head/series_table.h"
#include "storage/head/slab.h"
#include "storage/head/time_column.h"
#include "storage/index/index.h"
#include "storage/wal/records.h"

namespace varve::head {

// A sample on its own, away from the columns.
struct Point {
  int64_t t = 0;
  uint64_t bits = 0;       // of a histogram its sum
  int64_t start = 0;       // 0: unknown
  HistogramPtr histogram;  // null: a float
};

// What series with histograms have on the side, as long as their newest sample is one or their tail has some.
struct HistogramTail {
  HistogramPtr last;               // newest in-order one, as stored
  std::vector<HistogramPtr> tail;  // in mask order while kHistogramTail
};

// What has been decided and not been logged yet.
struct Step {
  struct StagedHistogram {
    uint64_t id;
    int64_t t, start;
    HistogramPtr histogram;
  };
  struct StagedExemplar {
    uint64_t id;
    model::Exemplar exemplar;
  };
  std::vector<uint64_t> ids;  // floats, in columns
  std::vector<int64_t> times, starts;
  std::vector<double> values;
  bool any_start = false;
  std::vector<StagedHistogram> histograms;
  std::vector<StagedExemplar> exemplars;
  std::vector<uint32_t> created;  // slots
  uint64_t duplicate_floats = 0, duplicate_histograms = 0, out_of_order = 0, repeated_exemplars = 0;

  bool empty() const { return ids.empty() && histograms.empty() && exemplars.empty() && created.empty(); }
  void Clear();
};

struct Head::Impl {
  Impl(const HeadConfig& c, SealedLog& s) : config(c), sealed(s) {}

  // tail.cc: in-order samples, and what becomes of full tails.
  void AppendFloat(uint32_t slot, Series& s, int64_t t, uint64_t bits, int64_t start);
  void AppendHistogram(uint32_t slot, Series& s, int64_t t, HistogramPtr histogram, int64_t start);
  void SealTail(uint32_t slot, Series& s);
  void Place(uint32_t slot, Series& s, int64_t t);  // makes t the newest position of the tail
  void PlaceElsewhere(uint32_t slot, Series& s, int64_t t);
  void NoteStart(uint32_t slot, Series& s, uint32_t count_before, int64_t start);
  void RecordColumn(uint32_t column, uint32_t positions);
  void TailTimes(const Series& s, std::vector<int64_t>& out) const;
  template <class Encode>
  void AppendChunk(Series& s, size_t bytes_guess, Encode encode_at);

  // out_of_order.cc: the side buffers.
  std::optional<Point> FindAt(uint32_t slot, const Series& s, int64_t t) const;
  std::optional<Point> FindInTail(uint32_t slot, const Series& s, int64_t t) const;
  std::optional<Point> FindInChain(uint32_t slot, const Series& s, int64_t t) const;
  void InsertSide(uint32_t slot, Series& s, Point point);
  void SealSide(uint32_t slot, Series& s);
  void DropSide(uint32_t slot, Series& s);

  // append.cc
  absl::Status Append(const model::WriteBatch& batch, std::span<const uint32_t> which, const AppendContext& context,
                      model::WriteResult& result);
  absl::Status Flush(const AppendContext& context, model::WriteResult& result);
  void Commit(int64_t now_ms);
  void CommitFloat(uint32_t slot, Series& s, int64_t t, uint64_t bits, int64_t start);
  void CommitHistogram(uint32_t slot, Series& s, int64_t t, HistogramPtr histogram, int64_t start);
  void Undo();

  // replay.cc
  absl::Status Apply(wal::RecordType type, std::string_view payload, LogPosition at);
  absl::Status ApplySeries(std::string_view payload, LogPosition at);
  absl::Status ApplyFloats(std::string_view payload, LogPosition at);
  absl::Status ApplyHistograms(std::string_view payload, LogPosition at);
  absl::Status ApplyForget(std::string_view payload, LogPosition at);
  Series* Replayable(uint64_t id, LogPosition at);  // null: not there, or the checkpoint has the record already
  void EndReplay();

  // checkpoint.cc, load.cc
  bool CheckpointSlice(size_t series_max, LogPosition now, std::string& out);
  absl::Status LoadCheckpoint(std::string_view bytes);
  absl::Status LoadSlice(std::string_view body, const std::vector<index::PairId>& pairs,
                         absl::flat_hash_map<uint64_t, uint32_t>& columns_by_serial);

  // select.cc
  struct Capture;
  absl::StatusOr<std::unique_ptr<model::HashedSelection>> Select(const model::SelectRequest& request) const;
  std::unique_ptr<model::HashedSelection> StartCut(uint64_t from, uint64_t below) const;
  bool MayHave(const model::TimeRange& range) const {
    return !range.empty() && newest_ms > range.after_ms && oldest_ms <= range.until_ms;
  }

  // forget.cc
  void RemoveSeries(std::span<const uint32_t> slots);

  const HeadConfig config;
  SealedLog& sealed;
  SeriesTable table;
  TimeColumns columns;
  Slab values;
  index::Index index;
  absl::flat_hash_map<uint32_t, HistogramTail> histograms;
  absl::flat_hash_map<uint32_t, std::vector<int64_t>> starts;  // of tails with kStartTimes, in mask order
  absl::flat_hash_map<uint32_t, std::vector<Point>> sides;     // of series with kSide, ascending in time
  ExemplarRing exemplars;
  base::StringMap<model::Metadata> metadata;
  uint64_t exemplars_max = 100'000;  // the last request's limit

  wal::RecordBuilder builder;
  Step step;
  HeadStats totals;  // the counters of it
  int64_t oldest_ms = INT64_MAX, newest_ms = INT64_MIN;
  uint64_t side_samples = 0;

  // Restart: slots with an index into slice_positions (0: none), so that records the checkpoint has are skipped.
  bool replaying = false;
  std::vector<uint32_t> slice_of_slot;
  std::vector<LogPosition> slice_positions{0};
  std::vector<std::pair<uint32_t, uint64_t>> loaded_next;  // columns and the serials of what follows them
  LogPosition loaded_end = 0;                              // exemplars and metadata before it are loaded
  wal::SeriesDecoder series_decoder;
  wal::FloatsDecoder floats_decoder;

  // Checkpoint in progress.
  bool checkpointing = false;
  uint32_t checkpoint_cursor = 0;

  // Scratch, kept for its capacity.
  std::string body, scratch;
  std::vector<double> scratch_values;
  std::vector<int64_t> scratch_times;
  std::vector<const model::SeriesHash*> scratch_hashes;
  std::vector<uint32_t> scratch_slots;
};

// After a restart the floor may stand before where it stood: then chunks are met again that a block has, and columns
// that they need may be gone. Chunks that were sealed after a cut never need a column from before it, so a missing
// column means that the chunk, and all before it, have been cut.
inline bool IsCut(const ChunkView& chunk, const SealedView& view) {
  return (chunk.header.flags & kChunkInlineTimes) == 0 && chunk.header.column < view.first();
}

// Appends to the sealed log what `encode_at(position)` puts into `body`, and makes it the end of the series' chain.
// Bodies hold distances from where they stand, so the place must be known before; room for the guess is made, and a
// guess that was too small is corrected.
template <class Encode>
void Head::Impl::AppendChunk(Series& s, size_t bytes_guess, Encode encode_at) {
  for (;;) {
    const uint64_t position = sealed.Reserve(bytes_guess);
    body.clear();
    encode_at(position);
    if (body.size() <= bytes_guess) break;
    bytes_guess = body.size() + 64;
  }
  s.chain = sealed.Append(body);
  ++totals.chunks_sealed_total;
}

template <class F>
void ForEachBit(uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(static_cast<uint32_t>(std::countr_zero(mask)));
}

}  // namespace varve::head
