#include "storage/fs/posix_fs.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "storage/base/strings.h"
#include "tests/support/fault_fs.h"
#include "tests/support/mem_fs.h"

namespace varve::fs {
namespace {

// A folder of its own, gone at the end.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "varve_fs_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The contract of FileSystem, for each of its kinds.
void KeepsTheContract(FileSystem& fs, const std::string& root) {
  const std::string folder = root + "/a/b";
  REQUIRE(fs.CreateFolders(folder).ok());
  CHECK(fs.CreateFolders(folder).ok());
  const std::string path = folder + "/file";
  CHECK(absl::IsNotFound(fs.ReadAll(path).status()));
  CHECK(absl::IsNotFound(fs.Map(path).status()));
  CHECK(absl::IsNotFound(fs.OpenForAppend(path).status()));
  CHECK(absl::IsNotFound(fs.Remove(path)));
  CHECK(absl::IsNotFound(fs.Create(root + "/missing/file").status()));
  CHECK(absl::IsNotFound(fs.List(root + "/missing").status()));

  auto file = fs.Create(path);
  REQUIRE(file.ok());
  CHECK(absl::IsAlreadyExists(fs.Create(path).status()));
  CHECK((*file)->size() == 0);
  CHECK((*fs.Map(path))->bytes().empty());
  REQUIRE((*file)->Append("hello ").ok());
  REQUIRE((*file)->Append("").ok());
  REQUIRE((*file)->Append("world").ok());
  CHECK((*file)->size() == 11);
  REQUIRE((*file)->Sync().ok());
  CHECK(*fs.ReadAll(path) == "hello world");
  REQUIRE((*file)->Truncate(6).ok());
  CHECK((*file)->size() == 6);
  REQUIRE((*file)->Append("moon").ok());
  CHECK(*fs.ReadAll(path) == "hello moon");
  file->reset();

  auto again = fs.OpenForAppend(path);
  REQUIRE(again.ok());
  CHECK((*again)->size() == 10);
  REQUIRE((*again)->Append("!").ok());
  auto mapped = fs.Map(path);
  REQUIRE(mapped.ok());
  CHECK((*mapped)->bytes() == "hello moon!");
  (*mapped)->Forget(0, 5);
  (*mapped)->Forget(3, 1'000'000);
  CHECK((*mapped)->bytes() == "hello moon!");

  REQUIRE(fs.Rename(path, folder + "/other").ok());
  CHECK((*mapped)->bytes() == "hello moon!");  // holds on to what it mapped
  CHECK(absl::IsNotFound(fs.Rename(path, folder + "/x")));
  REQUIRE(WriteWhole(fs, folder + "/other", "new").ok());
  REQUIRE(WriteWhole(fs, folder + "/empty", "").ok());
  CHECK(*fs.ReadAll(folder + "/other") == "new");
  REQUIRE(fs.CreateFolders(folder + "/sub").ok());
  REQUIRE(fs.SyncFolder(folder).ok());
  const auto files = fs.List(folder);
  REQUIRE(files.ok());
  REQUIRE(files->size() == 3);
  CHECK((*files)[0].name == "empty");
  CHECK((*files)[1].name == "other");
  CHECK((*files)[1].size == 3);
  CHECK_FALSE((*files)[1].is_folder);
  CHECK((*files)[2].name == "sub");
  CHECK((*files)[2].is_folder);

  CHECK_FALSE(fs.Remove(folder).ok());  // not empty
  CHECK_FALSE(fs.CreateFolders(folder + "/other").ok());
  CHECK(fs.Remove(folder + "/sub").ok());
  CHECK(fs.Remove(folder + "/empty").ok());
  CHECK(fs.Remove(folder + "/other").ok());
  CHECK(fs.Remove(folder).ok());
  CHECK(fs.FreeBytes(root).ok());
}

TEST_CASE("the real files keep the contract") {
  const Scratch scratch;
  PosixFileSystem fs;
  KeepsTheContract(fs, scratch.path());
}
TEST_CASE("the files in memory keep the contract") {
  test::MemFs fs;
  KeepsTheContract(fs, "data");
}
TEST_CASE("the faulty files keep the contract while they are not told to fail") {
  test::FaultFs fs;
  KeepsTheContract(fs, "data");
}

TEST_CASE("errors name the call and the path") {
  PosixFileSystem fs;
  const std::string path = "/nowhere/at/all";
  for (const absl::Status& status :
       {fs.ReadAll(path).status(), fs.Map(path).status(), fs.Create(path).status(), fs.List(path).status(),
        fs.Remove(path), fs.SyncFolder(path), fs.FreeBytes(path).status(), fs.Rename(path, "/x")}) {
    CHECK(absl::IsNotFound(status));
    CHECK(base::Message(status).find(path) != std::string_view::npos);
    CHECK(base::Message(status).find("No such file") != std::string_view::npos);
  }
  CHECK_FALSE(fs.Map("/tmp").ok());  // a folder
}

TEST_CASE("a full device is a lack of resources") {
  PosixFileSystem fs;
  auto file = fs.OpenForAppend("/dev/full");
  REQUIRE(file.ok());
  const absl::Status status = (*file)->Append("x");
  CHECK(absl::IsResourceExhausted(status));
  CHECK(base::Message(status).find("/dev/full") != std::string_view::npos);
  CHECK((*file)->size() == 0);
}

TEST_CASE("a big file maps and can be forgotten page by page") {
  const Scratch scratch;
  PosixFileSystem fs;
  const std::string path = scratch.path() + "/big";
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) base::StrAppend(bytes, i, ",");
  REQUIRE(WriteWhole(fs, path, bytes).ok());
  const auto mapped = fs.Map(path);
  REQUIRE(mapped.ok());
  for (uint64_t offset = 0; offset < bytes.size(); offset += 10'000) (*mapped)->Forget(offset, 10'000);
  CHECK((*mapped)->bytes() == bytes);
  CHECK(*fs.ReadAll(path) == bytes);
}

TEST_CASE("a whole file is the old one or the new one at any point of a power cut") {
  bool was_cut = true;
  for (uint64_t cut = 0; was_cut; ++cut) {
    CAPTURE(cut);
    for (const test::Unsynced unsynced : {test::Unsynced::kLost, test::Unsynced::kKept, test::Unsynced::kTorn}) {
      test::FaultFs fs;
      REQUIRE(fs.CreateFolders("d").ok());
      REQUIRE(WriteWhole(fs, "d/file", "the old contents").ok());
      fs.CutPowerAt(fs.mutating_calls() + cut);
      const bool ok = WriteWhole(fs, "d/file", "something new").ok();
      was_cut = fs.power_is_off();
      const std::string after = fs.AfterReboot(unsynced, cut)->Bytes("d/file");
      CHECK((after == "something new" || (!ok && after == "the old contents")));
      // What a crash has left behind does not stand in the way.
      const auto next = fs.AfterReboot(test::Unsynced::kKept);
      REQUIRE(WriteWhole(*next, "d/file", "newest").ok());
      CHECK(next->Paths() == std::vector<std::string>{"d/file"});
    }
  }
}

TEST_CASE("a whole file that does not fit leaves the old one and no debris") {
  test::FaultFs fs;
  REQUIRE(fs.CreateFolders("d").ok());
  REQUIRE(WriteWhole(fs, "d/file", "old").ok());
  fs.SetSpace(5);
  CHECK(absl::IsResourceExhausted(WriteWhole(fs, "d/file", "too long for it")));
  CHECK(*fs.ReadAll("d/file") == "old");
  CHECK(fs.inner().Paths() == std::vector<std::string>{"d/file"});
}

TEST_CASE("the memory files lose at a power cut what was not synced") {
  test::MemFs fs;
  REQUIRE(fs.CreateFolders("d").ok());
  auto file = fs.Create("d/file");
  REQUIRE(file.ok());
  REQUIRE((*file)->Append("synced").ok());
  REQUIRE((*file)->Sync().ok());
  CHECK(fs.AfterReboot()->Paths().empty());  // the name is not durable yet
  REQUIRE(fs.SyncFolder("d").ok());
  REQUIRE((*file)->Append(" not").ok());
  CHECK(fs.AfterReboot()->Bytes("d/file") == "synced");
  CHECK(fs.AfterReboot(test::Unsynced::kKept)->Bytes("d/file") == "synced not");
  REQUIRE(fs.Rename("d/file", "d/renamed").ok());
  CHECK(fs.AfterReboot()->Paths() == std::vector<std::string>{"d/file"});
  REQUIRE(fs.SyncFolder("d").ok());
  CHECK(fs.AfterReboot()->Paths() == std::vector<std::string>{"d/renamed"});
  fs.LoseUnsynced("d/renamed");
  REQUIRE((*file)->Append("!").ok());
  REQUIRE((*file)->Sync().ok());
  CHECK(fs.Bytes("d/renamed") == "synced not!");
  CHECK(fs.AfterReboot()->Bytes("d/renamed") == std::string("synced\0\0\0\0!", 11));
}

TEST_CASE("appending and syncing at the same time is fine") {
  const Scratch scratch;
  PosixFileSystem fs;
  auto file = fs.Create(scratch.path() + "/file");
  REQUIRE(file.ok());
  bool synced = true;
  std::thread syncer([&] {
    for (int i = 0; i < 20; ++i) synced = synced && (*file)->Sync().ok();
  });
  bool appended = true;
  for (int i = 0; i < 2000; ++i) appended = appended && (*file)->Append("0123456789").ok();
  syncer.join();
  CHECK(synced);
  CHECK(appended);
  CHECK(fs.ReadAll(scratch.path() + "/file")->size() == 20'000);
}

}  // namespace
}  // namespace varve::fs
