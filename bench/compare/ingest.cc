// bench_ingest: the same remote write bytes into Varve, Debian's prometheus and Debian's victoria-metrics, one after
// the other, each pinned to one core, the sender to another. Prints CPU per sample, memory per series, bytes per sample
// and restart times as a Markdown table with ratios. Every number stands only if the system then answers by PromQL that
// it has all that was sent.
#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "server/http/client.h"
#include "storage/base/strings.h"
#include "tests/support/process.h"
#include "tools/loadgen/run.h"
#include "tools/varvectl/json.h"

namespace varve::bench {
namespace {

namespace stdfs = std::filesystem;
using base::StrCat;

struct Options {
  std::vector<uint64_t> series = {200'000, 1'000'000};
  int64_t scrapes = 16;
  int64_t interval_ms = 15'000;
  std::vector<std::string> pages;
  std::vector<std::string> systems = {"varve", "prometheus", "victoria-metrics"};
  std::string folder;
  std::string varve;
  std::string output;
  int server_core = 1, sender_core = 0;
  int64_t settle_ms = 5'000;
  double churn = 0;
  int version = 1;
  std::vector<std::string> varve_flags;
};

struct Row {
  std::string system, version;
  double new_series_us = 0, sample_ns = 0, rss_per_series = 0, rss_mb = 0, bytes_per_sample = 0;
  double restart_s = 0, ack_p99_ms = 0, sample_wall_m = 0;
  std::string problem;  // "" when everything sent is stored
};

double CpuSeconds(pid_t pid) {
  std::ifstream in(StrCat("/proc/", pid, "/stat"));
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto fields = base::StrSplit(std::string_view(text).substr(text.rfind(')') + 2), ' ');
  if (fields.size() < 14) return 0;
  return static_cast<double>(*base::ParseInt64(fields[11]) + *base::ParseInt64(fields[12])) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

double RssBytes(pid_t pid) {
  std::ifstream in(StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::strtod(line.c_str() + 6, nullptr) * 1024;
  }
  return 0;
}

double FolderBytes(const std::string& folder) {
  double bytes = 0;
  std::error_code error;
  for (stdfs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->is_regular_file(error)) bytes += static_cast<double>(it->file_size(error));
  }
  return bytes;
}

std::string FirstLine(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return "";
  char line[512] = "";
  const bool read = std::fgets(line, sizeof line, pipe) != nullptr;
  pclose(pipe);
  return read ? std::string(base::StrTrim(line)) : "";
}

struct System {
  std::string name;
  std::function<std::vector<std::string>(const std::string& data, int port)> command;
  std::vector<std::string> environment;
  std::string push_path = "/api/v1/write";
  std::string ready_path = "/-/ready";
  std::string version_command;
  // Brings what is in memory to disk and tells the folders whose bytes count: samples and index, no logs and caches.
  std::function<std::vector<std::string>(const std::string& url, const std::string& data)> settle;
};

std::vector<System> AllSystems(const Options& options) {
  std::vector<System> out;
  System varve;
  varve.name = "varve";
  varve.command = [&options](const std::string& data, int port) {
    std::vector<std::string> command = {options.varve,
                                        "--data-dir",
                                        data,
                                        "--http.listen",
                                        StrCat("127.0.0.1:", port),
                                        "--grpc.listen",
                                        "",
                                        "--head.shards",
                                        "1",
                                        "--http.threads",
                                        "1"};
    command.insert(command.end(), options.varve_flags.begin(), options.varve_flags.end());
    return command;
  };
  varve.ready_path = "/ready";
  varve.version_command = options.varve + " --version";
  varve.settle = [](const std::string& url, const std::string& data) {
    const auto answer = http::Post(url + "/api/v1/admin/tsdb/flush", {}, "", 600'000);
    if (!answer.ok() || answer->status != 204) return std::vector<std::string>();
    return std::vector<std::string>{data + "/shards/0/blocks"};
  };
  out.push_back(varve);

  System prometheus;
  prometheus.name = "prometheus";
  prometheus.command = [](const std::string& data, int port) {
    stdfs::create_directories(data);
    std::ofstream(data + "/prometheus.yml") << "global:\n  scrape_interval: 15s\n";
    return std::vector<std::string>{test::FindProgram("prometheus"),
                                    "--config.file=" + data + "/prometheus.yml",
                                    "--storage.tsdb.path=" + data + "/tsdb",
                                    StrCat("--web.listen-address=127.0.0.1:", port),
                                    "--web.enable-remote-write-receiver",
                                    "--web.enable-admin-api",
                                    "--query.max-samples=500000000",
                                    "--query.timeout=10m",
                                    "--log.level=warn"};
  };
  prometheus.environment = {"GOMAXPROCS=1"};
  prometheus.version_command = "prometheus --version";
  prometheus.settle = [](const std::string& url, const std::string& data) {
    const auto answer = http::Post(url + "/api/v1/admin/tsdb/snapshot", {}, "", 900'000);
    if (!answer.ok() || answer->status != 200) return std::vector<std::string>();
    const auto json = ctl::Json::Parse(answer->body);
    if (!json.ok()) return std::vector<std::string>();
    return std::vector<std::string>{data + "/tsdb/snapshots/" + (*json)["data"]["name"].text};
  };
  out.push_back(prometheus);

  System victoria;
  victoria.name = "victoria-metrics";
  victoria.command = [](const std::string& data, int port) {
    return std::vector<std::string>{test::FindProgram("victoria-metrics"),
                                    "-storageDataPath=" + data,
                                    StrCat("-httpListenAddr=127.0.0.1:", port),
                                    "-retentionPeriod=100y",
                                    "-search.latencyOffset=0s",
                                    "-search.maxUniqueTimeseries=100000000",
                                    "-search.maxSamplesPerQuery=10000000000",
                                    "-search.maxQueryDuration=10m",
                                    "-search.disableCache",
                                    "-loggerLevel=WARN"};
  };
  victoria.environment = {"GOMAXPROCS=1"};
  victoria.ready_path = "/health";
  victoria.version_command = "dpkg-query -W -f 'victoria-metrics ${Version}' victoria-metrics";
  victoria.settle = [](const std::string& url, const std::string& data) {
    http::Get(url + "/internal/force_flush", {}, 600'000).IgnoreError();
    http::Get(url + "/internal/force_merge", {}, 900'000).IgnoreError();
    // The merge runs by itself; its metric says when it is through.
    test::Eventually(
        [&] {
          const auto page = http::Get(url + "/metrics", {}, 10'000);
          return page.ok() && page->body.find("vm_active_force_merges 0") != std::string::npos;
        },
        300'000);
    return std::vector<std::string>{data + "/data", data + "/indexdb"};
  };
  out.push_back(victoria);
  return out;
}

struct Running {
  test::Process process;
  std::string url;
};

absl::StatusOr<Running> Launch(const Options& options, const System& system, const std::string& data, int port) {
  std::vector<std::string> command = {test::FindProgram("taskset"), "-c", StrCat(options.server_core)};
  for (const std::string& word : system.command(data, port)) command.push_back(word);
  Running out;
  out.url = StrCat("http://127.0.0.1:", port);
  ASSIGN_OR_RETURN(out.process, test::Process::Start(command, data + ".log", system.environment));
  const bool up = test::Eventually(
      [&] {
        if (!out.process.Running()) return true;
        const auto answer = http::Get(out.url + system.ready_path, {}, 2'000);
        return answer.ok() && answer->status == 200;
      },
      900'000);
  if (!up || !out.process.Running())
    return absl::UnavailableError(StrCat(system.name, " does not start, see ", data, ".log"));
  return out;
}

// What count(`selector`) says at `time`; -1 when there is no answer.
double Count(const std::string& url, const std::string& encoded_selector, int64_t time_ms) {
  const auto answer = http::Get(
      StrCat(url, "/api/v1/query?query=count(", encoded_selector, ")&time=", static_cast<double>(time_ms) / 1000.0), {},
      600'000);
  if (!answer.ok() || answer->status != 200) return -1;
  const auto json = ctl::Json::Parse(answer->body);
  if (!json.ok() || (*json)["data"]["result"].items.empty()) return -1;
  return *base::ParseDouble((*json)["data"]["result"][0]["value"][1].text);
}

constexpr char kEverything[] = "%7Bjob%3D~%22loadgen.%2B%22%7D";

Row Measure(const Options& options, const System& system, uint64_t series, const std::vector<loadgen::Page>& pages) {
  Row row;
  row.system = system.name;
  row.version = FirstLine(system.version_command);
  const base::SystemClock clock;
  loadgen::FleetConfig fleet_config;
  fleet_config.series = series;
  fleet_config.interval_ms = options.interval_ms;
  fleet_config.churn = options.churn;
  fleet_config.start_ms = clock.NowMs() - options.scrapes * options.interval_ms;
  const auto fleet = loadgen::Fleet::Create(fleet_config, pages);
  if (!fleet.ok()) {
    row.problem = base::Message(fleet.status());
    return row;
  }
  const std::string data = StrCat(options.folder, "/", system.name, "-", series);
  stdfs::remove_all(data);
  stdfs::create_directories(data);
  const int port = test::FreePort();
  auto running = Launch(options, system, data, port);
  if (!running.ok()) {
    row.problem = base::Message(running.status());
    return row;
  }
  loadgen::RunConfig run;
  run.url = running->url + system.push_path;
  run.connections = 2;
  run.version = options.version;
  run.timeout_ms = 120'000;
  const auto send = [&](int64_t from, int64_t to) {
    run.first_scrape = from;
    run.scrapes = to;
    return loadgen::Run(*fleet, run, clock);
  };
  std::fprintf(stderr, "%s, %lu series: first scrape ...\n", system.name.c_str(), static_cast<unsigned long>(series));
  const double before_first = CpuSeconds(running->process.pid());
  const loadgen::Summary first = send(0, 1);
  const double after_first = CpuSeconds(running->process.pid());
  std::fprintf(stderr, "%s: %lld more scrapes ...\n", system.name.c_str(), static_cast<long long>(options.scrapes - 1));
  const loadgen::Summary steady = send(1, options.scrapes);
  const double after_steady = CpuSeconds(running->process.pid());
  if (!first.complete || !steady.complete || first.refused_samples + steady.refused_samples > 0) {
    row.problem = StrCat("not everything was taken: ", first.first_error, steady.first_error);
  }
  row.sample_ns = (after_steady - after_first) * 1e9 / static_cast<double>(steady.samples);
  row.sample_wall_m = static_cast<double>(steady.samples) / steady.seconds / 1e6;
  row.ack_p99_ms = steady.latency_p99_ms;
  // What the first scrape costs beyond its samples is the price of the series.
  row.new_series_us = ((after_first - before_first) * 1e9 / static_cast<double>(series) - row.sample_ns) / 1000;
  usleep(static_cast<useconds_t>(options.settle_ms) * 1000);
  row.rss_mb = RssBytes(running->process.pid()) / 1e6;
  row.rss_per_series = row.rss_mb * 1e6 / static_cast<double>(series);

  std::fprintf(stderr, "%s: checking ...\n", system.name.c_str());
  const auto verified = loadgen::Verify(*fleet, running->url, "", options.scrapes, 200, 600'000);
  if (!verified.ok()) {
    row.problem = StrCat("verification: ", base::Message(verified.status()));
  } else if (!verified->ok()) {
    row.problem = StrCat("series ", verified->series_got, "/", verified->series_want, ", samples ",
                         verified->samples_got, "/", verified->samples_want, ", spots ", verified->spots_right, "/",
                         verified->spots, " ", verified->first_difference);
  }
  std::fprintf(stderr, "%s: killing and restarting ...\n", system.name.c_str());
  const int64_t newest = steady.newest_ms;
  // The first answer is about one metric on all its targets; that everything is there is checked after the clock
  // stopped.
  const std::string metric(fleet->Describe(0, 0).metric);
  const double metric_before = Count(running->url, metric, newest);
  const double count_before = Count(running->url, kEverything, newest);
  running->process.Kill();
  const int64_t killed_ns = clock.MonotonicNs();
  auto again = Launch(options, system, data, port);
  if (!again.ok()) {
    row.problem = StrCat("restart: ", base::Message(again.status()));
    return row;
  }
  const bool answered = test::Eventually([&] { return Count(again->url, metric, newest) == metric_before; }, 120'000);
  row.restart_s = static_cast<double>(clock.MonotonicNs() - killed_ns) * 1e-9;
  const double count_after = Count(again->url, kEverything, newest);
  if (!answered || metric_before <= 0) row.problem = StrCat("count(", metric, ") did not come back to ", metric_before);
  if (count_after != count_before) {
    row.problem = StrCat("after the kill ", count_after, " series answer, before it ", count_before);
  }
  std::fprintf(stderr, "%s: to disk ...\n", system.name.c_str());
  const std::vector<std::string> counted = system.settle(again->url, data);
  double bytes = counted.empty() ? NAN : 0;
  for (const std::string& folder : counted) bytes += FolderBytes(folder);
  row.bytes_per_sample = bytes / static_cast<double>(first.samples + steady.samples);
  again->process.Stop(120'000);
  stdfs::remove_all(data);
  return row;
}

std::string Number(double v, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, v);
  return std::isnan(v) ? "-" : text;
}

std::string Table(const std::vector<Row>& rows, uint64_t series, const Options& options) {
  const Row* ours = nullptr;
  for (const Row& row : rows) {
    if (row.system == "varve") ours = &row;
  }
  std::string out = StrCat("\n### ", series, " series, ", options.scrapes, " scrapes at ", options.interval_ms / 1000,
                           " s", options.churn > 0 ? StrCat(", churn ", options.churn * 100, " % in 10 min") : "",
                           ", remote write ", options.version, ".0\n\n");
  out +=
      "| system | CPU ns/sample | CPU us/new series | RSS B/series | blocks on disk B/sample | kill -9 to first right "
      "answer s | all stored |\n";
  out += "|---|---|---|---|---|---|---|\n";
  const auto with_ratio = [](double v, double mine, int digits) {
    std::string text = Number(v, digits);
    if (mine > 0 && v > 0 && v != mine) text += StrCat(" (", Number(v / mine, 1), "x)");
    return text;
  };
  for (const Row& row : rows) {
    const Row& base_row = ours == nullptr ? row : *ours;
    out += StrCat("| ", row.system, " | ", with_ratio(row.sample_ns, base_row.sample_ns, 0), " | ",
                  with_ratio(row.new_series_us, base_row.new_series_us, 2), " | ",
                  with_ratio(row.rss_per_series, base_row.rss_per_series, 0), " | ",
                  with_ratio(row.bytes_per_sample, base_row.bytes_per_sample, 2), " | ",
                  with_ratio(row.restart_s, base_row.restart_s, 2), " | ", row.problem.empty() ? "yes" : row.problem,
                  " |\n");
  }
  out += "\n";
  for (const Row& row : rows) out += StrCat("* ", row.system, ": ", row.version, "\n");
  return out;
}

int Main(int argc, char** argv) {
  CLI::App app{
      "The same remote write requests into Varve, prometheus and victoria-metrics, each pinned to one core.\n"
      "Prints a Markdown table; exit code 1 when a system did not store all that it acknowledged.\n"};
  Options options;
  std::string folder;
  app.add_option("--series", options.series, "active series, one table each")->capture_default_str();
  app.add_option("--scrapes", options.scrapes, "scrapes of every series")->capture_default_str();
  app.add_option("--interval-ms", options.interval_ms, "between scrapes, of the simulated clock")
      ->capture_default_str();
  app.add_option("--churn", options.churn, "part of the targets replaced in ten minutes");
  app.add_option("--pages", options.pages, "exposition pages that the targets show");
  app.add_option("--systems", options.systems)->capture_default_str();
  app.add_option("--protocol", options.version, "remote write 1 or 2")->capture_default_str();
  app.add_option("--varve", options.varve, "the varve binary")->required();
  app.add_option("--varve-flags", options.varve_flags, "more flags for varve");
  app.add_option("--dir", folder, "where the data goes; default: a temporary folder");
  app.add_option("--output", options.output, "append the tables to this file");
  app.add_option("--server-core", options.server_core)->capture_default_str();
  app.add_option("--sender-core", options.sender_core)->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  cpu_set_t mine;
  CPU_ZERO(&mine);
  CPU_SET(options.sender_core, &mine);
  if (sched_setaffinity(0, sizeof mine, &mine) != 0)
    std::fprintf(stderr, "cannot pin the sender; figures are noisier\n");
  const test::TempDir temporary;
  options.folder = folder.empty() ? temporary.path() : folder;
  std::vector<loadgen::Page> pages;
  for (const std::string& path : options.pages) {
    std::ifstream in(path);
    if (!in) {
      std::fprintf(stderr, "cannot read %s\n", path.c_str());
      return 2;
    }
    pages.push_back({stdfs::path(path).stem().string(),
                     std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>())});
  }
  if (pages.empty()) pages.push_back(loadgen::BuiltinPage());
  bool good = true;
  for (const uint64_t series : options.series) {
    std::vector<Row> rows;
    for (const System& system : AllSystems(options)) {
      if (std::find(options.systems.begin(), options.systems.end(), system.name) == options.systems.end()) continue;
      if (system.name != "varve" && test::FindProgram(system.name).empty()) {
        std::fprintf(stderr, "%s is not installed, left out\n", system.name.c_str());
        continue;
      }
      rows.push_back(Measure(options, system, series, pages));
      const Row& row = rows.back();
      std::fprintf(stderr,
                   "%s: %.0f ns/sample, %.2f M samples/s wall, ack p99 %.1f ms, %.2f us/series, RSS %.0f MB, restart "
                   "%.2f s %s\n",
                   row.system.c_str(), row.sample_ns, row.sample_wall_m, row.ack_p99_ms, row.new_series_us, row.rss_mb,
                   row.restart_s, row.problem.c_str());
      if (row.system == "varve" && !row.problem.empty()) good = false;
    }
    const std::string table = Table(rows, series, options);
    std::fputs(table.c_str(), stdout);
    std::fflush(stdout);
    if (!options.output.empty()) std::ofstream(options.output, std::ios::app) << table;
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace varve::bench

int main(int argc, char** argv) { return varve::bench::Main(argc, argv); }
