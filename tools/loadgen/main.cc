// loadgen: sends a simulated fleet's samples by remote write, and checks what a server kept of them.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "storage/base/clock.h"
#include "storage/base/strings.h"
#include "tools/loadgen/run.h"

namespace {

using varve::base::StrCat;

// "15s", "500ms", "2m", "1h"; a bare number is milliseconds.
bool ParseDuration(const std::string& text, int64_t& ms) {
  static constexpr struct {
    std::string_view unit;
    int64_t ms;
  } kUnits[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}, {"", 1}};
  for (const auto& [unit, factor] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto number = varve::base::ParseInt64(std::string_view(text).substr(0, text.size() - unit.size()));
    if (!number.has_value() || *number < 0 || *number > INT64_MAX / factor) continue;
    ms = *number * factor;
    return true;
  }
  return false;
}

int Usage(const std::string& text) {
  std::fprintf(stderr, "loadgen: %s\nSee loadgen --help.\n", text.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Sends the samples of a simulated fleet by Prometheus remote write.\n\n"
      "Examples:\n"
      "  loadgen --series 100000 --scrapes 20                       five minutes of data, as fast as the server takes "
      "it\n"
      "  loadgen --pages ../shared/data/*.prom --interval 1s --scrapes 60 --prepare\n"
      "  loadgen --series 1000000 --scrapes 4 --verify              and check counts and 100 samples by PromQL\n"};
  varve::loadgen::FleetConfig fleet_config;
  varve::loadgen::RunConfig run;
  std::string address = "http://127.0.0.1:9201";
  std::string path = "/api/v1/write";
  std::vector<std::string> pages;
  std::string interval = "15s";
  std::string output = "table";
  bool verify = false;
  bool verify_only = false;
  uint64_t spots = 100;
  int64_t start_ms = -1;
  app.add_option("--address", address, "root URL of the server")->capture_default_str();
  app.add_option("--path", path, "path of the push endpoint")->capture_default_str();
  app.add_option("--tenant", run.tenant, "sent as X-Scope-OrgID");
  app.add_option("--pages", pages,
                 "exposition pages (text format) that targets show; none: a small one that is built in");
  app.add_option("--series", fleet_config.series, "series over all targets")->capture_default_str();
  app.add_option("--scrapes", run.scrapes, "scrapes of every target")->capture_default_str();
  app.add_option("--interval", interval, "between scrapes")->capture_default_str();
  app.add_option("--start", start_ms, "time of the first scrape in ms; default: so that the last is now");
  app.add_option("--jitter-ms", fleet_config.jitter_ms, "scrapes are off by up to this much")->capture_default_str();
  app.add_option("--churn", fleet_config.churn, "part of the targets that is replaced in ten minutes, such as 0.1")
      ->capture_default_str();
  app.add_option("--seed", fleet_config.seed, "the same seed makes the same samples")->capture_default_str();
  app.add_option("--protocol", run.version, "remote write 1 or 2")->check(CLI::IsMember({1, 2}))->capture_default_str();
  app.add_option("--samples-per-request", run.samples_per_request)
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--connections", run.connections)->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--rate", run.samples_per_second, "samples per second over all connections; 0: no limit")
      ->capture_default_str();
  app.add_option("--seconds", run.seconds_max, "stop after this time; 0: when all is sent")->capture_default_str();
  app.add_option("--timeout-ms", run.timeout_ms)->capture_default_str();
  app.add_flag("--prepare", run.prepare, "encode everything before the clock starts (needs memory)");
  app.add_flag("--dry-run", run.dry_run, "encode only, send nothing");
  app.add_flag("--verify", verify, "afterwards count series and samples by PromQL and recompute some");
  app.add_flag("--verify-only", verify_only, "send nothing, verify what an earlier run with --start sent");
  app.add_option("--spots", spots, "samples that --verify recomputes")->capture_default_str();
  app.add_option("-o,--output", output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const varve::base::SystemClock clock;
  if (!ParseDuration(interval, fleet_config.interval_ms))
    return Usage(StrCat("--interval: not a duration: ", interval));
  if (run.scrapes <= 0) return Usage("--scrapes must be positive");
  if (verify_only && start_ms < 0) return Usage("--verify-only needs the --start of the run that sent");
  fleet_config.start_ms =
      start_ms >= 0 ? start_ms : clock.NowMs() - run.scrapes * fleet_config.interval_ms - fleet_config.jitter_ms;
  run.url = address + path;

  std::vector<varve::loadgen::Page> texts;
  for (const std::string& page : pages) {
    std::ifstream in(page, std::ios::binary);
    if (!in) return Usage(StrCat(page, ": cannot be read"));
    std::string name = page.substr(page.find_last_of('/') + 1);
    name = name.substr(0, name.find('.'));
    texts.push_back({name, std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>())});
  }
  if (texts.empty()) texts.push_back(varve::loadgen::BuiltinPage());
  const auto fleet = varve::loadgen::Fleet::Create(fleet_config, texts);
  if (!fleet.ok()) return Usage(std::string(varve::base::Message(fleet.status())));

  int exit_code = 0;
  if (!verify_only) {
    const varve::loadgen::Summary summary = varve::loadgen::Run(*fleet, run, clock);
    std::fputs((output == "json" ? summary.AsJson() : summary.AsTable()).c_str(), stdout);
    if (output == "table")
      std::printf("first timestamp     %lld (--start)\n", static_cast<long long>(fleet_config.start_ms));
    if (summary.failed_requests + summary.refused_requests > 0) exit_code = 1;
    if (summary.requests == 0 && summary.failed_requests > 0) return 3;
    if (verify && !summary.complete) return Usage("not everything was sent, so there is nothing to verify");
  }
  if (verify || verify_only) {
    const auto result = varve::loadgen::Verify(*fleet, address, run.tenant, run.scrapes, spots, run.timeout_ms);
    if (!result.ok()) {
      std::fprintf(stderr, "loadgen: %s\n", std::string(varve::base::Message(result.status())).c_str());
      return 1;
    }
    if (output == "json") {
      std::printf(
          "{\"ok\":%s,\"series_want\":%llu,\"series_got\":%llu,\"samples_want\":%llu,\"samples_got\":%llu,\"spots\":%"
          "llu,\"spots_right\":%llu}\n",
          result->ok() ? "true" : "false", static_cast<unsigned long long>(result->series_want),
          static_cast<unsigned long long>(result->series_got), static_cast<unsigned long long>(result->samples_want),
          static_cast<unsigned long long>(result->samples_got), static_cast<unsigned long long>(result->spots),
          static_cast<unsigned long long>(result->spots_right));
    } else {
      std::fputs(StrCat("verified            ", result->ok() ? "all right" : "WRONG", ": series ", result->series_got,
                        " of ", result->series_want, ", samples ", result->samples_got, " of ", result->samples_want,
                        ", spots ", result->spots_right, " of ", result->spots, "\n")
                     .c_str(),
                 stdout);
      if (!result->first_difference.empty())
        std::fputs(StrCat("first difference    ", result->first_difference, "\n").c_str(), stdout);
    }
    if (!result->ok()) exit_code = 1;
  }
  return exit_code;
}
