#pragma once
// What an operator can set. One table (Settings) drives flags, environment, the YAML file, --help,
// docs/configuration.md and the status endpoints. Plain values; a flag beats the environment, which beats the file,
// which beats the default.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/server.h"
#include "storage/base/log.h"
#include "storage/base/status.h"
#include "storage/model/limits.h"

namespace varve::app {

enum class WalSync { kAlways, kInterval, kNone };

struct Config {
  std::string data_dir = "./data";
  std::vector<std::string> roles = {"all"};
  std::vector<std::string> features;  // --enable-feature

  http::ServerConfig http;
  int64_t http_stop_deadline_ms = 10'000;

  std::string grpc_listen = "127.0.0.1:9202";  // "" = no listener

  base::LogLevel log_level = base::LogLevel::kInfo;
  base::LogFormat log_format = base::LogFormat::kLogfmt;

  struct Tenancy {
    bool enabled = false;  // false: every request is of default_tenant
    std::string default_tenant = "anonymous";
  } tenancy;

  struct Wal {
    WalSync sync = WalSync::kInterval;
    int64_t sync_interval_ms = 100;
    uint64_t segment_bytes = 128u << 20;
  } wal;

  struct Head {
    int32_t shards = 0;  // 0 = as many as cores
    int64_t cut_interval_ms = 2 * 3600 * 1000;
    int64_t checkpoint_interval_ms = 5 * 60 * 1000;
    uint64_t checkpoint_wal_bytes = 192u << 20;
    int64_t stale_after_ms = 10 * 60 * 1000;  // so often many ended series may be moved to a block
    int64_t idle_after_ms = 60 * 60 * 1000;   // so does one that got no sample for this long
  } head;

  struct Storage {
    int64_t retention_ms = 15LL * 24 * 3600 * 1000;  // 0 = for ever
  } storage;

  model::Limits limits;

  struct Query {
    int64_t lookback_delta_ms = 5 * 60 * 1000;
    int64_t timeout_ms = 120'000;
    uint64_t samples_max = 50'000'000;
    int32_t concurrency = 20;
    uint64_t memory_bytes_max = 2ull << 30;  // of one query
  } query;

  // Cross-field rules; single values were checked when they were read.
  absl::Status Validate() const;
};

// What the command line asks for, besides values.
enum class Action { kRun, kHelp, kVersion, kConfigCheck, kConfigDocs };

struct Loaded {
  Config config;
  Action action = Action::kRun;
};

// From a command line (without argv[0]) and an environment ("NAME=value", as environ has it). The file that
// --config or VARVE_CONFIG names is read. Errors are InvalidArgument and say where: "--wal.sync: ...",
// "VARVE_WAL_SYNC: ...", "varve.yaml:3:9: ...", with the nearest known name when a name is unknown.
absl::StatusOr<Loaded> Load(const std::vector<std::string>& arguments, const std::vector<std::string>& environment);
// The same for main(): argc, argv, environ.
absl::StatusOr<Loaded> LoadFromProcess(int argc, char** argv);
// A YAML text into a config; `name` stands in errors.
absl::Status ApplyYaml(std::string_view text, std::string_view name, Config& config);

std::string HelpText();
std::string DocsMarkdown();                // docs/configuration.md
std::string ToYaml(const Config& config);  // /api/v1/status/config; secrets are shown as <secret>
std::vector<std::pair<std::string, std::string>> ToFlags(const Config& config);  // /api/v1/status/flags

}  // namespace varve::app
