// A disk that fills up: writes are refused with 503, reads go on, and when space returns so do the writes.
#include <sys/mount.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "server/http/client.h"
#include "storage/base/strings.h"
#include "tests/support/process.h"
#include "tests/support/remote_write.h"
#include "tools/varvectl/json.h"

namespace varve::test {
namespace {

using ctl::Json;

struct SmallDisk {
  explicit SmallDisk(const std::string& folder) : path(folder) {
    std::filesystem::create_directories(path);
    mounted = mount("tmpfs", path.c_str(), "tmpfs", 0, "size=12m") == 0;
  }
  ~SmallDisk() {
    if (mounted) umount2(path.c_str(), MNT_DETACH);
  }
  std::string path;
  bool mounted = false;
};

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int SendOne(const Varve& varve, int64_t t_ms, int series_count) {
  std::vector<SentSeries> series;
  for (int i = 0; i < series_count; ++i) {
    series.push_back({{{"__name__", "fill"}, {"id", base::StrCat(i)}}, {{t_ms, static_cast<double>(t_ms % 1000) + i}}});
  }
  const auto answer = SendRemoteWrite(varve.url(), EncodeRemoteWrite(series));
  if (!answer.ok()) return -1;
  if (answer->status == 503) CHECK(answer->Header("retry-after") != "");
  return answer->status;
}

double CountOf(const Varve& varve, int64_t t_ms) {
  const auto answer = http::Get(
      base::StrCat(varve.url(),
                   "/api/v1/query?query=sum(count_over_time(fill%5B1h%5D))&time=", static_cast<double>(t_ms) / 1000.0),
      {}, 10'000);
  REQUIRE(answer.ok());
  REQUIRE(answer->status == 200);
  const auto json = Json::Parse(answer->body);
  REQUIRE(json.ok());
  if ((*json)["data"]["result"].items.empty()) return 0;
  return *base::ParseDouble((*json)["data"]["result"][0]["value"][1].text);
}

TEST_CASE("a full disk refuses writes with 503 and recovers when space returns") {
  TempDir dir;
  SmallDisk disk(dir / "disk");
  if (!disk.mounted) {
    std::cout << "SKIPPED: cannot mount a small tmpfs here\n";
    return;
  }
  const std::string ballast = disk.path + "/ballast";
  std::ofstream(ballast, std::ios::binary) << std::string(7 << 20, 'x');
  auto varve = StartVarve(disk.path + "/data", {"--wal.segment-bytes", "1MiB", "--head.shards", "1"});
  REQUIRE(varve.ok());

  constexpr int kSeries = 500;
  int64_t t = NowMs() - 900'000;
  int64_t acknowledged = 0;
  int status = 204;
  for (int i = 0; i < 20'000 && status == 204; ++i) {
    t += 10;
    status = SendOne(*varve, t, kSeries);
    if (status == 204) ++acknowledged;
  }
  REQUIRE(status == 503);
  CHECK(acknowledged > 0);
  // Alive, and everything acknowledged can be read.
  CHECK(http::Get(varve->url() + "/healthy", {}, 5000)->status == 200);
  CHECK(CountOf(*varve, t) == static_cast<double>(acknowledged * kSeries));

  std::filesystem::remove(ballast);
  CHECK(Eventually([&] { return SendOne(*varve, t, kSeries) == 204; }));
  ++acknowledged;
  for (int i = 0; i < 20; ++i) {
    t += 10;
    CHECK(SendOne(*varve, t, kSeries) == 204);
    ++acknowledged;
  }
  CHECK(CountOf(*varve, t) == static_cast<double>(acknowledged * kSeries));

  // And all of it is still there after a kill.
  varve->process.Kill();
  varve = StartVarve(disk.path + "/data", {"--head.shards", "1"});
  REQUIRE(varve.ok());
  CHECK(CountOf(*varve, t) == static_cast<double>(acknowledged * kSeries));
}

}  // namespace
}  // namespace varve::test
