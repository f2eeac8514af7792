// Files that are gone or bad: a start says what is missing, keeps the rest, and destroys nothing.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <random>

#include "server/roles/ingester.h"
#include "storage/fs/posix_fs.h"
#include "tests/support/manual_clock.h"
#include "tests/support/process.h"

namespace varve::roles {
namespace {

namespace stdfs = std::filesystem;

struct World {
  test::TempDir dir;
  fs::PosixFileSystem fs;
  base::SystemClock clock;
  base::Logger log = base::Logger::Silent();
  std::unique_ptr<base::Registry> registry;
  std::unique_ptr<Ingester> ingester;
  uint32_t shards = 1;
  const int64_t now = clock.NowMs();

  std::string data() const { return dir / "data"; }
  std::string shard() const { return data() + "/shards/0"; }
  absl::Status Start() {
    registry = std::make_unique<base::Registry>();
    IngesterConfig config;
    config.data_dir = data();
    config.shards = shards;
    config.shard.checkpoint_interval_ms = 3'600'000;
    ASSIGN_OR_RETURN(ingester, Ingester::Open(config, fs, clock, log, *registry));
    return absl::OkStatus();
  }
  void Stop(bool checkpoint) {
    ingester->Stop(checkpoint);
    ingester.reset();
  }
  void Push(int from, int to, const std::function<double()>& value = nullptr) {  // sample `i` of one series
    const model::Labels labels = model::Labels::Of({{"__name__", "m"}});
    auto batch = std::make_shared<model::WriteBatch>();
    batch->bodies.emplace_back(labels.bytes());
    model::WriteBatch::Series series;
    series.labels = batch->bodies.back();
    series.hash = model::HashLabels(series.labels, ingester->hash_seed());
    series.float_begin = 0;
    series.float_count = static_cast<uint32_t>(to - from);
    for (int i = from; i < to; ++i) {
      batch->timestamps.push_back(now - 1'000'000 + i);
      batch->values.push_back(value ? value() : i);
    }
    batch->series.push_back(series);
    std::promise<absl::Status> done;
    ingester->Push("t", batch, std::make_shared<model::Limits>(), {},
                   [&](const absl::Status& status, const model::WriteResult&) { done.set_value(status); });
    REQUIRE(done.get_future().get().ok());
  }
  // Two blocks, two checkpoints, and samples that only the newest checkpoint and the log have.
  void Fill() {
    REQUIRE(Start().ok());
    Push(0, 300);
    REQUIRE(ingester->Flush().ok());
    Push(300, 500);
    REQUIRE(ingester->Flush().ok());
    Push(500, 600);
    Stop(true);
    REQUIRE(Start().ok());
    Push(600, 700);
    Stop(true);
    REQUIRE(Files("blocks").size() == 2);
    REQUIRE(Files("checkpoints").size() == 2);
  }
  std::vector<std::string> Files(const std::string& folder) const {
    std::vector<std::string> paths;
    for (const auto& entry : stdfs::directory_iterator(shard() + "/" + folder)) paths.push_back(entry.path().string());
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  size_t Samples() const {
    auto selection = ingester->SourceFor("t")->Select({});
    REQUIRE(selection.ok());
    size_t n = 0;
    for (size_t i = 0; i < (*selection)->size(); ++i) {
      model::SampleColumns columns;
      REQUIRE((*selection)->Read(i, &columns).ok());
      n += columns.size();
    }
    return n;
  }
  std::vector<std::string> Warnings(std::string_view tenant = "t") const {
    return ingester->SourceFor(tenant)->Warnings();
  }
};

void Damage(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(0);
  file << "garbage!";
}

TEST_CASE("a lost manifest costs nothing that is still there") {
  World world;
  world.Fill();
  const bool damaged = GENERATE(false, true);
  if (damaged) {
    Damage(world.shard() + "/MANIFEST");
  } else {
    stdfs::remove(world.shard() + "/MANIFEST");
  }
  REQUIRE(world.Start().ok());
  const auto losses = world.ingester->RecoveryLosses();
  REQUIRE(losses.size() == 1);
  CHECK(losses[0].find(damaged ? "the manifest is unreadable" : "the manifest is missing") == 0);
  CHECK(world.Samples() == 700);
  CHECK(world.Files("blocks").size() == 2);
  world.Stop(true);
  REQUIRE(world.Start().ok());
  CHECK(world.ingester->RecoveryLosses().empty());
  CHECK(world.Samples() == 700);
}

TEST_CASE("a new folder has nothing to report") {
  World world;
  REQUIRE(world.Start().ok());
  CHECK(world.ingester->RecoveryLosses().empty());
  CHECK(world.Warnings().empty());
}

TEST_CASE("a shard whose folder is gone is named") {
  World world;
  world.shards = 2;
  REQUIRE(world.Start().ok());
  CHECK(world.ingester->RecoveryLosses().empty());
  world.Stop(true);
  stdfs::remove_all(world.data() + "/shards/1");
  REQUIRE(world.Start().ok());
  REQUIRE(world.ingester->RecoveryLosses().size() == 1);
  CHECK(world.ingester->RecoveryLosses()[0].find("/shards/1 is missing") != std::string::npos);
}

TEST_CASE("without its identity a data directory is refused and left alone") {
  World world;
  world.Fill();
  const std::string path = world.data() + "/IDENTITY";
  stdfs::rename(path, path + ".away");
  const absl::Status refused = world.Start();
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK(base::Message(refused).find("IDENTITY is missing") != std::string_view::npos);
  CHECK(!stdfs::exists(path));
  stdfs::rename(path + ".away", path);
  REQUIRE(world.Start().ok());
  CHECK(world.Samples() == 700);
}

TEST_CASE("another directory's identity is refused and destroys nothing") {
  World world, other;
  world.Fill();
  REQUIRE(other.Start().ok());
  other.Stop(false);
  const std::string path = world.data() + "/IDENTITY";
  stdfs::rename(path, path + ".away");
  stdfs::copy_file(other.data() + "/IDENTITY", path);
  CHECK(absl::IsFailedPrecondition(world.Start()));
  stdfs::rename(path + ".away", path);
  REQUIRE(world.Start().ok());
  CHECK(world.ingester->RecoveryLosses().empty());
  CHECK(world.Samples() == 700);
}

TEST_CASE("unreadable checkpoints are put aside and not removed") {
  World world;
  world.Fill();
  for (const std::string& path : world.Files("checkpoints")) Damage(path);
  REQUIRE(world.Start().ok());
  CHECK(world.ingester->RecoveryLosses().size() == 2);
  CHECK(world.Samples() >= 500);  // the blocks'
  CHECK(world.Files("checkpoints").empty());
  CHECK(world.Files("quarantine").size() == 2);
}

TEST_CASE("a missing file of sealed samples is reported, and others are kept") {
  World world;
  REQUIRE(world.Start().ok());
  std::mt19937_64 dice(1);
  const auto value = [&dice] { return static_cast<double>(dice()); };
  world.Push(0, 900'000, value);  // more than a file's worth
  world.Stop(true);
  const auto files = world.Files("sealed");
  REQUIRE(!files.empty());
  stdfs::remove(files[0]);
  REQUIRE(world.Start().ok());
  REQUIRE(world.ingester->RecoveryLosses().size() == 1);
  CHECK(world.ingester->RecoveryLosses()[0].find("files of sealed samples below position") == 0);
  CHECK(world.Samples() > 0);
  world.Stop(true);
  REQUIRE(world.Start().ok());
  CHECK(world.ingester->RecoveryLosses().empty());  // said once
}

TEST_CASE("a checkpoint that fails for another reason than damage stops the start") {
  World world;
  world.Fill();
  const std::string newest = world.Files("checkpoints").back();
  stdfs::rename(newest, newest + ".away");
  stdfs::create_directory(newest);  // reading it fails, and it is not missing
  CHECK(!world.Start().ok());
  stdfs::remove(newest);
  stdfs::rename(newest + ".away", newest);
  REQUIRE(world.Start().ok());
  CHECK(world.ingester->RecoveryLosses().empty());
  CHECK(world.Samples() == 700);
}

TEST_CASE("answers carry a warning while a block cannot be opened") {
  World world;
  world.Fill();
  const std::string block = world.Files("blocks").front();
  const std::string away = world.data() + "/away";
  stdfs::copy_file(block, away);
  const bool removed = GENERATE(false, true);
  if (removed) {
    stdfs::remove(block);
  } else {
    Damage(block);
  }
  REQUIRE(world.Start().ok());
  REQUIRE(world.Warnings().size() == 1);
  CHECK(world.Warnings()[0].find("storage: block ") == 0);
  CHECK(world.Warnings()[0].find(std::to_string(world.now - 1'000'000)) != std::string::npos);
  CHECK(world.Warnings("somebody else").empty());
  world.Stop(true);
  REQUIRE(world.Start().ok());
  CHECK(world.Warnings().size() == 1);
  world.Stop(true);
  stdfs::rename(away, block);  // from a backup
  REQUIRE(world.Start().ok());
  CHECK(world.Warnings().empty());
  CHECK(world.Samples() == 700);
}

}  // namespace
}  // namespace varve::roles
