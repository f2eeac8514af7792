#pragma once
// The recent data of one tenant on one shard.
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/status.h"
#include "storage/head/sealed_log.h"
#include "storage/model/limits.h"
#include "storage/model/series_source.h"
#include "storage/model/write_batch.h"
#include "storage/model/write_result.h"
#include "storage/wal/format.h"
#include "storage/wal/position.h"

namespace varve::head {

// Where a record stands in the shard's log, as one ordered number: segment << 32 | offset in it. 0 is before
// everything.
using LogPosition = uint64_t;
inline LogPosition ToLogPosition(wal::Position p) { return p.segment << 32 | p.offset; }

// Writes framed log records (wal/records.h), all or nothing. Returns once they are in the log.
using WriteLog = std::function<absl::Status(std::string_view framed_records)>;

struct HeadConfig {
  uint32_t tenant_ref = 0;        // how log records name the tenant; the caller logs what it stands for
  uint64_t hash_seed = 0;         // for HashLabels, the data directory's
  size_t metadata_max = 100'000;  // metrics with metadata kept; later ones replace, new ones beyond are dropped
};

struct AppendContext {
  const model::Limits& limits;
  int64_t now_ms;
  model::SeriesGate& gate;
  const WriteLog& log;
};

struct HeadStats {
  uint64_t series = 0;                // active
  uint64_t columns = 0;               // open time columns
  uint64_t out_of_order_samples = 0;  // in side buffers
  uint64_t exemplars = 0, metadata = 0;
  uint64_t bytes = 0;             // estimate of the memory held, the shard's sealed log not included
  int64_t newest_ms = INT64_MIN;  // newest sample accepted
  // Since the head was made:
  uint64_t samples_total = 0, series_created_total = 0, series_forgotten_total = 0, chunks_sealed_total = 0;
};

// A series as a caller of CollectIdle sees it: only good for Forget.
struct SlotInfo {
  uint64_t series_id;
  uint64_t chain_position;  // of its newest sealed chunk; SealedLog::kNone when it has none
};

// Lives on its shard's thread; no method is thread-safe. What Select and Cut return may be read from any thread, and
// must not outlive the SealedLog's folder (it keeps files alive, not the disk) but may outlive the head. Invariant:
// within a series stored timestamps are distinct, however they arrived. Invariant: a sample can be read only once its
// record is in the log.
class Head {
 public:
  Head(const HeadConfig& config, SealedLog& sealed);
  ~Head();
  Head(const Head&) = delete;
  Head& operator=(const Head&) = delete;

  // -- Writing ------------------------------------------------------------------------------------------------------
  // Stores batch.series[i] for every i in `which` (ascending), exemplars of these series included; adds to `result`
  // what became of them. An error is the log's: then what was not yet logged is not stored, and `result` counts only
  // what was. The same bytes sent again are duplicates, so the caller may have the sender repeat everything.
  absl::Status Append(const model::WriteBatch& batch, std::span<const uint32_t> which, const AppendContext& context,
                      model::WriteResult& result);
  // Keeps the last metadata of each metric. Call it on one shard of the tenant.
  absl::Status AppendMetadata(std::span<const model::Metadata> metadata, const WriteLog& log,
                              model::WriteResult& result);

  // -- Starting again -----------------------------------------------------------------------------------------------
  // In this order: LoadCheckpoint at most once and on an empty head (the SealedLog was loaded from the same
  // checkpoint), then Apply in the order of the log, then writes and reads. DataLoss leaves the head unusable: make
  // another one and load an older checkpoint.
  absl::Status LoadCheckpoint(std::string_view bytes);
  // `type` and `payload` are of a record of this tenant at `at`. What the checkpoint has already is skipped. DataLoss
  // when the record makes no sense; the head stays usable.
  absl::Status Apply(wal::RecordType type, std::string_view payload, LogPosition at);

  // A checkpoint is taken in slices, so that writes go on in between. Append to `out` what the calls give, in order,
  // into one string or file; that is what LoadCheckpoint takes. `now`: position after the last record written to the
  // log. Log records before the position given to StartCheckpoint are not needed to recover from the finished
  // checkpoint. SealedLog::WriteCheckpoint comes after FinishCheckpoint of all heads of the shard.
  void StartCheckpoint(LogPosition now, std::string& out);
  bool CheckpointSlice(size_t series_max, LogPosition now, std::string& out);  // false: no series is left
  void FinishCheckpoint(LogPosition now, std::string& out);
  void AbandonCheckpoint();

  // -- Reading ------------------------------------------------------------------------------------------------------
  // The series that match as they are now, readable from any thread. Sorting and decoding happen there, not here.
  absl::StatusOr<std::unique_ptr<model::HashedSelection>> Select(const model::SelectRequest& request) const;
  absl::StatusOr<std::vector<std::string>> LabelNames(const model::SelectRequest& request) const;
  absl::StatusOr<std::vector<std::string>> LabelValues(std::string_view name,
                                                       const model::SelectRequest& request) const;
  absl::StatusOr<std::vector<model::ExemplarSeries>> Exemplars(const model::SelectRequest& request) const;
  std::vector<model::Metadata> MetadataFor(std::string_view metric) const;  // "" = all; sorted by metric
  absl::StatusOr<model::SourceStats> SourceStats(size_t limit) const;

  // -- Cutting and forgetting -----------------------------------------------------------------------------------------
  // A block is cut so: SealOlderThan in slices until it returns false; then, for all heads of the shard in one go,
  // StartCut(from = the last cut's `below`, below = sealed.end()); the caller reads what it gave elsewhere, writes and
  // publishes the blocks; then, when no late sample can be older than the cut, sealed.AdvanceFloor(below).
  // Seals tails and side buffers whose oldest sample is before `t_ms`. Visits `series_max` slots from `cursor` on,
  // which it moves; false when the end was reached.
  bool SealOlderThan(int64_t t_ms, size_t series_max, size_t* cursor);
  // The series that have sealed chunks in [from, below) of the sealed log and not below its floor; Read gives all of
  // these samples and no others. DataLoss when the bytes are bad.
  std::unique_ptr<model::HashedSelection> StartCut(uint64_t from, uint64_t below);

  // Seals and returns series that ended: their newest sample is a staleness marker, or older than now_ms - idle_ms. At
  // most `max` of them, from `cursor` on, which it moves (0 to begin; it wraps to 0 at the end).
  std::vector<SlotInfo> CollectIdle(int64_t now_ms, int64_t idle_ms, size_t max, size_t* cursor);
  // Forgets those of `idle` that got no samples since and whose chain is below the sealed log's floor (or empty). Logs
  // it first. Returns how many went.
  absl::StatusOr<size_t> Forget(std::span<const SlotInfo> idle, const WriteLog& log);

  // -- Watching -----------------------------------------------------------------------------------------------------
  uint64_t active_series() const;
  HeadStats stats() const;
  std::string DebugString() const;

  struct Impl;  // head_impl.h

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace varve::head
