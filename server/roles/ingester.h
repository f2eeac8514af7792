#pragma once
// The ingester role: recent data of all tenants on the shards of this process. Writes are split over the shards by
// series hash; reads see all shards as of one moment.
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/roles/shard.h"
#include "storage/base/gate.h"
#include "storage/base/mutex.h"
#include "storage/base/strings.h"
#include "storage/fs/file_system.h"
#include "storage/model/series_source.h"

namespace varve::roles {

struct IngesterConfig {
  std::string data_dir;
  uint32_t shards = 1;  // of a new data directory; an old one keeps the number that it was made with
  ShardConfig shard;    // folder, index and hash_seed are filled in
};

class Ingester {
 public:
  static constexpr uint32_t kShardsMax = 256;
  using Done = std::function<void(absl::Status, model::WriteResult)>;

  // Recovers what the data directory holds, shards at the same time. FailedPrecondition when another process uses it.
  static absl::StatusOr<std::unique_ptr<Ingester>> Open(const IngesterConfig& config, fs::FileSystem& fs,
                                                        const base::Clock& clock, const base::Logger& log,
                                                        base::Registry& registry);
  ~Ingester();
  // Refuses new work, finishes what runs. With a checkpoint the next start has nothing to replay. Once.
  void Stop(bool checkpoint);

  // Stores the batch; `done` is called once, from a shard's thread. Unavailable: not (all) stored, the same bytes may
  // be sent again. The batch, limits and gate must hold until then.
  void Push(std::string_view tenant, std::shared_ptr<model::WriteBatch> batch,
            std::shared_ptr<const model::Limits> limits, model::WriteResult screened, Done done);

  // What the tenant has stored here. Never null; a tenant that never wrote has nothing. Valid until Stop.
  std::shared_ptr<const model::SeriesSource> SourceFor(std::string_view tenant);
  std::vector<std::string> Tenants() const;

  // Cuts everything into blocks. Blocks the caller.
  absl::Status Flush();

  uint64_t hash_seed() const { return hash_seed_; }
  uint64_t active_series() const;
  std::vector<std::string> RecoveryLosses() const;

  // Runs `task` on every shard as of one moment between writes and waits. `task(shard, i)` fills what it likes;
  // different shards run at the same time. Unavailable when a mailbox is full or the ingester stops.
  absl::Status OnEachShard(const std::function<absl::Status(Shard&, size_t)>& task) const;

 private:
  struct Tenant {
    std::string name;
    std::array<std::atomic<uint64_t>, kShardsMax> series{};  // active, by shard
  };
  Ingester() = default;
  std::shared_ptr<Tenant> TenantFor(std::string_view name);
  void MakeCanonical(model::WriteBatch& batch) const;

  uint64_t hash_seed_ = 0;
  std::vector<std::string> losses_;  // of whole shards
  int lock_fd_ = -1;
  std::unique_ptr<ShardMetrics> metrics_;
  std::unique_ptr<wal::WriterMetrics> wal_metrics_;
  std::unique_ptr<base::WorkerPool> maintenance_;
  std::vector<std::unique_ptr<Shard>> shards_;
  // Held while one request, or one read, is put into the mailboxes of all its shards: thus all shards agree which came
  // first, and a read sees each request whole or not at all.
  mutable base::Mutex order_mu_;
  mutable base::Gate gate_;
  mutable base::Mutex tenants_mu_;  // leaf
  base::StringMap<std::shared_ptr<Tenant>> tenants_ ABSL_GUARDED_BY(tenants_mu_);
  bool stopped_ = false;
};

}  // namespace varve::roles
