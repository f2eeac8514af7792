#pragma once
// One shard of this process' recent data: a thread, its log, the heads of all tenants, their sealed chunks and the
// blocks cut from them.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "server/roles/mailbox.h"
#include "server/roles/shard_files.h"
#include "storage/base/clock.h"
#include "storage/base/log.h"
#include "storage/base/metrics.h"
#include "storage/base/strings.h"
#include "storage/base/worker_pool.h"
#include "storage/block/reader.h"
#include "storage/head/head.h"
#include "storage/head/sealed_log.h"
#include "storage/model/limits.h"
#include "storage/model/write_batch.h"
#include "storage/model/write_result.h"
#include "storage/wal/writer.h"

namespace varve::roles {

enum class WalSync { kAlways, kInterval, kNone };

struct ShardConfig {
  std::string folder;
  uint32_t index = 0;
  uint64_t hash_seed = 0;
  WalSync wal_sync = WalSync::kInterval;
  int64_t wal_sync_interval_ms = 100;
  uint64_t wal_segment_bytes = 64u << 20;
  int64_t checkpoint_interval_ms = 5 * 60 * 1000;
  uint64_t checkpoint_wal_bytes = 192u << 20;  // so much log also makes a checkpoint due
  int64_t cut_interval_ms = 2 * 3600 * 1000;
  int64_t idle_cut_interval_ms = 10 * 60 * 1000;  // a cut for the sake of ended series comes not more often than this
  int64_t idle_after_ms = 60 * 60 * 1000;
  int64_t out_of_order_window_ms = 10 * 60 * 1000;  // the largest of all tenants
  int64_t retention_ms = 0;                         // 0 = for ever
  size_t mailbox_tasks = 4096;
};

// Shared by all shards.
struct ShardMetrics {
  base::Counter &samples, &histograms, &exemplars, &duplicates, &out_of_order, &series_created, &series_forgotten;
  base::Counter &log_failures, &mailbox_full;
  base::Counter &checkpoints, &checkpoint_failures, &cuts, &cut_failures, &blocks_removed;
  base::Counter &replayed_records, &damaged_log_ranges;
  base::Histogram &checkpoint_seconds, &cut_seconds;
  explicit ShardMetrics(base::Registry& registry);
};

// What starting found and lost.
struct RecoveryReport {
  uint64_t series = 0, records = 0, blocks = 0;
  std::vector<std::string> losses;  // one sentence each; empty when nothing was lost
  int64_t checkpoint_ms = 0, replay_ms = 0;
};

class Shard {
 public:
  using Task = Mailbox<Shard>::Task;
  using Done = std::function<void(absl::Status, model::WriteResult)>;

  // Recovers what the folder holds. The references must outlive the shard; `maintenance` runs the slow file work.
  static absl::StatusOr<std::unique_ptr<Shard>> Open(const ShardConfig& config, fs::FileSystem& fs,
                                                     const base::Clock& clock, const base::Logger& log,
                                                     base::WorkerPool& maintenance, ShardMetrics& metrics,
                                                     wal::WriterMetrics& wal_metrics);
  // Runs what is in the mailbox, writes a checkpoint when `Stop` was not asked to hurry, joins the thread.
  ~Shard();
  void Start();
  void Stop(bool checkpoint);

  Mailbox<Shard>& mailbox() { return mailbox_; }
  const RecoveryReport& recovery() const { return recovery_; }

  // ---- From tasks only, on the shard's thread ----

  struct Write {
    std::string_view tenant;  // holds until `done` was called
    const model::WriteBatch* batch;
    std::span<const uint32_t> which;
    bool metadata = false;  // this shard keeps the batch's metadata
    const model::Limits* limits;
    model::SeriesGate* gate;
  };
  // Calls `done` once the samples are as safe as wal_sync says. Unavailable: the log cannot be written now.
  void Append(const Write& write, Done done);
  std::vector<std::string> Tenants() const;             // that have a head here
  const head::Head* FindHead(std::string_view tenant);  // null when the tenant has nothing here
  std::vector<std::shared_ptr<const block::Reader>> BlocksOf(std::string_view tenant) const;
  // That the manifest names and that could not be opened. Of an unknown tenant (the manifest was lost) for everyone.
  std::vector<BlockEntry> MissingBlocksOf(std::string_view tenant) const;
  // Cuts everything into blocks now, also what is not sealed yet; `done` when they are published.
  void Cut(std::function<void(absl::Status)> done);
  void Checkpoint(std::function<void(absl::Status)> done);

  // ---- Any thread ----
  uint64_t active_series() const { return active_series_.load(std::memory_order_relaxed); }
  uint64_t head_bytes() const { return head_bytes_.load(std::memory_order_relaxed); }
  uint64_t wal_bytes() const { return wal_->bytes_on_disk(); }
  uint64_t block_count() const { return block_count_.load(std::memory_order_relaxed); }
  uint64_t block_bytes() const { return block_bytes_.load(std::memory_order_relaxed); }
  uint64_t sealed_bytes() const { return sealed_bytes_.load(std::memory_order_relaxed); }
  int64_t last_checkpoint_ms() const { return last_checkpoint_ms_.load(std::memory_order_relaxed); }

 private:
  struct TenantHead {
    uint32_t ref;
    std::string name;
    std::unique_ptr<head::Head> head;
  };
  struct Block {
    BlockEntry entry;
    std::shared_ptr<const block::Reader> reader;
  };
  // A checkpoint that is being taken in slices between other work.
  struct CheckpointRun {
    std::unique_ptr<CheckpointWriter> writer;
    CheckpointEntry entry;
    std::vector<std::string> tenants;  // in the order of their sections
    size_t next = 0;
    bool started = false;  // of tenants[next]
    std::string buffer;
    int64_t begun_ns = 0;
    uint64_t for_floor = 0;      // of the PendingFloor that was there when it began
    uint64_t sync_failures = 0;  // until it began; it has what those were for
    std::vector<std::function<void(absl::Status)>> waiters;
  };
  struct CutRun {
    uint64_t below = 0;
    int64_t begun_ns = 0;
    std::vector<std::pair<std::string, std::vector<head::SlotInfo>>> idle;  // by tenant
    std::vector<std::function<void(absl::Status)>> waiters;
    bool everything = false;    // tails as well, however young
    bool only_if_idle = false;  // given up when too few series have ended
    enum class Phase { kIdle, kSeal, kWrite } phase = Phase::kIdle;
    std::vector<std::string> tenants;
    size_t next = 0;
    size_t cursor = 0;
  };
  // Blocks are published, but chunks below `floor` must stay until no kept checkpoint needs them.
  struct PendingFloor {
    uint64_t floor = 0;
    int checkpoints_left = 2;
    int64_t not_before_ns = 0;  // until then a late sample may have to be compared with what was cut
    std::vector<std::pair<std::string, std::vector<head::SlotInfo>>> idle;
  };

  Shard(const ShardConfig& config, fs::FileSystem& fs, const base::Clock& clock, const base::Logger& log,
        base::WorkerPool& maintenance, ShardMetrics& metrics, wal::WriterMetrics& wal_metrics);

  absl::Status Recover();
  absl::Status RebuildManifest(std::string_view why);
  void Quarantine(const std::string& path, std::string_view name);
  absl::Status LoadNewestCheckpoint(wal::Position* replay_from);
  absl::Status LoadCheckpoint(const CheckpointEntry& entry);
  void Replay(wal::Position from);
  void OpenBlocks();
  void RemoveStrangers();

  void Run();
  void AfterTasks();
  void RunTimers();
  std::chrono::nanoseconds NextWait() const;
  bool Busy() const { return checkpoint_ != nullptr || (cut_ != nullptr && cut_->phase != CutRun::Phase::kWrite); }
  void Work();  // one slice of whatever runs in the background

  absl::StatusOr<TenantHead*> HeadFor(std::string_view tenant);
  TenantHead& AddHead(uint32_t ref, std::string_view tenant);
  head::LogPosition LogEnd() const;
  absl::Status WriteLog(std::string_view records);
  void SyncNow();

  void StartCheckpoint();
  void CheckpointSlice();
  void CheckpointWritten(absl::Status status);
  void FailCheckpoint(const absl::Status& status);
  void ApplyFloor();

  void StartCut(bool everything);
  void CutSlice();
  void WriteBlocks();
  void BlocksWritten(absl::Status status, std::vector<Block> blocks);
  void ForgetIdle(const std::vector<std::pair<std::string, std::vector<head::SlotInfo>>>& idle);

  void Retain();
  absl::Status WriteManifest();
  void Publish();  // numbers for other threads

  const ShardConfig config_;
  fs::FileSystem& fs_;
  const base::Clock& clock_;
  const base::Logger log_;
  base::WorkerPool& maintenance_;
  ShardMetrics& metrics_;
  wal::WriterMetrics& wal_metrics_;
  Mailbox<Shard> mailbox_;
  RecoveryReport recovery_;

  // All below: the shard's thread's.
  std::unique_ptr<wal::Writer> wal_;
  std::unique_ptr<head::SealedLog> sealed_;
  base::StringMap<std::unique_ptr<TenantHead>> heads_;
  std::vector<TenantHead*> heads_by_ref_;  // may hold nulls
  Manifest manifest_;
  std::vector<Block> blocks_;
  std::vector<BlockEntry> missing_blocks_;
  struct Ack {
    Done done;
    model::WriteResult result;
  };
  std::vector<Ack> acks_;  // waiting for a sync
  bool unsynced_ = false;
  // Not OK from a failed sync until a checkpoint has what it was for. Requests are refused with it meanwhile, those of
  // later segments included: their samples lean on series and tenants that the log may have lost.
  absl::Status doubt_;
  uint64_t sync_failures_ = 0;
  std::unique_ptr<CheckpointRun> checkpoint_;
  std::unique_ptr<CheckpointRun> finished_checkpoint_;  // while the maintenance thread commits its file
  bool checkpoint_writing_ = false;
  std::unique_ptr<CutRun> cut_;
  std::unique_ptr<PendingFloor> pending_floor_;
  uint64_t cut_below_ = 0;  // sealed positions that blocks have since this start
  std::vector<std::function<void(absl::Status)>> checkpoint_waiters_, cut_waiters_;
  int64_t next_sync_ns_ = 0, next_checkpoint_ns_ = 0, next_cut_ns_ = 0, next_idle_ns_ = 0, next_minute_ns_ = 0;
  uint64_t bytes_since_checkpoint_ = 0;
  bool checkpoint_failed_ = false;
  bool stopping_ = false;

  std::atomic<uint64_t> active_series_{0}, head_bytes_{0}, block_count_{0}, block_bytes_{0}, sealed_bytes_{0};
  std::atomic<int64_t> last_checkpoint_ms_{0};
  std::thread thread_;
};

}  // namespace varve::roles
