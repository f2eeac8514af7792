#include "server/roles/shard.h"

#include <pthread.h>

#include <algorithm>
#include <future>
#include <utility>

#include "storage/block/writer.h"
#include "storage/wal/reader.h"
#include "storage/wal/records.h"

namespace varve::roles {

namespace {
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kRetryAfterFailureNs = 30 * kSecond;
// What one slice of background work may take out of the mailbox's time: a few hundred microseconds each.
constexpr size_t kCheckpointSeriesPerSlice = 2048;
constexpr size_t kSealSeriesPerSlice = 4096;
constexpr size_t kIdlePerSlice = 2048;
constexpr size_t kCheckpointBufferBytes = 1 << 20;

// Whether bytes are bad for good. Anything else (no permission, an I/O error) may pass, or is for an operator to mend:
// starting without the file would lose what it holds.
bool IsDamage(const absl::Status& status) { return absl::IsDataLoss(status) || absl::IsNotFound(status); }

absl::Status AsUnavailable(const absl::Status& status) {
  return absl::UnavailableError(base::StrCat("write-ahead log: ", base::Message(status)));
}
}  // namespace

ShardMetrics::ShardMetrics(base::Registry& r)
    : samples(r.AddCounter("varve_ingester_samples_total", "Float samples stored, exact duplicates included.")),
      histograms(r.AddCounter("varve_ingester_histograms_total", "Native histogram samples stored.")),
      exemplars(r.AddCounter("varve_ingester_exemplars_total", "Exemplars stored.")),
      duplicates(r.AddCounter("varve_ingester_duplicate_samples_total", "Samples that were stored already.")),
      out_of_order(r.AddCounter("varve_ingester_out_of_order_samples_total",
                                "Samples stored although older than their series' newest.")),
      series_created(r.AddCounter("varve_head_series_created_total", "Series that entered a head.")),
      series_forgotten(r.AddCounter("varve_head_series_forgotten_total", "Ended series that left a head.")),
      log_failures(r.AddCounter("varve_ingester_log_failures_total",
                                "Write requests refused because the log could not be written.")),
      mailbox_full(
          r.AddCounter("varve_ingester_mailbox_full_total", "Requests refused because a shard had too many waiting.")),
      checkpoints(r.AddCounter("varve_ingester_checkpoints_total", "Checkpoints written.")),
      checkpoint_failures(r.AddCounter("varve_ingester_checkpoint_failures_total", "Checkpoints that failed.")),
      cuts(r.AddCounter("varve_ingester_cuts_total", "Cuts of sealed samples into block files.")),
      cut_failures(r.AddCounter("varve_ingester_cut_failures_total", "Cuts that failed.")),
      blocks_removed(r.AddCounter("varve_ingester_blocks_removed_total", "Block files removed by retention.")),
      replayed_records(r.AddCounter("varve_wal_replayed_records_total", "Log records read at start.")),
      damaged_log_ranges(
          r.AddCounter("varve_wal_damaged_ranges_total", "Parts of the log that could not be read at start.")),
      checkpoint_seconds(r.AddHistogram("varve_ingester_checkpoint_seconds", "Duration of a checkpoint.",
                                        base::Histogram::LatencySeconds())),
      cut_seconds(
          r.AddHistogram("varve_ingester_cut_seconds", "Duration of a cut.", base::Histogram::LatencySeconds())) {}

Shard::Shard(const ShardConfig& config, fs::FileSystem& fs, const base::Clock& clock, const base::Logger& log,
             base::WorkerPool& maintenance, ShardMetrics& metrics, wal::WriterMetrics& wal_metrics)
    : config_(config),
      fs_(fs),
      clock_(clock),
      log_(log.With({"shard", config.index})),
      maintenance_(maintenance),
      metrics_(metrics),
      wal_metrics_(wal_metrics),
      mailbox_(config.mailbox_tasks) {}

absl::StatusOr<std::unique_ptr<Shard>> Shard::Open(const ShardConfig& config, fs::FileSystem& fs,
                                                   const base::Clock& clock, const base::Logger& log,
                                                   base::WorkerPool& maintenance, ShardMetrics& metrics,
                                                   wal::WriterMetrics& wal_metrics) {
  std::unique_ptr<Shard> shard(new Shard(config, fs, clock, log, maintenance, metrics, wal_metrics));
  RETURN_IF_ERROR(shard->Recover());
  return shard;
}

Shard::~Shard() {
  if (thread_.joinable()) Stop(false);
}

void Shard::Start() {
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), base::StrCat("varve-shard-", config_.index).c_str());
}

void Shard::Stop(bool checkpoint) {
  std::promise<absl::Status> finished;
  const bool sent = mailbox_.PushAlways([&, checkpoint](Shard& shard) {
    shard.stopping_ = true;
    if (checkpoint) {
      shard.Checkpoint([&finished](absl::Status status) { finished.set_value(std::move(status)); });
    } else {
      finished.set_value(absl::OkStatus());
    }
  });
  if (sent) {
    if (const absl::Status status = finished.get_future().get(); !status.ok()) {
      log_.Warn("no checkpoint at shutdown, the next start replays more", {{"error", base::Message(status)}});
    }
  }
  mailbox_.Close();
  if (thread_.joinable()) thread_.join();
}

// ---- Recovery ------------------------------------------------------------------------------------------------------

absl::Status Shard::Recover() {
  for (const char* sub : {"checkpoints", "blocks", "wal", "sealed", "quarantine"}) {
    RETURN_IF_ERROR(fs_.CreateFolders(base::StrCat(config_.folder, "/", sub)));
  }
  const auto bytes = fs_.ReadAll(config_.folder + "/MANIFEST");
  if (bytes.ok()) {
    auto manifest = Manifest::Decode(*bytes);
    if (manifest.ok()) {
      manifest_ = *std::move(manifest);
    } else if (absl::IsFailedPrecondition(manifest.status())) {
      return manifest.status();  // a newer program wrote it: hands off
    } else {
      RETURN_IF_ERROR(RebuildManifest(base::StrCat("unreadable (", base::Message(manifest.status()), ")")));
    }
  } else if (absl::IsNotFound(bytes.status())) {
    RETURN_IF_ERROR(RebuildManifest("missing"));
  } else {
    return bytes.status();
  }

  ASSIGN_OR_RETURN(sealed_, head::SealedLog::Open(fs_, config_.folder + "/sealed", head::SealedLogConfig()));
  const int64_t begun = clock_.MonotonicNs();
  wal::Position replay_from;
  RETURN_IF_ERROR(LoadNewestCheckpoint(&replay_from));
  recovery_.checkpoint_ms = (clock_.MonotonicNs() - begun) / 1'000'000;
  OpenBlocks();

  const int64_t replay_begun = clock_.MonotonicNs();
  Replay(replay_from);
  recovery_.replay_ms = (clock_.MonotonicNs() - replay_begun) / 1'000'000;

  wal::WriterConfig wal_config;
  wal_config.segment_bytes = config_.wal_segment_bytes;
  wal_config.first_segment =
      std::max<uint64_t>(replay_from.segment, 1);  // even if the folder was lost, numbers never go back
  ASSIGN_OR_RETURN(wal_, wal::Writer::Open(fs_, config_.folder + "/wal", wal_config, clock_, wal_metrics_));
  wal::RecordBuilder builder;
  builder.Begin();
  for (const TenantHead* head : heads_by_ref_) {
    if (head != nullptr) builder.AddTenant(head->ref, head->name);
  }
  if (const std::string_view preamble = builder.Finish(); !preamble.empty()) wal_->AddPreamble(preamble);
  RemoveStrangers();

  for (const auto& [name, head] : heads_) recovery_.series += head->head->active_series();
  recovery_.blocks = blocks_.size();
  for (const std::string& loss : recovery_.losses) log_.Error("lost while recovering", {{"what", loss}});
  log_.Info("shard recovered", {{"series", recovery_.series},
                                {"tenants", heads_.size()},
                                {"blocks", recovery_.blocks},
                                {"records", recovery_.records},
                                {"checkpoint_ms", recovery_.checkpoint_ms},
                                {"replay_ms", recovery_.replay_ms},
                                {"losses", recovery_.losses.size()}});
  const int64_t now = clock_.MonotonicNs();
  next_checkpoint_ns_ = now + config_.checkpoint_interval_ms * 1'000'000;
  next_cut_ns_ = now + config_.cut_interval_ms * 1'000'000;
  next_idle_ns_ = now + config_.idle_cut_interval_ms * 1'000'000;
  next_minute_ns_ = now + kSecond;
  next_sync_ns_ = now;
  // What was replayed is replayed again after the next crash, unless a checkpoint has it.
  bytes_since_checkpoint_ = recovery_.records > 0 ? wal_->bytes_on_disk() : 0;
  Publish();
  return absl::OkStatus();
}

// Takes what the folders hold. Says nothing when they hold nothing, as in a new data directory.
absl::Status Shard::RebuildManifest(std::string_view why) {
  manifest_.sealed_floor = Manifest::kUnknown;
  ASSIGN_OR_RETURN(const auto checkpoints, fs_.List(config_.folder + "/checkpoints"));
  for (const fs::FileInfo& file : checkpoints) {
    const auto sequence = base::ParseUint64(std::string_view(file.name).substr(0, file.name.find('.')));
    if (!sequence || !file.name.ends_with(".ckpt")) continue;
    manifest_.checkpoints.insert(manifest_.checkpoints.begin(), {*sequence, wal::Position{}});
    manifest_.next_sequence = std::max(manifest_.next_sequence, *sequence + 1);
  }
  if (manifest_.checkpoints.size() > 2) manifest_.checkpoints.resize(2);
  ASSIGN_OR_RETURN(const auto blocks, fs_.List(config_.folder + "/blocks"));
  for (const fs::FileInfo& file : blocks) {
    const auto sequence = base::ParseUint64(std::string_view(file.name).substr(0, file.name.find('.')));
    if (!sequence || !file.name.ends_with(".block")) continue;
    manifest_.blocks.push_back({*sequence, "", 0, 0, clock_.NowMs()});
    manifest_.next_sequence = std::max(manifest_.next_sequence, *sequence + 1);
  }
  if (!manifest_.checkpoints.empty() || !manifest_.blocks.empty()) {
    recovery_.losses.push_back(
        base::StrCat("the manifest is ", why, "; checkpoints and blocks were taken from their folders"));
  }
  return absl::OkStatus();
}

// Keeps a file that this program cannot use for whoever can.
void Shard::Quarantine(const std::string& path, std::string_view name) {
  const std::string to = base::StrCat(config_.folder, "/quarantine/", name);
  const absl::Status status = fs_.Rename(path, to);
  if (status.ok()) {
    log_.Warn("an unreadable file was put aside", {{"file", path}, {"to", to}});
  } else if (!absl::IsNotFound(status)) {
    log_.Warn("an unreadable file could not be put aside", {{"file", path}, {"error", base::Message(status)}});
  }
}

absl::Status Shard::LoadNewestCheckpoint(wal::Position* replay_from) {
  *replay_from = wal::Position{};
  for (size_t i = 0; i < manifest_.checkpoints.size(); ++i) {
    const CheckpointEntry entry = manifest_.checkpoints[i];
    const absl::Status status = LoadCheckpoint(entry);
    if (status.ok()) {
      if (sealed_->floor() > manifest_.sealed_floor) {
        recovery_.losses.push_back(base::StrCat("files of sealed samples below position ", sealed_->floor(),
                                                " are missing; no block has those samples"));
        manifest_.sealed_floor = sealed_->floor();
      }
      *replay_from = entry.replay_from;
      manifest_.checkpoints.erase(manifest_.checkpoints.begin(), manifest_.checkpoints.begin() + static_cast<long>(i));
      return absl::OkStatus();
    }
    if (!IsDamage(status)) return base::Annotate(status, base::StrCat("checkpoint ", entry.sequence));
    Quarantine(CheckpointPath(config_.folder, entry.sequence), base::StrCat(entry.sequence, ".ckpt"));
    const bool last = i + 1 == manifest_.checkpoints.size();
    recovery_.losses.push_back(base::StrCat(
        "checkpoint ", entry.sequence, " is unreadable (", base::Message(status), "); ",
        last ? "there is no older one: samples older than the log's first segment and not yet in a block are lost"
             : "the one before it and a longer part of the log are used instead"));
    heads_.clear();
    heads_by_ref_.clear();
    ASSIGN_OR_RETURN(sealed_, head::SealedLog::Open(fs_, config_.folder + "/sealed", head::SealedLogConfig()));
  }
  if (!manifest_.checkpoints.empty()) {
    // Without a checkpoint nothing tells what these hold; they go with it.
    ASSIGN_OR_RETURN(const auto files, fs_.List(config_.folder + "/sealed"));
    for (const fs::FileInfo& file : files) {
      Quarantine(base::StrCat(config_.folder, "/sealed/", file.name), base::StrCat("sealed-", file.name));
    }
  }
  manifest_.checkpoints.clear();
  manifest_.sealed_floor = 0;
  return sealed_->StartEmpty();
}

absl::Status Shard::LoadCheckpoint(const CheckpointEntry& entry) {
  ASSIGN_OR_RETURN(const CheckpointFile file, OpenCheckpoint(fs_, CheckpointPath(config_.folder, entry.sequence)));
  RETURN_IF_ERROR(sealed_->LoadCheckpoint(file.sealed_log));
  for (const CheckpointFile::Head& section : file.heads) {
    TenantHead& head = AddHead(section.tenant_ref, section.tenant);
    RETURN_IF_ERROR(base::Annotate(head.head->LoadCheckpoint(section.bytes), base::StrCat("tenant ", section.tenant)));
  }
  return absl::OkStatus();
}

void Shard::Replay(wal::Position from) {
  const std::string folder = config_.folder + "/wal";
  auto reader = wal::Reader::Open(fs_, folder, from, config_.folder + "/quarantine");
  if (!reader.ok()) {
    recovery_.losses.push_back(base::StrCat("the log cannot be read (", base::Message(reader.status()), ")"));
    return;
  }
  uint64_t strangers = 0;
  uint64_t senseless = 0;
  std::string first_error;
  wal::Record record;
  while ((*reader)->Next(&record)) {
    ++recovery_.records;
    absl::Status status;
    if (record.type == wal::RecordType::kTenant) {
      auto tenant = wal::DecodeTenant(record.payload);
      status = tenant.status();
      if (tenant.ok() && (tenant->ref >= heads_by_ref_.size() || heads_by_ref_[tenant->ref] == nullptr)) {
        if (heads_.contains(tenant->name)) {
          status = absl::DataLossError("a tenant was given two numbers");
        } else {
          AddHead(tenant->ref, tenant->name);
        }
      }
    } else {
      // Every other payload begins with the tenant's number (storage/wal/FORMAT.md).
      const uint64_t ref = base::ByteReader(record.payload).Varint();
      if (ref < heads_by_ref_.size() && heads_by_ref_[ref] != nullptr) {
        status = heads_by_ref_[ref]->head->Apply(record.type, record.payload, head::ToLogPosition(record.begin));
      } else {
        ++strangers;
      }
    }
    if (!status.ok() && senseless++ == 0) {
      first_error = base::StrCat(record.begin.ToString(), ": ", base::Message(status));
    }
  }
  const wal::ReadReport& report = (*reader)->report();
  metrics_.replayed_records.Add(report.records);
  metrics_.damaged_log_ranges.Add(report.damages.size());
  for (const wal::Damage& damage : report.damages) {
    recovery_.losses.push_back(base::StrCat(
        "log segment ", damage.segment, ": ", damage.bytes, " bytes at offset ", damage.offset, " cannot be read (",
        damage.reason, ")", damage.quarantined_to.empty() ? "" : "; copied to ", damage.quarantined_to));
  }
  if (senseless > 0) {
    recovery_.losses.push_back(base::StrCat(senseless, " log records make no sense, the first at ", first_error));
  }
  if (strangers > 0) {
    recovery_.losses.push_back(base::StrCat(strangers, " log records belong to tenants whose record was lost"));
  }
  if (report.torn) {
    log_.Info("the log ended in an unfinished write, as a crash leaves it",
              {{"segment", report.torn->segment}, {"offset", report.torn->offset}, {"bytes", report.torn->bytes}});
  }
  if (const absl::Status status = wal::CutTornTail(fs_, folder, report); !status.ok()) {
    log_.Warn("the unfinished write could not be cut off", {{"error", base::Message(status)}});
  }
}

void Shard::OpenBlocks() {
  std::vector<BlockEntry> kept;
  for (const BlockEntry& entry : manifest_.blocks) {
    auto reader = block::Reader::Open(fs_, BlockPath(config_.folder, entry.sequence));
    if (!reader.ok()) {
      recovery_.losses.push_back(base::StrCat("block ", entry.sequence, " of tenant ", entry.tenant,
                                              " cannot be opened (", base::Message(reader.status()),
                                              "); the file stays where it is"));
      kept.push_back(entry);  // a repaired file counts again at the next start
      missing_blocks_.push_back(entry);
      continue;
    }
    BlockEntry full = entry;
    if (full.tenant.empty()) {  // from the folder, the manifest was lost
      full.tenant = (*reader)->meta().tenant;
      full.min_time_ms = (*reader)->meta().min_time_ms;
      full.max_time_ms = (*reader)->meta().max_time_ms;
    }
    kept.push_back(full);
    blocks_.push_back({full, *std::move(reader)});
  }
  manifest_.blocks = std::move(kept);
}

// Files that no manifest names: of a checkpoint or a cut that was not finished.
void Shard::RemoveStrangers() {
  const auto known = [&](const std::string& folder, const std::string& name) {
    const std::string path = base::StrCat(config_.folder, "/", folder, "/", name);
    for (const CheckpointEntry& entry : manifest_.checkpoints) {
      if (path == CheckpointPath(config_.folder, entry.sequence)) return true;
    }
    for (const BlockEntry& entry : manifest_.blocks) {
      if (path == BlockPath(config_.folder, entry.sequence)) return true;
    }
    return false;
  };
  for (const char* folder : {"checkpoints", "blocks"}) {
    const auto files = fs_.List(base::StrCat(config_.folder, "/", folder));
    if (!files.ok()) continue;
    for (const fs::FileInfo& file : *files) {
      if (!file.is_folder && !known(folder, file.name)) {
        fs_.Remove(base::StrCat(config_.folder, "/", folder, "/", file.name)).IgnoreError();
      }
    }
  }
}

// ---- The thread ----------------------------------------------------------------------------------------------------

void Shard::Run() {
  std::vector<Task> tasks;
  while (mailbox_.PopAll(NextWait(), tasks)) {
    for (Task& task : tasks) task(*this);
    tasks.clear();
    AfterTasks();
    if (Busy()) Work();
    RunTimers();
  }
  SyncNow();
}

std::chrono::nanoseconds Shard::NextWait() const {
  if (Busy()) return std::chrono::nanoseconds(0);
  const int64_t now = clock_.MonotonicNs();
  int64_t next = std::min({next_checkpoint_ns_, next_cut_ns_, next_idle_ns_, next_minute_ns_});
  if (unsynced_ && config_.wal_sync == WalSync::kInterval) next = std::min(next, next_sync_ns_);
  return std::chrono::nanoseconds(std::clamp<int64_t>(next - now, 1'000'000, kSecond));
}

// Group commit: everything that was in the mailbox shares one sync.
void Shard::AfterTasks() {
  if (!acks_.empty()) SyncNow();
}

void Shard::SyncNow() {
  if (unsynced_) {
    const absl::Status status = wal_->Sync();
    unsynced_ = false;
    next_sync_ns_ = clock_.MonotonicNs() + config_.wal_sync_interval_ms * 1'000'000;
    if (!status.ok()) {
      metrics_.log_failures.Add();
      log_.Error("log sync failed, a checkpoint is made", {{"error", base::Message(status)}});
      next_checkpoint_ns_ = 0;
      ++sync_failures_;
      doubt_ = AsUnavailable(status);
    }
  }
  // Also when there was nothing to sync: a request whose samples are all stored already logs nothing.
  for (Ack& ack : acks_) {
    if (!doubt_.ok()) ack.result = model::WriteResult();
    ack.done(doubt_, std::move(ack.result));
  }
  acks_.clear();
}

void Shard::RunTimers() {
  const int64_t now = clock_.MonotonicNs();
  if (unsynced_ && config_.wal_sync == WalSync::kInterval && now >= next_sync_ns_) SyncNow();
  if (now >= next_minute_ns_) {
    next_minute_ns_ = now + 10 * kSecond;
    if (const absl::Status status = sealed_->Flush(); !status.ok()) {
      log_.Warn("sealed chunks stay in memory", {{"error", base::Message(status)}});
    }
    Retain();
    Publish();
  }
  if (stopping_) return;
  if (pending_floor_ != nullptr && checkpoint_ == nullptr && !checkpoint_writing_ &&
      pending_floor_->checkpoints_left <= 0 && now >= pending_floor_->not_before_ns) {
    ApplyFloor();
  }
  const bool checkpoint_due = now >= next_checkpoint_ns_ || bytes_since_checkpoint_ >= config_.checkpoint_wal_bytes;
  if (checkpoint_due && checkpoint_ == nullptr && !checkpoint_writing_) {
    const bool something_new = bytes_since_checkpoint_ > 0 || next_checkpoint_ns_ == 0 || checkpoint_failed_;
    if (!something_new && pending_floor_ == nullptr) {
      next_checkpoint_ns_ = now + config_.checkpoint_interval_ms * 1'000'000;
    } else {
      StartCheckpoint();
    }
  }
  if (cut_ == nullptr && pending_floor_ == nullptr) {
    if (now >= next_cut_ns_) {
      StartCut(false);
      next_cut_ns_ = now + config_.cut_interval_ms * 1'000'000;
      next_idle_ns_ = now + config_.idle_cut_interval_ms * 1'000'000;
    } else if (now >= next_idle_ns_) {
      next_idle_ns_ = now + config_.idle_cut_interval_ms * 1'000'000;
      StartCut(false);
      cut_->only_if_idle = true;
    }
  }
}

void Shard::Work() {
  if (checkpoint_ != nullptr) {
    CheckpointSlice();
  } else if (cut_ != nullptr) {
    CutSlice();
  }
}

void Shard::Publish() {
  uint64_t series = 0;
  uint64_t bytes = 0;
  for (const auto& [name, head] : heads_) {
    const head::HeadStats stats = head->head->stats();
    series += stats.series;
    bytes += stats.bytes;
  }
  uint64_t block_bytes = 0;
  for (const Block& block : blocks_) block_bytes += block.reader->meta().file_bytes;
  active_series_ = series;
  head_bytes_ = bytes;
  block_count_ = blocks_.size();
  block_bytes_ = block_bytes;
  sealed_bytes_ = sealed_->memory_bytes() + sealed_->file_bytes();
}

// ---- Writing -------------------------------------------------------------------------------------------------------

head::LogPosition Shard::LogEnd() const { return head::ToLogPosition(wal_->position()); }

absl::Status Shard::WriteLog(std::string_view records) {
  RETURN_IF_ERROR(wal_->Write(records));
  bytes_since_checkpoint_ += records.size();
  unsynced_ = true;
  return absl::OkStatus();
}

Shard::TenantHead& Shard::AddHead(uint32_t ref, std::string_view tenant) {
  head::HeadConfig config;
  config.tenant_ref = ref;
  config.hash_seed = config_.hash_seed;
  auto& slot = heads_[std::string(tenant)];
  slot = std::make_unique<TenantHead>(
      TenantHead{ref, std::string(tenant), std::make_unique<head::Head>(config, *sealed_)});
  if (heads_by_ref_.size() <= ref) heads_by_ref_.resize(ref + 1);
  heads_by_ref_[ref] = slot.get();
  return *slot;
}

absl::StatusOr<Shard::TenantHead*> Shard::HeadFor(std::string_view tenant) {
  if (const auto it = heads_.find(tenant); it != heads_.end()) return it->second.get();
  const auto ref = static_cast<uint32_t>(std::max<size_t>(heads_by_ref_.size(), 1));
  wal::RecordBuilder builder;
  builder.Begin();
  builder.AddTenant(ref, tenant);
  const std::string_view record = builder.Finish();
  RETURN_IF_ERROR(WriteLog(record));
  wal_->AddPreamble(record);
  return &AddHead(ref, tenant);
}

void Shard::Append(const Write& write, Done done) {
  model::WriteResult result;
  absl::Status status;
  auto head = HeadFor(write.tenant);
  if (head.ok()) {
    const head::WriteLog log = [this](std::string_view records) { return WriteLog(records); };
    const head::AppendContext context{*write.limits, clock_.NowMs(), *write.gate, log};
    status = (*head)->head->Append(*write.batch, write.which, context, result);
    if (status.ok() && write.metadata && !write.batch->metadata.empty()) {
      status = (*head)->head->AppendMetadata(write.batch->metadata, log, result);
    }
  } else {
    status = head.status();
  }
  metrics_.samples.Add(result.samples_stored);
  metrics_.histograms.Add(result.histograms_stored);
  metrics_.exemplars.Add(result.exemplars_stored);
  metrics_.duplicates.Add(result.duplicates);
  metrics_.out_of_order.Add(result.out_of_order);
  metrics_.series_created.Add(result.series_created);
  if (result.series_created > 0) {
    active_series_.fetch_add(result.series_created, std::memory_order_relaxed);
  }
  if (!status.ok()) {
    metrics_.log_failures.Add();
    done(AsUnavailable(status), std::move(result));
    return;
  }
  if (config_.wal_sync == WalSync::kAlways) {
    acks_.push_back({std::move(done), std::move(result)});
  } else {
    done(absl::OkStatus(), std::move(result));
  }
}

std::vector<std::string> Shard::Tenants() const {
  std::vector<std::string> names;
  for (const auto& [name, head] : heads_) names.push_back(name);
  return names;
}

const head::Head* Shard::FindHead(std::string_view tenant) {
  const auto it = heads_.find(tenant);
  return it == heads_.end() ? nullptr : it->second->head.get();
}

std::vector<BlockEntry> Shard::MissingBlocksOf(std::string_view tenant) const {
  std::vector<BlockEntry> out;
  for (const BlockEntry& entry : missing_blocks_) {
    if (entry.tenant == tenant || entry.tenant.empty()) out.push_back(entry);
  }
  return out;
}

std::vector<std::shared_ptr<const block::Reader>> Shard::BlocksOf(std::string_view tenant) const {
  std::vector<std::shared_ptr<const block::Reader>> out;
  for (auto it = blocks_.rbegin(); it != blocks_.rend(); ++it) {
    if (it->entry.tenant == tenant) out.push_back(it->reader);
  }
  return out;
}

// ---- Checkpoints ---------------------------------------------------------------------------------------------------

void Shard::Checkpoint(std::function<void(absl::Status)> done) {
  // One that runs already may have passed by what the caller means, so another follows it.
  checkpoint_waiters_.push_back(std::move(done));
  if (checkpoint_ == nullptr && !checkpoint_writing_) StartCheckpoint();
}

void Shard::StartCheckpoint() {
  auto run = std::make_unique<CheckpointRun>();
  run->begun_ns = clock_.MonotonicNs();
  run->waiters = std::move(checkpoint_waiters_);
  checkpoint_waiters_.clear();
  run->for_floor = pending_floor_ == nullptr ? 0 : pending_floor_->floor;
  run->sync_failures = sync_failures_;
  wal_->Rotate();
  run->entry.sequence = manifest_.next_sequence++;
  run->entry.replay_from = wal_->position();
  for (const TenantHead* head : heads_by_ref_) {
    if (head != nullptr) run->tenants.push_back(head->name);
  }
  bytes_since_checkpoint_ = 0;
  checkpoint_ = std::move(run);
  auto writer = CheckpointWriter::Create(fs_, CheckpointPath(config_.folder, checkpoint_->entry.sequence));
  if (!writer.ok()) {
    FailCheckpoint(writer.status());
    return;
  }
  checkpoint_->writer = *std::move(writer);
}

void Shard::CheckpointSlice() {
  CheckpointRun& run = *checkpoint_;
  if (run.next < run.tenants.size()) {
    TenantHead& tenant = *heads_.find(run.tenants[run.next])->second;
    if (!run.started) {
      run.started = true;
      tenant.head->StartCheckpoint(LogEnd(), run.buffer);
    }
    const bool more = tenant.head->CheckpointSlice(kCheckpointSeriesPerSlice, LogEnd(), run.buffer);
    if (!more) tenant.head->FinishCheckpoint(LogEnd(), run.buffer);
    if (!more || run.buffer.size() >= kCheckpointBufferBytes) {
      const absl::Status status = run.writer->AppendHead(tenant.ref, tenant.name, run.buffer);
      run.buffer.clear();
      if (!status.ok()) {
        if (more) tenant.head->AbandonCheckpoint();
        run.started = false;
        FailCheckpoint(status);
        return;
      }
    }
    if (!more) {
      run.started = false;
      ++run.next;
    }
    return;
  }
  std::string sealed;
  absl::Status status = sealed_->WriteCheckpoint(sealed);
  if (status.ok()) status = run.writer->Finish(sealed);
  if (!status.ok()) {
    FailCheckpoint(status);
    return;
  }
  checkpoint_writing_ = true;
  finished_checkpoint_ = std::move(checkpoint_);
  const bool queued = maintenance_.TryRun([this, writer = finished_checkpoint_->writer.get()] {
    absl::Status committed = writer->Commit();
    mailbox_.PushAlways([committed = std::move(committed)](Shard& shard) { shard.CheckpointWritten(committed); });
  });
  if (!queued) CheckpointWritten(absl::UnavailableError("the maintenance queue is full"));
}

void Shard::CheckpointWritten(absl::Status status) {
  checkpoint_writing_ = false;
  checkpoint_ = std::move(finished_checkpoint_);
  if (!status.ok()) {
    FailCheckpoint(status);
    return;
  }
  const Manifest before = manifest_;
  manifest_.checkpoints.insert(manifest_.checkpoints.begin(), checkpoint_->entry);
  if (manifest_.checkpoints.size() > 2) manifest_.checkpoints.resize(2);
  status = WriteManifest();
  if (!status.ok()) {
    manifest_.checkpoints = before.checkpoints;
    fs_.Remove(CheckpointPath(config_.folder, checkpoint_->entry.sequence)).IgnoreError();
    FailCheckpoint(status);
    return;
  }
  for (size_t i = 1; i < before.checkpoints.size(); ++i) {
    fs_.Remove(CheckpointPath(config_.folder, before.checkpoints[i].sequence)).IgnoreError();
  }
  if (manifest_.checkpoints.size() == 2) {
    // The older of the two stays usable, so its part of the log stays as well.
    if (const absl::Status dropped = wal_->DropBefore(manifest_.checkpoints[1].replay_from.segment); !dropped.ok()) {
      log_.Warn("old log segments could not be removed", {{"error", base::Message(dropped)}});
    }
  }
  const int64_t took_ns = clock_.MonotonicNs() - checkpoint_->begun_ns;
  metrics_.checkpoints.Add();
  metrics_.checkpoint_seconds.Observe(static_cast<double>(took_ns) * 1e-9);
  log_.Debug("checkpoint written", {{"sequence", checkpoint_->entry.sequence}, {"ms", took_ns / 1'000'000}});
  last_checkpoint_ms_ = clock_.NowMs();
  checkpoint_failed_ = false;
  if (checkpoint_->sync_failures == sync_failures_) {
    doubt_ = absl::OkStatus();
    next_checkpoint_ns_ = clock_.MonotonicNs() + config_.checkpoint_interval_ms * 1'000'000;
  } else {
    next_checkpoint_ns_ = 0;
  }
  if (pending_floor_ != nullptr && checkpoint_->for_floor == pending_floor_->floor) --pending_floor_->checkpoints_left;
  const auto waiters = std::move(checkpoint_->waiters);
  checkpoint_.reset();
  for (const auto& waiter : waiters) waiter(absl::OkStatus());
  if (!checkpoint_waiters_.empty()) StartCheckpoint();
}

void Shard::FailCheckpoint(const absl::Status& status) {
  metrics_.checkpoint_failures.Add();
  log_.Error("checkpoint failed, the log is kept", {{"error", base::Message(status)}});
  const auto waiters = std::move(checkpoint_->waiters);
  checkpoint_.reset();
  next_checkpoint_ns_ = clock_.MonotonicNs() + kRetryAfterFailureNs;
  bytes_since_checkpoint_ = 0;  // the timer decides when to try again
  checkpoint_failed_ = true;
  for (const auto& waiter : waiters) waiter(status);
}

void Shard::ApplyFloor() {
  const uint64_t before = std::exchange(manifest_.sealed_floor, pending_floor_->floor);
  if (const absl::Status status = WriteManifest(); !status.ok()) {
    manifest_.sealed_floor = before;
    pending_floor_->not_before_ns = clock_.MonotonicNs() + kRetryAfterFailureNs;
    log_.Warn("sealed chunks that blocks have stay", {{"error", base::Message(status)}});
    return;
  }
  sealed_->AdvanceFloor(pending_floor_->floor);
  const auto idle = std::move(pending_floor_->idle);
  pending_floor_.reset();
  ForgetIdle(idle);
}

// ---- Cuts ----------------------------------------------------------------------------------------------------------

void Shard::Cut(std::function<void(absl::Status)> done) {
  cut_waiters_.push_back(std::move(done));
  if (cut_ == nullptr) StartCut(true);
}

void Shard::StartCut(bool everything) {
  auto run = std::make_unique<CutRun>();
  run->begun_ns = clock_.MonotonicNs();
  run->everything = everything;
  run->waiters = std::move(cut_waiters_);
  cut_waiters_.clear();
  for (const TenantHead* head : heads_by_ref_) {
    if (head != nullptr) run->tenants.push_back(head->name);
  }
  cut_ = std::move(run);
}

void Shard::CutSlice() {
  CutRun& run = *cut_;
  if (run.next < run.tenants.size()) {
    head::Head& head = *heads_.find(run.tenants[run.next])->second->head;
    bool more = false;
    if (run.phase == CutRun::Phase::kIdle) {
      std::vector<head::SlotInfo> idle =
          head.CollectIdle(clock_.NowMs(), config_.idle_after_ms, kIdlePerSlice, &run.cursor);
      more = run.cursor != 0;
      if (!idle.empty()) {
        if (run.idle.empty() || run.idle.back().first != run.tenants[run.next]) {
          run.idle.emplace_back(run.tenants[run.next], std::vector<head::SlotInfo>());
        }
        auto& all = run.idle.back().second;
        all.insert(all.end(), idle.begin(), idle.end());
      }
    } else {
      const int64_t older_than = run.everything ? INT64_MAX : clock_.NowMs() - config_.cut_interval_ms / 2;
      more = head.SealOlderThan(older_than, kSealSeriesPerSlice, &run.cursor);
    }
    if (!more) {
      run.cursor = 0;
      ++run.next;
    }
    return;
  }
  run.next = 0;
  if (run.phase == CutRun::Phase::kIdle) {
    uint64_t idle = 0;
    for (const auto& [tenant, slots] : run.idle) idle += slots.size();
    if (run.only_if_idle && idle < std::max<uint64_t>(1000, active_series() / 10)) {
      cut_.reset();  // not worth a block
      return;
    }
    run.phase = CutRun::Phase::kSeal;
    return;
  }
  run.phase = CutRun::Phase::kWrite;
  WriteBlocks();
}

void Shard::WriteBlocks() {
  struct Job {
    uint64_t sequence;
    std::string tenant;
    std::unique_ptr<model::HashedSelection> series;
  };
  auto jobs = std::make_shared<std::vector<Job>>();
  cut_->below = sealed_->end();
  for (const std::string& tenant : cut_->tenants) {
    auto series = heads_.find(tenant)->second->head->StartCut(cut_below_, cut_->below);
    if (series->size() > 0) jobs->push_back({manifest_.next_sequence++, tenant, std::move(series)});
  }
  const bool queued = maintenance_.TryRun([this, jobs] {
    auto blocks = std::make_shared<std::vector<Block>>();
    absl::Status status;
    for (Job& job : *jobs) {
      block::BlockMeta meta;
      meta.tenant = job.tenant;
      meta.shard = config_.index;
      block::Writer writer(fs_, BlockPath(config_.folder, job.sequence), meta);
      model::SampleColumns columns;
      for (size_t i = 0; status.ok() && i < job.series->size(); ++i) {
        columns.Clear();
        status = job.series->Read(i, &columns);
        if (absl::IsDataLoss(status)) {
          // One damaged chunk must not keep the rest from being published.
          log_.Error(
              "sealed chunks are damaged, the series' part of this cut is lost",
              {{"tenant", job.tenant}, {"series", job.series->labels(i).ToString()}, {"error", base::Message(status)}});
          status = absl::OkStatus();
          continue;
        }
        if (status.ok()) status = writer.Add(job.series->labels(i), job.series->hash(i), columns);
      }
      job.series.reset();
      if (!status.ok()) break;
      auto written = writer.Finish();
      if (!written.ok()) {
        status = written.status();
        break;
      }
      if (written->series == 0) {
        fs_.Remove(BlockPath(config_.folder, job.sequence)).IgnoreError();
        continue;
      }
      auto reader = block::Reader::Open(fs_, BlockPath(config_.folder, job.sequence));
      if (!reader.ok()) {
        status = reader.status();
        break;
      }
      blocks->push_back(
          {{job.sequence, job.tenant, written->min_time_ms, written->max_time_ms, clock_.NowMs()}, *std::move(reader)});
    }
    mailbox_.PushAlways([status, blocks](Shard& shard) { shard.BlocksWritten(status, std::move(*blocks)); });
  });
  if (!queued) BlocksWritten(absl::UnavailableError("the maintenance queue is full"), {});
}

void Shard::BlocksWritten(absl::Status status, std::vector<Block> blocks) {
  if (status.ok()) {
    for (const Block& block : blocks) manifest_.blocks.push_back(block.entry);
    status = WriteManifest();
    if (!status.ok()) manifest_.blocks.resize(manifest_.blocks.size() - blocks.size());
  }
  if (status.ok()) {
    for (Block& block : blocks) blocks_.push_back(std::move(block));
    // One cut may follow another before its chunks could go: then both go with the later one.
    if (pending_floor_ != nullptr) {
      for (auto& ended : pending_floor_->idle) cut_->idle.push_back(std::move(ended));
    }
    pending_floor_ = std::make_unique<PendingFloor>();
    pending_floor_->floor = cut_below_ = cut_->below;
    pending_floor_->not_before_ns = clock_.MonotonicNs() + config_.out_of_order_window_ms * 1'000'000;
    pending_floor_->idle = std::move(cut_->idle);
    metrics_.cuts.Add();
    const int64_t took_ns = clock_.MonotonicNs() - cut_->begun_ns;
    metrics_.cut_seconds.Observe(static_cast<double>(took_ns) * 1e-9);
    log_.Info("cut", {{"blocks", blocks.size()}, {"ms", took_ns / 1'000'000}});
    next_checkpoint_ns_ = 0;
  } else {
    for (const Block& block : blocks) fs_.Remove(BlockPath(config_.folder, block.entry.sequence)).IgnoreError();
    metrics_.cut_failures.Add();
    log_.Error("cut failed, the chunks stay where they are", {{"error", base::Message(status)}});
    next_cut_ns_ = clock_.MonotonicNs() + 10 * kRetryAfterFailureNs;
  }
  const auto waiters = std::move(cut_->waiters);
  cut_.reset();
  Publish();
  for (const auto& waiter : waiters) waiter(status);
  if (!cut_waiters_.empty()) StartCut(true);
}

void Shard::ForgetIdle(const std::vector<std::pair<std::string, std::vector<head::SlotInfo>>>& idle) {
  const head::WriteLog log = [this](std::string_view records) { return WriteLog(records); };
  for (const auto& [tenant, slots] : idle) {
    const auto it = heads_.find(tenant);
    if (it == heads_.end()) continue;
    const auto forgotten = it->second->head->Forget(slots, log);
    if (!forgotten.ok()) {
      log_.Warn("ended series stay in memory", {{"tenant", tenant}, {"error", base::Message(forgotten.status())}});
      continue;
    }
    metrics_.series_forgotten.Add(*forgotten);
  }
  Publish();
}

// ---- Retention -----------------------------------------------------------------------------------------------------

void Shard::Retain() {
  if (config_.retention_ms <= 0) return;
  const int64_t before = clock_.NowMs() - config_.retention_ms;
  std::vector<uint64_t> gone;
  const auto old = [&](const BlockEntry& entry) {
    // Backfilled samples are kept for as long after they came as fresh ones are.
    return std::max(entry.max_time_ms, entry.written_ms) < before;
  };
  for (const BlockEntry& entry : manifest_.blocks) {
    if (old(entry)) gone.push_back(entry.sequence);
  }
  if (gone.empty()) return;
  const std::vector<BlockEntry> all = manifest_.blocks;
  std::erase_if(manifest_.blocks, old);
  if (const absl::Status status = WriteManifest(); !status.ok()) {
    manifest_.blocks = all;
    return;
  }
  std::erase_if(blocks_, [&](const Block& block) { return old(block.entry); });
  std::erase_if(missing_blocks_, old);
  for (const uint64_t sequence : gone) {
    fs_.Remove(BlockPath(config_.folder, sequence)).IgnoreError();
    metrics_.blocks_removed.Add();
  }
  log_.Info("retention removed blocks", {{"blocks", gone.size()}, {"older_than_ms", before}});
}

absl::Status Shard::WriteManifest() { return fs::WriteWhole(fs_, config_.folder + "/MANIFEST", manifest_.Encode()); }

}  // namespace varve::roles
