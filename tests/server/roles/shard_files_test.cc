#include "server/roles/shard_files.h"

#include <catch2/catch.hpp>

#include "tests/support/mem_fs.h"

namespace varve::roles {
namespace {

Manifest Example() {
  Manifest manifest;
  manifest.next_sequence = 9;
  manifest.checkpoints = {{8, {4, 24}}, {5, {2, 24}}};
  manifest.blocks = {{3, "tenant-a", -5, 1'700'000'000'000, 1'700'000'100'000}, {7, "b", 0, 1, 2}};
  manifest.sealed_floor = 4'193'290;
  return manifest;
}

TEST_CASE("a manifest survives coding") {
  const auto back = Manifest::Decode(Example().Encode());
  REQUIRE(back.ok());
  CHECK(back->Encode() == Example().Encode());
  CHECK(back->blocks[0].tenant == "tenant-a");
  CHECK(back->sealed_floor == 4'193'290);
  CHECK(back->checkpoints[1].replay_from == wal::Position{2, 24});
}

TEST_CASE("a damaged manifest is told from a sound one at every byte") {
  const std::string good = Example().Encode();
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    CHECK_FALSE(Manifest::Decode(bad).ok());
    CHECK_FALSE(Manifest::Decode(good.substr(0, i)).ok());
  }
}

TEST_CASE("a checkpoint file gives back its sections") {
  test::MemFs fs;
  REQUIRE(fs.CreateFolders("s/checkpoints").ok());
  const std::string path = CheckpointPath("s", 12);
  CHECK(path == "s/checkpoints/00000012.ckpt");
  {
    auto writer = CheckpointWriter::Create(fs, path);
    REQUIRE(writer.ok());
    REQUIRE((*writer)->AppendHead(1, "one", "abc").ok());
    REQUIRE((*writer)->AppendHead(1, "one", "def").ok());
    REQUIRE((*writer)->AppendHead(2, "two", "").ok());
    REQUIRE((*writer)->Finish("sealed").ok());
    CHECK_FALSE(OpenCheckpoint(fs, path).ok());  // not before Commit
    REQUIRE((*writer)->Commit().ok());
  }
  const auto file = OpenCheckpoint(fs, path);
  REQUIRE(file.ok());
  REQUIRE(file->heads.size() == 2);
  CHECK(file->heads[0].bytes == "abcdef");
  CHECK(file->heads[1].tenant == "two");
  CHECK(file->sealed_log == "sealed");
}

TEST_CASE("an unfinished checkpoint leaves nothing and a cut one is refused") {
  test::MemFs fs;
  REQUIRE(fs.CreateFolders("s/checkpoints").ok());
  const std::string path = CheckpointPath("s", 1);
  {
    auto writer = CheckpointWriter::Create(fs, path);
    REQUIRE(writer.ok());
    REQUIRE((*writer)->AppendHead(1, "one", "abc").ok());
  }
  CHECK(fs.List("s/checkpoints")->empty());
  {
    auto writer = CheckpointWriter::Create(fs, path);
    REQUIRE(writer.ok());
    REQUIRE((*writer)->AppendHead(1, "one", std::string(1000, 'x')).ok());
    REQUIRE((*writer)->Finish("sealed").ok());
    REQUIRE((*writer)->Commit().ok());
  }
  const std::string whole = *fs.ReadAll(path);
  for (size_t size = 0; size < whole.size(); size += 13) {
    REQUIRE(fs.Remove(path).ok());
    auto file = fs.Create(path);
    REQUIRE(file.ok());
    REQUIRE((*file)->Append(std::string_view(whole).substr(0, size)).ok());
    CHECK(absl::IsDataLoss(OpenCheckpoint(fs, path).status()));
  }
}

}  // namespace
}  // namespace varve::roles
