#include "server/roles/ingester.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "ingest/admit/admission.h"
#include "server/roles/tenant_source.h"
#include "storage/base/bytes.h"
#include "storage/base/crc32c.h"
#include "storage/model/labels.h"

namespace varve::roles {

namespace {

// What makes a data directory one: the seed of the series hashes and the number of shards. Text, so that an operator
// can look at it; written once.
struct Identity {
  uint64_t hash_seed = 0;
  uint32_t shards = 0;
};
constexpr std::string_view kIdentityHeader = "varve data directory, format 1";

std::string EncodeIdentity(const Identity& identity) {
  std::string out =
      base::StrCat(kIdentityHeader, "\nhash_seed ", identity.hash_seed, "\nshards ", identity.shards, "\n");
  base::StrAppend(out, "crc32c ", base::Crc32c(out), "\n");
  return out;
}

absl::StatusOr<Identity> DecodeIdentity(std::string_view text, std::string_view path) {
  Identity identity;
  const auto bad = [&](std::string_view what) {
    return absl::DataLossError(base::StrCat(path, ": ", what, "; the file is needed to read the data directory"));
  };
  const auto lines = base::StrSplit(text, '\n');
  if (lines.size() != 5 || lines[0] != kIdentityHeader) return bad("not a data directory of this version");
  const auto number = [&](std::string_view line, std::string_view key) -> std::optional<uint64_t> {
    if (!line.starts_with(key)) return std::nullopt;
    return base::ParseUint64(line.substr(key.size()));
  };
  const auto seed = number(lines[1], "hash_seed ");
  const auto shards = number(lines[2], "shards ");
  const auto crc = number(lines[3], "crc32c ");
  if (!seed || !shards || !crc) return bad("malformed");
  if (*crc != base::Crc32c(text.substr(0, text.find("crc32c ")))) return bad("checksum mismatch");
  if (*shards == 0 || *shards > Ingester::kShardsMax) return bad("impossible number of shards");
  identity.hash_seed = *seed;
  identity.shards = static_cast<uint32_t>(*shards);
  return identity;
}

absl::StatusOr<Identity> LoadOrMakeIdentity(fs::FileSystem& fs, const std::string& data_dir, uint32_t shards) {
  const std::string path = data_dir + "/IDENTITY";
  auto text = fs.ReadAll(path);
  if (text.ok()) return DecodeIdentity(*text, path);
  if (!absl::IsNotFound(text.status())) return text.status();
  // It is written before any shard. A new seed would make what the shards hold unreadable.
  if (const auto shards_there = fs.List(data_dir + "/shards"); shards_there.ok() && !shards_there->empty()) {
    return absl::FailedPreconditionError(
        base::StrCat(path, " is missing, and ", data_dir,
                     "/shards cannot be read without it: put the file back, or move the folder away to start empty"));
  }
  Identity identity;
  identity.shards = shards;
  if (getrandom(&identity.hash_seed, sizeof identity.hash_seed, 0) != sizeof identity.hash_seed) {
    return base::ErrnoStatus(errno, "getrandom");
  }
  RETURN_IF_ERROR(fs::WriteWhole(fs, path, EncodeIdentity(identity)));
  return identity;
}

// The limit counts a tenant's series on all shards; a head knows its own.
class ProcessWideGate : public model::SeriesGate {
 public:
  ProcessWideGate(const model::Limits& limits, uint64_t elsewhere) : admission_(limits), elsewhere_(elsewhere) {}
  bool Admit(model::LabelsView labels, uint64_t active_series, uint64_t samples, model::WriteResult& result) override {
    return admission_.Admit(labels, active_series + elsewhere_, samples, result);
  }

 private:
  admit::Admission admission_;
  const uint64_t elsewhere_;
};

// A request on its way through the shards.
struct Pending {
  std::shared_ptr<model::WriteBatch> batch;
  std::shared_ptr<const model::Limits> limits;
  std::vector<std::vector<uint32_t>> which;  // by shard
  Ingester::Done done;
  base::Mutex mu;
  absl::Status status ABSL_GUARDED_BY(mu);
  model::WriteResult result ABSL_GUARDED_BY(mu);
  size_t left ABSL_GUARDED_BY(mu) = 0;

  void Finish(const absl::Status& part, const model::WriteResult& part_result) {
    absl::Status whole;
    model::WriteResult whole_result;
    {
      base::MutexLock lock(mu);
      result.MergeFrom(part_result);
      if (!part.ok()) status = part;
      if (--left > 0) return;
      whole = status;
      whole_result = std::move(result);
    }
    done(whole, std::move(whole_result));
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Ingester>> Ingester::Open(const IngesterConfig& config, fs::FileSystem& fs,
                                                         const base::Clock& clock, const base::Logger& log,
                                                         base::Registry& registry) {
  if (config.shards == 0 || config.shards > kShardsMax) {
    return absl::InvalidArgumentError(base::StrCat("head.shards: ", config.shards, " is not in 1 ... ", kShardsMax));
  }
  RETURN_IF_ERROR(fs.CreateFolders(config.data_dir));
  std::unique_ptr<Ingester> ingester(new Ingester());
  const std::string lock_path = config.data_dir + "/LOCK";
  ingester->lock_fd_ = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (ingester->lock_fd_ < 0) return base::ErrnoStatus(errno, lock_path);
  if (::flock(ingester->lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(base::StrCat(config.data_dir, ": in use by another process"));
  }
  ASSIGN_OR_RETURN(const Identity identity, LoadOrMakeIdentity(fs, config.data_dir, config.shards));
  if (identity.shards != config.shards) {
    log.Info("the data directory keeps its number of shards",
             {{"shards", identity.shards}, {"asked_for", config.shards}});
  }
  // A first start that was killed may leave some folders unmade, so this is no reason to refuse.
  if (const auto there = fs.List(config.data_dir + "/shards"); there.ok() && !there->empty()) {
    for (uint32_t i = 0; i < identity.shards; ++i) {
      const std::string name = base::StrCat(i);
      if (std::any_of(there->begin(), there->end(), [&](const fs::FileInfo& file) { return file.name == name; }))
        continue;
      ingester->losses_.push_back(base::StrCat(config.data_dir, "/shards/", i, " is missing, with all that it held"));
      log.Error("lost while recovering", {{"what", ingester->losses_.back()}});
    }
  }
  ingester->hash_seed_ = identity.hash_seed;
  ingester->metrics_ = std::make_unique<ShardMetrics>(registry);
  ingester->wal_metrics_ = std::make_unique<wal::WriterMetrics>(registry);
  ingester->maintenance_ = std::make_unique<base::WorkerPool>("varve-maint", 1, 1024);

  std::vector<absl::Status> statuses(identity.shards);
  ingester->shards_.resize(identity.shards);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < identity.shards; ++i) {
    threads.emplace_back([&, i] {
      ShardConfig shard = config.shard;
      shard.folder = base::StrCat(config.data_dir, "/shards/", i);
      shard.index = i;
      shard.hash_seed = identity.hash_seed;
      auto opened =
          Shard::Open(shard, fs, clock, log, *ingester->maintenance_, *ingester->metrics_, *ingester->wal_metrics_);
      statuses[i] = base::Annotate(opened.status(), base::StrCat("shard ", i));
      if (opened.ok()) ingester->shards_[i] = *std::move(opened);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) RETURN_IF_ERROR(status);
  for (auto& shard : ingester->shards_) shard->Start();

  Ingester* self = ingester.get();
  const auto sum = [self](uint64_t (Shard::*read)() const) {
    return [self, read] {
      uint64_t n = 0;
      for (const auto& shard : self->shards_) n += (shard.get()->*read)();
      return static_cast<double>(n);
    };
  };
  registry.AddGaugeFunction("varve_head_series", "Series in the heads.", {}, sum(&Shard::active_series));
  registry.AddGaugeFunction("varve_head_bytes", "Memory of the heads, estimated.", {}, sum(&Shard::head_bytes));
  registry.AddGaugeFunction("varve_head_sealed_bytes", "Sealed chunks that no block has yet, in memory and files.", {},
                            sum(&Shard::sealed_bytes));
  registry.AddGaugeFunction("varve_wal_bytes", "Size of the write-ahead logs on disk.", {}, sum(&Shard::wal_bytes));
  registry.AddGaugeFunction("varve_block_files", "Local block files.", {}, sum(&Shard::block_count));
  registry.AddGaugeFunction("varve_block_bytes", "Size of the local block files.", {}, sum(&Shard::block_bytes));
  registry.AddGaugeFunction("varve_ingester_shards", "Shards of this process.", {},
                            [self] { return static_cast<double>(self->shards_.size()); });
  registry.AddGaugeFunction("varve_ingester_mailbox_tasks", "Requests waiting in front of the shards.", {}, [self] {
    size_t n = 0;
    for (const auto& shard : self->shards_) n += shard->mailbox().size();
    return static_cast<double>(n);
  });

  RETURN_IF_ERROR(self->OnEachShard([&](Shard& shard, size_t i) {
    for (const std::string& name : shard.Tenants()) {
      self->TenantFor(name)->series[i] = shard.FindHead(name)->active_series();
    }
    return absl::OkStatus();
  }));
  return ingester;
}

Ingester::~Ingester() {
  Stop(false);
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

void Ingester::Stop(bool checkpoint) {
  if (stopped_) return;
  stopped_ = true;
  gate_.Close();
  std::vector<std::thread> threads;
  for (auto& shard : shards_) {
    if (shard != nullptr) threads.emplace_back([&shard, checkpoint] { shard->Stop(checkpoint); });
  }
  for (std::thread& thread : threads) thread.join();
  maintenance_.reset();  // its tasks point at the shards
}

std::shared_ptr<Ingester::Tenant> Ingester::TenantFor(std::string_view name) {
  base::MutexLock lock(tenants_mu_);
  if (const auto it = tenants_.find(name); it != tenants_.end()) return it->second;
  auto tenant = std::make_shared<Tenant>();
  tenant->name = name;
  tenants_.emplace(std::string(name), tenant);
  return tenant;
}

std::vector<std::string> Ingester::Tenants() const {
  std::vector<std::string> names;
  base::MutexLock lock(tenants_mu_);
  for (const auto& [name, tenant] : tenants_) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

// The hash decides the shard, so with several shards a label set must have one hash however it was written. Senders
// write canonical bytes but for rare ones, and those are found without taking a label set apart.
void Ingester::MakeCanonical(model::WriteBatch& batch) const {
  for (model::WriteBatch::Series& series : batch.series) {
    if (model::IsCanonical(series.labels)) [[likely]]
      continue;
    const auto labels = model::Labels::FromWire(series.labels);
    if (!labels.ok()) continue;  // any shard will refuse it
    batch.bodies.emplace_back(labels->bytes());
    series.labels = batch.bodies.back();
    series.hash = model::HashLabels(series.labels, hash_seed_);
  }
}

void Ingester::Push(std::string_view tenant_name, std::shared_ptr<model::WriteBatch> batch,
                    std::shared_ptr<const model::Limits> limits, model::WriteResult screened, Done done) {
  auto pass = std::make_shared<base::Gate::Pass>(gate_.Enter());
  if (!*pass) {
    done(absl::UnavailableError("the server is stopping"), model::WriteResult());
    return;
  }
  const size_t n = shards_.size();
  if (n > 1) MakeCanonical(*batch);
  auto pending = std::make_shared<Pending>();
  pending->which.resize(n);
  for (uint32_t i = 0; i < batch->series.size(); ++i) {
    pending->which[n == 1 ? 0 : ((batch->series[i].hash.high >> 32) * n) >> 32].push_back(i);
  }
  pending->done = std::move(done);
  pending->limits = std::move(limits);
  std::vector<size_t> used;
  for (size_t i = 0; i < n; ++i) {
    if (!pending->which[i].empty() || (i == 0 && !batch->metadata.empty())) used.push_back(i);
  }
  pending->batch = std::move(batch);
  if (used.empty()) {
    pending->done(absl::OkStatus(), std::move(screened));
    return;
  }
  {
    base::MutexLock lock(pending->mu);
    pending->result = std::move(screened);
    pending->left = used.size();
  }
  std::shared_ptr<Tenant> tenant = TenantFor(tenant_name);
  base::MutexLock order(order_mu_);
  for (size_t k = 0; k < used.size(); ++k) {
    if (shards_[used[k]]->mailbox().TryReserve()) continue;
    for (size_t j = 0; j < k; ++j) shards_[used[j]]->mailbox().Unreserve();
    metrics_->mailbox_full.Add();
    pending->done(absl::UnavailableError("too many requests are waiting for the storage"), model::WriteResult());
    return;
  }
  for (const size_t i : used) {
    shards_[i]->mailbox().PushReserved([pending, tenant, i, n, pass](Shard& shard) {
      uint64_t elsewhere = 0;
      for (size_t k = 0; k < n; ++k) {
        if (k != i) elsewhere += tenant->series[k].load(std::memory_order_relaxed);
      }
      ProcessWideGate gate(*pending->limits, elsewhere);
      Shard::Write write{tenant->name, pending->batch.get(), pending->which[i], i == 0, pending->limits.get(), &gate};
      shard.Append(write, [pending, pass](const absl::Status& status, const model::WriteResult& result) {
        pending->Finish(status, result);
      });
      if (const head::Head* head = shard.FindHead(tenant->name)) {
        tenant->series[i].store(head->active_series(), std::memory_order_relaxed);
      }
    });
  }
}

absl::Status Ingester::OnEachShard(const std::function<absl::Status(Shard&, size_t)>& task) const {
  const base::Gate::Pass pass = gate_.Enter();
  if (!pass) return absl::UnavailableError("the server is stopping");
  struct Wait {
    base::Mutex mu;
    base::CondVar finished;
    size_t left ABSL_GUARDED_BY(mu);
    absl::Status status ABSL_GUARDED_BY(mu);
  } wait;
  {
    base::MutexLock lock(wait.mu);
    wait.left = shards_.size();
  }
  {
    base::MutexLock order(order_mu_);
    for (size_t k = 0; k < shards_.size(); ++k) {
      if (shards_[k]->mailbox().TryReserve()) continue;
      for (size_t j = 0; j < k; ++j) shards_[j]->mailbox().Unreserve();
      return absl::UnavailableError("too many requests are waiting for the storage");
    }
    for (size_t i = 0; i < shards_.size(); ++i) {
      shards_[i]->mailbox().PushReserved([&wait, &task, i](Shard& shard) {
        const absl::Status status = task(shard, i);
        base::MutexLock lock(wait.mu);
        if (!status.ok()) wait.status = status;
        if (--wait.left == 0) wait.finished.NotifyAll();
      });
    }
  }
  base::MutexLock lock(wait.mu);
  while (wait.left > 0) wait.finished.Wait(wait.mu);
  return wait.status;
}

std::shared_ptr<const model::SeriesSource> Ingester::SourceFor(std::string_view tenant) {
  return std::make_shared<TenantSource>(*this, std::string(tenant));
}

absl::Status Ingester::Flush() {
  const base::Gate::Pass pass = gate_.Enter();
  if (!pass) return absl::UnavailableError("the server is stopping");
  struct Wait {
    base::Mutex mu;
    base::CondVar finished;
    size_t left ABSL_GUARDED_BY(mu) = 0;
    absl::Status status ABSL_GUARDED_BY(mu);
  } wait;
  {
    base::MutexLock lock(wait.mu);
    wait.left = shards_.size();
  }
  for (const auto& shard : shards_) {
    shard->mailbox().PushAlways([&wait](Shard& s) {
      s.Cut([&wait](const absl::Status& status) {
        base::MutexLock lock(wait.mu);
        if (!status.ok()) wait.status = status;
        if (--wait.left == 0) wait.finished.NotifyAll();
      });
    });
  }
  base::MutexLock lock(wait.mu);
  while (wait.left > 0) wait.finished.Wait(wait.mu);
  return wait.status;
}

uint64_t Ingester::active_series() const {
  uint64_t n = 0;
  for (const auto& shard : shards_) n += shard->active_series();
  return n;
}

std::vector<std::string> Ingester::RecoveryLosses() const {
  std::vector<std::string> out = losses_;
  for (const auto& shard : shards_) {
    for (const std::string& loss : shard->recovery().losses) out.push_back(loss);
  }
  return out;
}

}  // namespace varve::roles
