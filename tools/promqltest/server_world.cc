#include "tools/promqltest/server_world.h"

#include <cstdlib>
#include <filesystem>
#include <future>

#include "server/roles/ingester.h"
#include "storage/base/strings.h"
#include "storage/fs/posix_fs.h"

namespace varve::promqltest {

namespace {

// Far more than any script needs, so that only the world's own rules refuse anything.
model::Limits WideLimits() {
  model::Limits limits;
  limits.out_of_order_window_ms = 0;
  limits.future_max_ms = int64_t{1} << 50;
  return limits;
}

class Impl : public World {
 public:
  explicit Impl(ServerWorld::After after) : after_(after) {}
  ~Impl() override {
    ingester_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  absl::Status Open() {
    std::string pattern = (std::filesystem::temp_directory_path() / "varve-promqltest-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) return base::ErrnoStatus(errno, pattern);
    folder_ = pattern;
    return Start();
  }

  absl::Status Clear() override {
    ++tenant_;  // a tenant that never wrote has nothing
    source_ = ingester_->SourceFor(Tenant());
    return absl::OkStatus();
  }

  absl::Status Append(std::span<const WorldSeries> series) override {
    auto batch = std::make_shared<model::WriteBatch>();
    uint64_t sent = 0;
    bool any_start = false;
    for (const WorldSeries& one : series) {
      batch->bodies.emplace_back(one.labels.bytes());
      model::WriteBatch::Series entry;
      entry.labels = batch->bodies.back();
      entry.hash = model::HashLabels(entry.labels, ingester_->hash_seed());
      // A batch has a series' floats and histograms in two runs; a series that changes between them is sent in parts.
      for (size_t i = 0; i < one.samples.size();) {
        entry.float_begin = static_cast<uint32_t>(batch->values.size());
        entry.histogram_begin = static_cast<uint32_t>(batch->histograms.size());
        const bool histograms = one.samples[i].histogram != nullptr;
        for (; i < one.samples.size() && (one.samples[i].histogram != nullptr) == histograms; ++i) {
          const WorldSample& sample = one.samples[i];
          ++sent;
          any_start = any_start || sample.start_ms != 0;
          if (histograms) {
            batch->histograms.push_back({sample.t_ms, sample.start_ms, *sample.histogram});
          } else {
            batch->timestamps.push_back(sample.t_ms);
            batch->values.push_back(sample.value);
            batch->start_timestamps.push_back(sample.start_ms);
          }
        }
        entry.float_count = static_cast<uint32_t>(batch->values.size()) - entry.float_begin;
        entry.histogram_count = static_cast<uint32_t>(batch->histograms.size()) - entry.histogram_begin;
        batch->series.push_back(entry);
      }
    }
    if (!any_start) batch->start_timestamps.clear();
    auto limits = std::make_shared<const model::Limits>(WideLimits());
    std::promise<std::pair<absl::Status, model::WriteResult>> promise;
    ingester_->Push(Tenant(), std::move(batch), limits, {}, [&](const absl::Status& status, model::WriteResult result) {
      promise.set_value({status, std::move(result)});
    });
    const auto [status, result] = promise.get_future().get();
    RETURN_IF_ERROR(status);
    if (!result.AllStored() || result.samples_stored + result.histograms_stored != sent) {
      std::string why =
          base::StrCat(result.samples_stored + result.histograms_stored, " of ", sent, " samples were stored");
      for (const model::Rejection& rejection : result.rejections) {
        for (const std::string& example : rejection.examples) base::StrAppend(why, "; ", example);
      }
      return absl::InvalidArgumentError(why);
    }
    const bool flush = after_ == ServerWorld::After::kFlush || after_ == ServerWorld::After::kFlushAndRestart;
    if (flush) RETURN_IF_ERROR(ingester_->Flush());
    if (after_ == ServerWorld::After::kRestart || after_ == ServerWorld::After::kFlushAndRestart) {
      source_.reset();
      ingester_->Stop(flush);
      ingester_.reset();
      RETURN_IF_ERROR(Start());
      if (!ingester_->RecoveryLosses().empty()) return absl::DataLossError(ingester_->RecoveryLosses().front());
    }
    return absl::OkStatus();
  }

  const model::SeriesSource& source() const override { return *source_; }

 private:
  std::string Tenant() const { return base::StrCat("script-", tenant_); }
  absl::Status Start() {
    registry_ = std::make_unique<base::Registry>();
    roles::IngesterConfig config;
    config.data_dir = folder_ + "/data";
    config.shards = 2;
    config.shard.wal_sync = roles::WalSync::kNone;
    ASSIGN_OR_RETURN(ingester_, roles::Ingester::Open(config, fs_, clock_, log_, *registry_));
    source_ = ingester_->SourceFor(Tenant());
    return absl::OkStatus();
  }

  const ServerWorld::After after_;
  std::string folder_;
  int tenant_ = 0;
  fs::PosixFileSystem fs_;
  base::SystemClock clock_;
  const base::Logger log_ = base::Logger::Silent();
  std::unique_ptr<base::Registry> registry_;
  std::unique_ptr<roles::Ingester> ingester_;
  std::shared_ptr<const model::SeriesSource> source_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<World>> ServerWorld::Create(After after) {
  auto world = std::make_unique<Impl>(after);
  RETURN_IF_ERROR(world->Open());
  return std::unique_ptr<World>(std::move(world));
}

}  // namespace varve::promqltest
