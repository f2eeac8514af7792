// Damaged files: the server starts, says what it lost, and keeps the rest.
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "server/http/client.h"
#include "storage/base/strings.h"
#include "tests/support/process.h"
#include "tests/support/remote_write.h"
#include "tools/varvectl/json.h"

namespace varve::test {
namespace {

using ctl::Json;

namespace stdfs = std::filesystem;

std::string Slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {(std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>()};
}
void Spill(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// A stopped server's data directory with kRequests requests of one sample of one series each.
struct World {
  static constexpr int kRequests = 1500;
  TempDir dir;
  int64_t base_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count() -
      600'000;
  const std::vector<std::string> flags = {"--head.shards",       "1",    "--head.checkpoint-interval", "1h",
                                          "--wal.segment-bytes", "64KiB"};
  std::string data() const { return dir / "data"; }
  std::string log_text() const { return Slurp(data() + ".log"); }

  void Send(Varve& varve, int from, int to) {
    for (int i = from; i < to; ++i) {
      std::vector<SentSeries> series;
      for (int s = 0; s < 30; ++s) {
        series.push_back({{{"__name__", "damage"}, {"id", base::StrCat(s)}}, {{base_ms + i * 100, i * 0.1}}});
      }
      const auto answer = SendRemoteWrite(varve.url(), EncodeRemoteWrite(series));
      REQUIRE(answer.ok());
      REQUIRE(answer->status == 204);
    }
  }
  void Fill() {
    auto varve = StartVarve(data(), flags);
    REQUIRE(varve.ok());
    Send(*varve, 0, kRequests);
    varve->process.Kill();
  }
  std::vector<std::string> Segments() const {
    std::set<std::string> paths;
    for (const auto& entry : stdfs::directory_iterator(data() + "/shards/0/wal")) paths.insert(entry.path().string());
    return {paths.begin(), paths.end()};
  }
  // Requests of which all samples are there, after a start.
  std::set<int> Stored() {
    auto varve = StartVarve(data(), flags);
    REQUIRE(varve.ok());
    const auto answer = http::Get(base::StrCat(varve->url(), "/api/v1/query?query=damage%5B1h%5D&time=",
                                               static_cast<double>(base_ms + kRequests * 1000) / 1000.0),
                                  {}, 30'000);
    REQUIRE(answer.ok());
    const auto json = Json::Parse(answer->body);
    REQUIRE(json.ok());
    std::map<int, int> counts;
    for (const Json& series : (*json)["data"]["result"].items) {
      for (const Json& value : series["values"].items) {
        const auto t = static_cast<int64_t>(value[0].number() * 1000 + 0.5);
        const auto request = static_cast<int>((t - base_ms) / 100);
        CHECK(*base::ParseDouble(value[1].text) == request * 0.1);
        ++counts[request];
      }
    }
    // It takes writes again as well.
    Send(*varve, kRequests, kRequests + 1);
    CHECK(varve->process.Stop() == 0);
    std::set<int> whole;
    for (const auto& [request, n] : counts) {
      CHECK(n == 30);
      whole.insert(request);
    }
    return whole;
  }
};

TEST_CASE("a torn last record costs only itself") {
  World world;
  world.Fill();
  const std::string last = world.Segments().back();
  const std::string bytes = Slurp(last);
  Spill(last, bytes.substr(0, bytes.size() - 7));
  const auto stored = world.Stored();
  CHECK(stored.size() == World::kRequests - 1);
  CHECK(stored.count(World::kRequests - 1) == 0);
}

TEST_CASE("a flipped byte in the middle of the log is named and costs one request") {
  World world;
  world.Fill();
  const auto segments = world.Segments();
  REQUIRE(segments.size() >= 3);
  std::string bytes = Slurp(segments[1]);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x20);
  Spill(segments[1], bytes);
  const auto stored = world.Stored();
  CHECK(stored.size() == World::kRequests - 1);
  CHECK(world.log_text().find("cannot be read") != std::string::npos);
  CHECK(world.log_text().find("quarantine") != std::string::npos);
}

TEST_CASE("a truncated segment loses its end and nothing else") {
  World world;
  world.Fill();
  const auto segments = world.Segments();
  REQUIRE(segments.size() >= 3);
  const std::string bytes = Slurp(segments[1]);
  Spill(segments[1], bytes.substr(0, bytes.size() / 2));
  const auto stored = world.Stored();
  CHECK(stored.size() < World::kRequests);
  CHECK(stored.size() > World::kRequests / 2);
  CHECK(stored.count(0) == 1);
  CHECK(stored.count(World::kRequests - 1) == 1);
  CHECK(world.log_text().find("cannot be read") != std::string::npos);
}

TEST_CASE("an unreadable newest checkpoint falls back to the one before and a longer replay") {
  World world;
  {
    auto varve = StartVarve(world.data(), world.flags);
    REQUIRE(varve.ok());
    world.Send(*varve, 0, 500);
    REQUIRE(varve->process.Stop() == 0);  // a clean stop writes a checkpoint
    varve = StartVarve(world.data(), world.flags);
    REQUIRE(varve.ok());
    world.Send(*varve, 500, 1000);
    REQUIRE(varve->process.Stop() == 0);
    varve = StartVarve(world.data(), world.flags);
    REQUIRE(varve.ok());
    world.Send(*varve, 1000, World::kRequests);
    varve->process.Kill();
  }
  std::set<std::string> checkpoints;
  for (const auto& entry : stdfs::directory_iterator(world.data() + "/shards/0/checkpoints")) {
    checkpoints.insert(entry.path().string());
  }
  REQUIRE(checkpoints.size() == 2);
  SECTION("the newest has a flipped byte") {
    std::string bytes = Slurp(*checkpoints.rbegin());
    for (size_t i = 0; i < bytes.size(); i += 97) bytes[i] = static_cast<char>(bytes[i] ^ 1);
    Spill(*checkpoints.rbegin(), bytes);
    CHECK(world.Stored().size() == World::kRequests);
    CHECK(world.log_text().find("is unreadable") != std::string::npos);
  }
  SECTION("the newest is empty") {
    Spill(*checkpoints.rbegin(), "");
    CHECK(world.Stored().size() == World::kRequests);
  }
  SECTION("the manifest is garbage") {
    Spill(world.data() + "/shards/0/MANIFEST", "garbage");
    CHECK(world.Stored().size() == World::kRequests);
    CHECK(world.log_text().find("manifest is unreadable") != std::string::npos);
  }
  SECTION("both are gone: it starts, says so and takes writes") {
    for (const std::string& path : checkpoints) Spill(path, "");
    world.Stored();
    CHECK(world.log_text().find("there is no older one") != std::string::npos);
    // What the log still has came back if its series did, and the new request is there in any case.
    CHECK(world.Stored().count(World::kRequests) == 1);
  }
}

}  // namespace
}  // namespace varve::test
