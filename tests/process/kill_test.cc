// kill -9 under load: what was acknowledged is there after every restart, and nothing that was never sent.
#include <atomic>
#include <bit>
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "server/http/client.h"
#include "storage/base/dice.h"
#include "storage/base/strings.h"
#include "tests/support/process.h"
#include "tests/support/remote_write.h"
#include "tools/varvectl/json.h"

namespace varve::test {
namespace {

using ctl::Json;

constexpr int kSeries = 40;
constexpr int kKills = 10;

// Values whose text form gives every bit back: all but NaN.
double ValueOf(uint64_t seed, int series, int64_t request) {
  base::Dice dice(seed ^ (static_cast<uint64_t>(series) << 40) ^ static_cast<uint64_t>(request));
  switch (dice.Below(6)) {
    case 0:
      return static_cast<double>(request);
    case 1:
      return -0.0;
    case 2:
      return static_cast<double>(dice.Between(-1000000, 1000000)) / 1000.0;
    case 3:
      return 1.0;
    default: {
      const double v = std::bit_cast<double>(dice.Next());
      return v != v ? 0.5 : v;
    }
  }
}

struct Log {  // what the sender knows, by request number
  std::atomic<int64_t> sent{0};
  std::vector<int64_t> acknowledged;
};

// Every stored sample by (series, time), as text, from one instant query.
std::map<std::pair<int, int64_t>, double> ReadAll(const std::string& url, int64_t at_ms) {
  std::map<std::pair<int, int64_t>, double> out;
  const auto answer =
      http::Get(base::StrCat(url, "/api/v1/query?query=kill_test%5B1h%5D&time=", static_cast<double>(at_ms) / 1000.0),
                {}, 60'000);
  REQUIRE(answer.ok());
  INFO(answer->body.substr(0, 500));
  REQUIRE(answer->status == 200);
  const auto json = Json::Parse(answer->body);
  REQUIRE(json.ok());
  for (const Json& series : (*json)["data"]["result"].items) {
    const int id = std::stoi(series["metric"]["id"].text);
    for (const Json& value : series["values"].items) {
      const auto t = static_cast<int64_t>(value[0].number() * 1000 + 0.5);
      out[{id, t}] = *base::ParseDouble(value[1].text);
    }
  }
  return out;
}

TEST_CASE("acknowledged samples survive ten kills at random moments") {
  const uint64_t seed = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  INFO("seed " << seed);
  base::Dice dice(seed);
  TempDir dir;
  const int64_t base_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count() -
      600'000;
  const auto time_of = [&](int64_t request) { return base_ms + 10 * request; };
  Log log;
  // Small segments and frequent checkpoints, so that kills meet all of them.
  const std::vector<std::string> flags = {"--wal.segment-bytes", "1MiB", "--head.checkpoint-interval", "1s"};
  auto varve = StartVarve(dir / "data", flags);
  REQUIRE(varve.ok());
  for (int kill = 0; kill < kKills; ++kill) {
    std::atomic<bool> stop{false};
    std::thread sender([&, url = varve->url()] {
      while (!stop) {
        const int64_t request = log.sent++;
        std::vector<SentSeries> series;
        for (int s = 0; s < kSeries; ++s) {
          series.push_back(
              {{{"__name__", "kill_test"}, {"id", base::StrCat(s)}}, {{time_of(request), ValueOf(seed, s, request)}}});
        }
        const auto answer = SendRemoteWrite(url, EncodeRemoteWrite(series), {}, 2'000);
        if (answer.ok() && answer->status / 100 == 2) log.acknowledged.push_back(request);
      }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(dice.Between(100, 1500)));  // the random moment
    varve->process.Kill();
    stop = true;
    sender.join();
    varve = StartVarve(dir / "data", flags);
    REQUIRE(varve.ok());

    const auto stored = ReadAll(varve->url(), time_of(log.sent) + 1);
    size_t missing = 0;
    size_t wrong = 0;
    size_t invented = 0;
    for (const int64_t request : log.acknowledged) {
      for (int s = 0; s < kSeries; ++s) {
        const auto it = stored.find({s, time_of(request)});
        if (it == stored.end())
          ++missing;
        else if (std::bit_cast<uint64_t>(it->second) != std::bit_cast<uint64_t>(ValueOf(seed, s, request)))
          ++wrong;
      }
    }
    for (const auto& [key, value] : stored) {
      const int64_t request = (key.second - base_ms) / 10;
      const bool was_sent =
          request >= 0 && request < log.sent && time_of(request) == key.second &&
          std::bit_cast<uint64_t>(value) == std::bit_cast<uint64_t>(ValueOf(seed, key.first, request));
      if (!was_sent) ++invented;
    }
    INFO("after kill " << kill + 1 << ", " << log.acknowledged.size() << " requests acknowledged");
    CHECK(missing == 0);
    CHECK(wrong == 0);
    CHECK(invented == 0);
  }
  CHECK(log.acknowledged.size() > 20);
}

}  // namespace
}  // namespace varve::test
