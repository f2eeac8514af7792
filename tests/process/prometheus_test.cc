// The real thing: Debian's prometheus scrapes Debian's node_exporter and itself every second and remote_writes to
// Varve; then both are asked the same questions over the same closed interval.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>

#include "server/http/client.h"
#include "server/http/message.h"
#include "storage/base/strings.h"
#include "tests/support/process.h"
#include "tools/varvectl/json.h"

namespace varve::test {
namespace {

using ctl::Json;

// Debian's version closes windows on the left, Varve opens them there: no sample may lie on an edge, see EvalFraction.
const std::vector<std::string> kQueries = {
    "up",
    "node_load1",
    "node_cpu_seconds_total",
    "node_cpu_seconds_total{mode=\"idle\"}",
    "node_cpu_seconds_total{mode=~\"id.*|user\",cpu!=\"7\"}",
    "{__name__=~\"node_memory_Mem.*\"}",
    "rate(node_cpu_seconds_total[10s])",
    "irate(node_cpu_seconds_total{mode!=\"idle\"}[10s])",
    "increase(prometheus_http_requests_total[15s])",
    "sum by (mode) (rate(node_cpu_seconds_total[10s]))",
    "sum without (cpu) (rate(node_cpu_seconds_total[10s]))",
    "avg(node_cpu_seconds_total) by (instance)",
    "max by (job) (scrape_duration_seconds)",
    "min(scrape_samples_scraped)",
    "count by (__name__) ({job=\"node\"})",
    "stddev(node_cpu_seconds_total)",
    "stdvar by (mode) (node_cpu_seconds_total)",
    "topk(3, node_cpu_seconds_total)",
    "bottomk(2, node_cpu_seconds_total{mode=\"idle\"})",
    "quantile(0.7, node_cpu_seconds_total)",
    "count_values(\"v\", up)",
    "node_memory_MemTotal_bytes - node_memory_MemFree_bytes",
    "node_memory_MemFree_bytes / node_memory_MemTotal_bytes * 100",
    "node_cpu_seconds_total{mode=\"user\"} / ignoring(mode) group_left sum without (mode) (node_cpu_seconds_total)",
    "node_load1 > bool 0.0001",
    "node_load1 and on (instance) up",
    "up or node_load5",
    "node_load1 unless node_load1",
    "avg_over_time(node_load1[15s])",
    "max_over_time(scrape_duration_seconds[20s]) - min_over_time(scrape_duration_seconds[20s])",
    "quantile_over_time(0.9, scrape_duration_seconds[20s])",
    "stddev_over_time(go_goroutines[20s])",
    "count_over_time(up[17s])",
    "changes(go_memstats_alloc_bytes[20s])",
    "deriv(go_memstats_alloc_bytes[20s])",
    "predict_linear(go_memstats_alloc_bytes[20s], 60)",
    "histogram_quantile(0.9, sum by (le) (rate(prometheus_tsdb_compaction_chunk_range_seconds_bucket[20s])))",
    "histogram_quantile(0.5, prometheus_http_response_size_bytes_bucket)",
    "max_over_time(rate(node_cpu_seconds_total{mode=\"idle\"}[5s])[10s:1s])",
    "node_load1 offset 7s",
    "sum_over_time(up[10s] offset 3s)",
    "label_replace(up, \"host\", \"$1\", \"instance\", \"(.*):.*\")",
    "absent(nonexistent_metric{a=\"b\"})",
    "clamp_max(node_load1, 0.5)",
    "round(node_memory_MemFree_bytes / 1e6, 0.5)",
    "ln(node_memory_MemTotal_bytes) + sqrt(node_load15)",
    "timestamp(up) - time()",
    "vector(1) + scalar(count(up))",
};

void Fetch(const std::string& url, Json* out, std::string* raw) {
  const auto answer = http::Get(url, {}, 30'000);
  REQUIRE(answer.ok());
  *raw = answer->body;
  auto json = Json::Parse(answer->body);
  REQUIRE(json.ok());
  *out = *std::move(json);
}

bool Near(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const double x = *base::ParseDouble(a);
  const double y = *base::ParseDouble(b);
  if (std::isnan(x) && std::isnan(y)) return true;
  return std::abs(x - y) <= 1e-9 * std::max(std::abs(x), std::abs(y));
}

// "" when equal. Order of an instant vector is not defined, so both go by label text.
std::string Difference(const Json& theirs, const Json& ours) {
  if (theirs["status"].text != ours["status"].text) return "status";
  if (theirs["data"]["resultType"].text != ours["data"]["resultType"].text) return "result type";
  const auto by_labels = [](const Json& result) {
    std::map<std::string, const Json*> out;
    for (const Json& series : result.items) {
      std::string key;
      std::map<std::string, std::string> labels;
      for (const auto& [name, value] : series["metric"].members) labels[name] = value.text;
      for (const auto& [name, value] : labels) base::StrAppend(key, name, "=", value, ";");
      out[key] = &series;
    }
    return out;
  };
  const auto a = by_labels(theirs["data"]["result"]);
  const auto b = by_labels(ours["data"]["result"]);
  for (const auto& [key, series] : a) {
    if (b.count(key) == 0) return "missing series " + key;
  }
  for (const auto& [key, series] : b) {
    const auto it = a.find(key);
    if (it == a.end()) return "extra series " + key;
    std::vector<Json> x = (*it->second)["values"].items;
    std::vector<Json> y = (*series)["values"].items;
    if (!(*it->second)["value"].is_null()) x.push_back((*it->second)["value"]);
    if (!(*series)["value"].is_null()) y.push_back((*series)["value"]);
    if (x.size() != y.size()) return base::StrCat(key, ": ", x.size(), " points against ", y.size());
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i][0].number() != y[i][0].number())
        return base::StrCat(key, ": time ", x[i][0].text, " against ", y[i][0].text);
      if (!Near(x[i][1].text, y[i][1].text)) {
        return base::StrCat(key, " at ", x[i][0].text, ": ", x[i][1].text, " against ", y[i][1].text);
      }
    }
  }
  return "";
}

TEST_CASE("Varve answers as the Prometheus that wrote into it") {
  const std::string prometheus_path =
      getenv("PROMETHEUS_BIN") != nullptr ? getenv("PROMETHEUS_BIN") : FindProgram("prometheus");
  const std::string exporter_path = FindProgram("prometheus-node-exporter");
  if (prometheus_path.empty() || exporter_path.empty()) {
    std::cout << "SKIPPED: prometheus or prometheus-node-exporter is not installed\n";
    return;
  }
  TempDir dir;
  auto varve = StartVarve(dir / "data");
  REQUIRE(varve.ok());
  const int exporter_port = FreePort();
  auto exporter = Process::Start({exporter_path, base::StrCat("--web.listen-address=127.0.0.1:", exporter_port)},
                                 dir / "exporter.log");
  REQUIRE(exporter.ok());
  const int prometheus_port = FreePort();
  std::ofstream(dir / "prometheus.yml") << base::StrCat(
      "global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\nscrape_configs:\n  - job_name: node\n    "
      "static_configs:\n      - targets: ['127.0.0.1:",
      exporter_port,
      "']\n  - job_name: prometheus\n    static_configs:\n      - targets: ['127.0.0.1:", prometheus_port,
      "']\nremote_write:\n  - url: ", varve->url(), "/api/v1/write\n");
  auto prometheus = Process::Start(
      {prometheus_path, "--config.file=" + (dir / "prometheus.yml"), "--storage.tsdb.path=" + (dir / "prometheus-data"),
       base::StrCat("--web.listen-address=127.0.0.1:", prometheus_port)},
      dir / "prometheus.log");
  REQUIRE(prometheus.ok());
  const std::string theirs = base::StrCat("http://127.0.0.1:", prometheus_port);

  Json answer;
  std::string raw;
  // 40 scrapes of both targets have arrived here.
  const auto scrapes = [&](const std::string& url) {
    const auto got =
        http::Get(url + "/api/v1/query?query=" + http::PercentEncode("min(count_over_time(up[5m]))"), {}, 5000);
    if (!got.ok() || got->status != 200) return 0.0;
    const auto json = Json::Parse(got->body);
    if (!json.ok() || (*json)["data"]["result"].items.empty()) return 0.0;
    return *base::ParseDouble((*json)["data"]["result"][0]["value"][1].text);
  };
  REQUIRE(Eventually([&] { return scrapes(varve->url()) >= 40; }, 120'000));

  // Evaluate where no target is scraped: halfway through the larger gap between the two scrape phases, so that no
  // window edge (whole seconds back) falls onto a sample.
  Fetch(theirs + "/api/v1/query?query=" + http::PercentEncode("timestamp(up)"), &answer, &raw);
  std::vector<double> phases;
  double newest = 1e18;
  for (const Json& series : answer["data"]["result"].items) {
    const double t = *base::ParseDouble(series["value"][1].text);
    newest = std::min(newest, t);
    phases.push_back(t - std::floor(t));
  }
  REQUIRE(phases.size() == 2);
  std::sort(phases.begin(), phases.end());
  const double inner = phases[1] - phases[0];
  double fraction = inner > 0.5 ? phases[0] + inner / 2 : phases[1] + (1 - inner) / 2;
  fraction = std::round((fraction - std::floor(fraction)) * 1000) / 1000;
  const double end = std::floor(newest) - 3 + fraction;
  const double start = end - 12;
  // Everything up to `end` has arrived.
  REQUIRE(Eventually([&] {
    const auto got =
        http::Get(varve->url() + "/api/v1/query?query=" + http::PercentEncode("min(timestamp(up))"), {}, 5000);
    if (!got.ok()) return false;
    const auto json = Json::Parse(got->body);
    return json.ok() && !(*json)["data"]["result"].items.empty() &&
           *base::ParseDouble((*json)["data"]["result"][0]["value"][1].text) > end + 1;
  }));

  size_t compared = 0;
  for (const std::string& query : kQueries) {
    for (const bool range : {false, true}) {
      const std::string target = range
                                     ? base::StrCat("/api/v1/query_range?query=", http::PercentEncode(query),
                                                    "&start=", start, "&end=", end, "&step=3")
                                     : base::StrCat("/api/v1/query?query=", http::PercentEncode(query), "&time=", end);
      Json a;
      Json b;
      std::string raw_a;
      std::string raw_b;
      Fetch(theirs + target, &a, &raw_a);
      Fetch(varve->url() + target, &b, &raw_b);
      INFO(target);
      INFO("Prometheus: " << raw_a.substr(0, 600));
      INFO("Varve:      " << raw_b.substr(0, 600));
      CHECK(Difference(a, b) == "");
      ++compared;
    }
  }
  std::cout << compared << " answers compared, " << kQueries.size() << " queries\n";
  CHECK(compared >= 80);
  CHECK(prometheus->Stop(70'000) == 0);  // before the target of its remote write goes
  CHECK(varve->process.Stop() == 0);
}

}  // namespace
}  // namespace varve::test
