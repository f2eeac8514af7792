#include "server/app/config.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "server/app/settings.h"
#include "storage/base/strings.h"

namespace varve::app {
namespace {

std::string Error(const absl::Status& status) { return std::string(base::Message(status)); }
std::string LoadError(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {}) {
  const auto loaded = Load(arguments, environment);
  return loaded.ok() ? "" : Error(loaded.status());
}
std::string YamlError(std::string_view text) {
  Config config;
  return Error(ApplyYaml(text, "varve.yaml", config));
}

class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view content) {
    std::string pattern = (std::filesystem::temp_directory_path() / "varve-config-XXXXXX").string();
    const int fd = mkstemp(pattern.data());
    REQUIRE(fd >= 0);
    close(fd);
    path_ = pattern;
    std::ofstream(path_) << content;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST_CASE("without anything the defaults hold") {
  const Loaded loaded = Load({}, {}).value();
  CHECK(loaded.action == Action::kRun);
  CHECK(loaded.config.http.listen == "127.0.0.1:9201");
  CHECK(loaded.config.wal.sync == WalSync::kInterval);
  CHECK_FALSE(loaded.config.tenancy.enabled);
}

TEST_CASE("a flag beats the environment beats the file beats the default") {
  const TemporaryFile file("wal: {sync: none, sync-interval: 1s, segment-bytes: 1MiB}\nquery: {concurrency: 3}\n");
  const std::vector<std::string> environment = {"VARVE_WAL_SYNC=interval", "VARVE_WAL_SYNC_INTERVAL=2s",
                                                "VARVE_CONFIG=" + file.path(), "VARVE_PORT=tcp://10.0.0.1:80"};
  const Config config = Load({"--wal.sync", "always"}, environment)->config;
  CHECK(config.wal.sync == WalSync::kAlways);
  CHECK(config.wal.sync_interval_ms == 2000);
  CHECK(config.wal.segment_bytes == 1 << 20);
  CHECK(config.query.concurrency == 3);
  CHECK(config.query.timeout_ms == 120'000);
}

TEST_CASE("flags take a value after a space or an equals sign and bools need none") {
  const Config config = Load({"--data-dir=/x=y", "--http.threads", "7", "--tenancy.enabled",
                              "--grpc.listen=", "--enable-feature=promql-binop-fill-modifiers", "--enable-feature",
                              "promql-duration-expr,use-start-timestamps"},
                             {})
                            ->config;
  CHECK(config.data_dir == "/x=y");
  CHECK(config.http.threads == 7);
  CHECK(config.tenancy.enabled);
  CHECK(config.grpc_listen.empty());
  CHECK(config.features ==
        std::vector<std::string>{"promql-binop-fill-modifiers", "promql-duration-expr", "use-start-timestamps"});
  CHECK_FALSE(Load({"--tenancy.enabled=false"}, {"VARVE_TENANCY_ENABLED=true"})->config.tenancy.enabled);
}

TEST_CASE("the command line may ask for other things than running") {
  CHECK(Load({"--help"}, {})->action == Action::kHelp);
  CHECK(Load({"-h"}, {"VARVE_WAL_SYNC=nonsense"})->action == Action::kHelp);
  CHECK(Load({"--version"}, {})->action == Action::kVersion);
  CHECK(Load({"--config.docs"}, {})->action == Action::kConfigDocs);
  CHECK(Load({"--config.check", "--http.threads=3"}, {})->config.http.threads == 3);
  CHECK_FALSE(Load({"--config.check"}, {"VARVE_WAL_SYNC=nonsense"}).ok());
}

TEST_CASE("mistakes on the command line are explained") {
  CHECK(LoadError({"--wal.snyc=always"}) == "unknown flag --wal.snyc; did you mean --wal.sync?");
  CHECK(LoadError({"--retention=1d"}) == "unknown flag --retention; did you mean --storage.retention?");
  CHECK(LoadError({"--xyzzy"}) == "unknown flag --xyzzy");
  CHECK(LoadError({"data"}) == "unexpected argument \"data\"; settings are given as --name=value");
  CHECK(LoadError({"--data-dir"}) == "--data-dir: no value given");
  CHECK(LoadError({"--data-dir", "--help"}) == "--data-dir: no value given");
  CHECK(LoadError({"--wal.sync=maybe"}) == "--wal.sync: \"maybe\" is not one of always, interval, none");
  CHECK(LoadError({"--query.timeout=10"}) ==
        "--query.timeout: \"10\" is not a duration; want for example 100ms, 30s, 1h30m or 15d");
  CHECK(LoadError({"--http.body-bytes-max=32 MB"}) ==
        "--http.body-bytes-max: \"32 MB\" is not a size; want for example 4096, 64KiB, 32MiB or 2GiB");
  CHECK(LoadError({"--http.threads=0"}) == "--http.threads: 0 is too small; want at least 1");
  CHECK(LoadError({"--wal.sync-interval=2h"}) == "--wal.sync-interval: 2h is too large; want at most 1m");
  CHECK(LoadError({"--http.threads=two"}) == "--http.threads: \"two\" is not a whole number");
  CHECK(LoadError({"--tenancy.enabled=yes"}) == "--tenancy.enabled: \"yes\" is not true or false");
  CHECK(LoadError({}, {"VARVE_HTTP_THREADS=-1"}) == "VARVE_HTTP_THREADS: -1 is too small; want at least 1");
  CHECK(LoadError({"--config.check=yes"}) == "--config.check takes no value");
  CHECK(LoadError({"--config=/"}) == "--config: cannot read /: not a file");
  CHECK(LoadError({"--config=/nowhere/varve.yaml"}) == "--config: cannot read /nowhere/varve.yaml");
}

TEST_CASE("settings that contradict each other are refused") {
  CHECK(LoadError({"--http.listen=localhost"}).find("want host:port") != std::string::npos);
  CHECK(LoadError({"--grpc.listen=127.0.0.1:9201"}) ==
        "http.listen and grpc.listen are both 127.0.0.1:9201; each needs its own port");
  CHECK(LoadError({"--roles=queriers"}).starts_with("roles: unknown role queriers"));
  CHECK(LoadError({"--roles="}) == "roles is empty; want all");
  CHECK(LoadError({"--enable-feature=promql-everything"}).starts_with("enable-feature: unknown feature"));
  CHECK(LoadError({"--tenancy.default-tenant=a/b"}).starts_with("tenancy.default-tenant \"a/b\": "));
  CHECK(LoadError({"--tenancy.default-tenant=.."}).starts_with("tenancy.default-tenant \"..\": "));
  CHECK(LoadError({"--storage.retention=1h"}).starts_with("storage.retention (1h) is shorter than head.cut-interval"));
  CHECK(LoadError({"--storage.retention=0"}).empty());
  CHECK(LoadError({"--http.body-bytes-max=1GiB"}).find("http.inflight-body-bytes-max") != std::string::npos);
}

TEST_CASE("a file may nest its keys or write them with dots") {
  Config config;
  REQUIRE(ApplyYaml("# all\nhttp:\n  listen: 0.0.0.0:80\n  threads: 3\nwal.sync: always\nroles: [ingester, querier]\n"
                    "enable-feature: promql-binop-fill-modifiers\nhead:\n  # nothing here\n",
                    "varve.yaml", config)
              .ok());
  CHECK(config.http.listen == "0.0.0.0:80");
  CHECK(config.http.threads == 3);
  CHECK(config.wal.sync == WalSync::kAlways);
  CHECK(config.roles == std::vector<std::string>{"ingester", "querier"});
  CHECK(ApplyYaml("", "varve.yaml", config).ok());
  CHECK(ApplyYaml("# only a comment\n", "varve.yaml", config).ok());
}

TEST_CASE("mistakes in a file are shown where they stand") {
  CHECK(YamlError("http:\n  lisen: 1.2.3.4:5\n") ==
        "varve.yaml:2:3: unknown key http.lisen; did you mean http.listen?");
  CHECK(YamlError("htpp:\n  listen: 1.2.3.4:5\n") == "varve.yaml:1:1: unknown key htpp; did you mean http?");
  CHECK(YamlError("retention: 1d\n") == "varve.yaml:1:1: unknown key retention; did you mean storage.retention?");
  CHECK(YamlError("wal:\n  sync: [always]\n") == "varve.yaml:2:9: wal.sync: want a single value of kind word");
  CHECK(YamlError("wal:\n  sync: maybe\n") ==
        "varve.yaml:2:9: wal.sync: \"maybe\" is not one of always, interval, none");
  CHECK(YamlError("wal:\n  sync:\n") == "varve.yaml:2:3: wal.sync: no value given");
  CHECK(YamlError("wal: always\n") == "varve.yaml:1:6: wal is a section; want indented keys below it");
  CHECK(YamlError("wal: {sync: none}\nwal.sync: none\n") == "varve.yaml:2:1: wal.sync is set twice");
  CHECK(YamlError("- a\n").starts_with("varve.yaml:1:1: want keys and values"));
  CHECK(YamlError("wal: {sync: none\n").starts_with("varve.yaml:2:1: "));
  CHECK(YamlError("a: [1, 2\nb: }").starts_with("varve.yaml:"));
  CHECK(YamlError("config: other.yaml\n").starts_with("varve.yaml:1:1: unknown key config"));
}

TEST_CASE("durations and sizes survive the trip to text and back") {
  for (const int64_t ms :
       {int64_t{0}, int64_t{1}, int64_t{999}, int64_t{1000}, int64_t{90'000}, int64_t{5'400'000}, int64_t{86'400'000},
        int64_t{15} * 86'400'000, int64_t{365} * 86'400'000, int64_t{123'456'789}}) {
    INFO(FormatDurationMs(ms));
    CHECK(ParseDurationMs(FormatDurationMs(ms)).value() == ms);
  }
  CHECK(FormatDurationMs(5'400'000) == "1h30m");
  CHECK(FormatDurationMs(15LL * 86'400'000) == "15d");
  for (const char* bad :
       {"", "1", "m", "-1s", "1.5h", "1m1h", "1m1m", "1 h", "1hour", "99999999999999999999s", "9999999999999y"}) {
    INFO(bad);
    CHECK(absl::IsInvalidArgument(ParseDurationMs(bad).status()));
  }
  for (const uint64_t bytes : {0ull, 1ull, 1000ull, 1024ull, 32ull << 20, (1ull << 30) + 1, 3ull << 40}) {
    CHECK(ParseBytes(FormatBytes(bytes)).value() == bytes);
  }
  CHECK(ParseBytes("10MB").value() == 10'000'000);
  for (const char* bad : {"", "MiB", "1mib", "-1", "1.5GiB", "99999999TiB", "1KiBs"}) {
    INFO(bad);
    CHECK(absl::IsInvalidArgument(ParseBytes(bad).status()));
  }
}

TEST_CASE("what is shown can be read back as a file") {
  Config config = Load({"--http.listen=[::1]:0", "--grpc.listen=", "--roles=all", "--wal.sync=none",
                        "--storage.retention=400d", "--limits.series-max=7"},
                       {})
                      ->config;
  Config back;
  const absl::Status status = ApplyYaml(ToYaml(config), "shown", back);
  INFO(status << "\n" << ToYaml(config));
  REQUIRE(status.ok());
  CHECK(ToFlags(back) == ToFlags(config));
  CHECK(back.limits.series_max == 7);
}

TEST_CASE("texts with odd characters are shown so that they read back, or refused") {
  for (const char* dir : {"~", "null", "a\"b\\c", "# no", "a: b", "\xc3\xa4\xe2\x80\x8b", " x ", "true", "-", "1.5"}) {
    INFO(dir);
    Config config;
    config.data_dir = config.tenancy.default_tenant = dir;
    Config back;
    REQUIRE(ApplyYaml(ToYaml(config), "shown", back).ok());
    CHECK(back.data_dir == dir);
    CHECK(back.tenancy.default_tenant == dir);
  }
  CHECK(LoadError({"--data-dir=a\xff"}) == "--data-dir: \"a\\xff\" is not plain UTF-8 text");
  CHECK_FALSE(YamlError("data-dir: \"a\\n\"\n").empty());
}

TEST_CASE("every setting can be set from all three sources with its own default") {
  Config defaults;
  for (const Setting& setting : Settings(defaults)) {
    INFO(setting.name);
    const std::string value = FormatValue(setting);
    CHECK(SetValue(setting, value).ok());
    CHECK(LoadError({base::StrCat("--", setting.name, "=", value)}).empty());
    CHECK(LoadError({}, {base::StrCat(EnvironmentName(setting.name), "=", value)}).empty());
    CHECK(HelpText().find(base::StrCat("--", setting.name)) != std::string::npos);
    CHECK_FALSE(setting.help.empty());
  }
}

TEST_CASE("secrets are hidden") {
  std::string token = "hunter2";
  const Setting setting{"x.token", "X", "A token.", &token, 0, 0, /*secret=*/true};
  CHECK(ShownValue(setting) == "<secret>");
  token.clear();
  CHECK(ShownValue(setting).empty());
}

TEST_CASE("docs configuration.md is what the table says") {
  std::ifstream in("docs/configuration.md", std::ios::binary);
  const std::string page((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  INFO("run: varve --config.docs > docs/configuration.md");
  CHECK(page == DocsMarkdown());
}

}  // namespace
}  // namespace varve::app
