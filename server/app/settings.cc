#include "server/app/settings.h"

#include <algorithm>
#include <array>
#include <limits>

#include "storage/base/strings.h"

namespace varve::app {
namespace {

template <class T>
struct Word {
  std::string_view text;
  T value;
};
constexpr std::array<Word<WalSync>, 3> kWalSync = {
    {{"always", WalSync::kAlways}, {"interval", WalSync::kInterval}, {"none", WalSync::kNone}}};
constexpr std::array<Word<base::LogLevel>, 4> kLogLevel = {{{"debug", base::LogLevel::kDebug},
                                                            {"info", base::LogLevel::kInfo},
                                                            {"warn", base::LogLevel::kWarn},
                                                            {"error", base::LogLevel::kError}}};
constexpr std::array<Word<base::LogFormat>, 2> kLogFormat = {
    {{"logfmt", base::LogFormat::kLogfmt}, {"json", base::LogFormat::kJson}}};

template <class T, size_t N>
absl::Status SetWord(const std::array<Word<T>, N>& words, std::string_view text, T* out) {
  std::string wanted;
  for (const auto& word : words) {
    if (word.text == text) {
      *out = word.value;
      return absl::OkStatus();
    }
    base::StrAppend(wanted, wanted.empty() ? "" : ", ", word.text);
  }
  return absl::InvalidArgumentError(base::StrCat(base::QuoteGo(text), " is not one of ", wanted));
}
template <class T, size_t N>
std::string FormatWord(const std::array<Word<T>, N>& words, T value) {
  for (const auto& word : words) {
    if (word.value == value) return std::string(word.text);
  }
  return "";
}

struct Unit {
  std::string_view name;
  int64_t size;
};
constexpr int64_t kSecond = 1000, kMinute = 60 * kSecond, kHour = 60 * kMinute, kDay = 24 * kHour;
constexpr std::array<Unit, 7> kDurationUnits = {
    {{"y", 365 * kDay}, {"w", 7 * kDay}, {"d", kDay}, {"h", kHour}, {"m", kMinute}, {"s", kSecond}, {"ms", 1}}};
constexpr std::array<Unit, 9> kSizeUnits = {{{"B", 1},
                                             {"KiB", 1ll << 10},
                                             {"MiB", 1ll << 20},
                                             {"GiB", 1ll << 30},
                                             {"TiB", 1ll << 40},
                                             {"KB", 1000},
                                             {"MB", 1000'000},
                                             {"GB", 1000'000'000},
                                             {"TB", 1000'000'000'000}}};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

absl::Status CheckRange(const Setting& setting, int64_t value, std::string_view text) {
  if (value >= setting.min && value <= setting.max) return absl::OkStatus();
  const auto show = [&](int64_t bound) -> std::string {
    if (std::holds_alternative<DurationMs>(setting.target)) return FormatDurationMs(bound);
    if (std::holds_alternative<Bytes>(setting.target)) return FormatBytes(static_cast<uint64_t>(bound));
    return base::StrCat(bound);
  };
  return absl::InvalidArgumentError(value < setting.min
                                        ? base::StrCat(text, " is too small; want at least ", show(setting.min))
                                        : base::StrCat(text, " is too large; want at most ", show(setting.max)));
}

template <class T>
absl::Status SetInteger(const Setting& setting, std::string_view text, T* out) {
  const auto value = base::ParseInt64(text);
  if (!value) return absl::InvalidArgumentError(base::StrCat(base::QuoteGo(text), " is not a whole number"));
  RETURN_IF_ERROR(CheckRange(setting, *value, text));
  if (*value < 0 || static_cast<uint64_t>(*value) > static_cast<uint64_t>(std::numeric_limits<T>::max())) {
    return absl::InvalidArgumentError(base::StrCat(text, " is out of range"));
  }
  *out = static_cast<T>(*value);
  return absl::OkStatus();
}

}  // namespace

std::vector<Setting> Settings(Config& c) {
  constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();
  constexpr int64_t kUint32Max = std::numeric_limits<uint32_t>::max();
  const auto size32 = [](uint32_t* p) { return Target(Bytes{p}); };
  const auto size = [](uint64_t* p) { return Target(Bytes{p}); };
  const auto duration = [](int64_t* p) { return Target(DurationMs{p}); };
  constexpr std::string_view kProcess = "Process", kHttp = "HTTP", kGrpc = "gRPC", kLog = "Logging",
                             kTenancy = "Tenants", kWal = "Write-ahead log", kHead = "Recent data (head)",
                             kStorage = "Storage", kLimits = "Limits per tenant", kQuery = "Queries";
  return {
      {"data-dir", kProcess, "Folder for everything that is kept. Made when it is missing.", &c.data_dir},
      {"roles", kProcess, "Parts of Varve that run in this process. There is only all so far.", &c.roles},
      {"enable-feature", kProcess,
       "Experimental features to switch on, as Prometheus calls them: promql-experimental-functions, "
       "promql-extended-range-selectors, promql-binop-fill-modifiers, promql-duration-expr, "
       "promql-delayed-name-removal, type-and-unit-labels, use-start-timestamps.",
       &c.features},

      {"http.listen", kHttp, "Address for writes, queries and metrics, as host:port.", &c.http.listen},
      {"http.threads", kHttp, "Threads that serve sockets.", &c.http.threads, 1, 1024},
      {"http.connections-max", kHttp, "Open connections; more wait in the kernel's queue.", &c.http.connections_max, 1,
       kInt32Max},
      {"http.body-bytes-max", kHttp, "Largest request body; larger ones are answered 413.",
       size(&c.http.body_bytes_max), 1024, 1ll << 32},
      {"http.header-bytes-max", kHttp, "Largest request header; larger ones are answered 431.",
       size(&c.http.header_bytes_max), 1024, 16 << 20},
      {"http.inflight-body-bytes-max", kHttp, "Body bytes of all unfinished requests; beyond, 503 with Retry-After.",
       size(&c.http.inflight_body_bytes_max), 1024},
      {"http.idle-timeout", kHttp, "How long a connection may stay silent between requests.",
       duration(&c.http.idle_timeout_ms), 1},
      {"http.read-timeout", kHttp, "How long a request may take to arrive.", duration(&c.http.read_timeout_ms), 1},
      {"http.write-timeout", kHttp, "How long a client may take to read an answer.", duration(&c.http.write_timeout_ms),
       1},
      {"http.stop-deadline", kHttp, "How long running requests may go on after a signal to stop.",
       duration(&c.http_stop_deadline_ms)},

      {"grpc.listen", kGrpc, "Address for gRPC (health checks), as host:port; empty for no listener.", &c.grpc_listen},

      {"log.level", kLog, "Least severe level that is logged: debug, info, warn, error.", &c.log_level},
      {"log.format", kLog, "logfmt or json.", &c.log_format},

      {"tenancy.enabled", kTenancy,
       "Take the tenant from the X-Scope-OrgID header. Only behind a gateway that sets the header itself.",
       &c.tenancy.enabled},
      {"tenancy.default-tenant", kTenancy, "Tenant of every request when tenancy is not enabled.",
       &c.tenancy.default_tenant},

      {"wal.sync", kWal,
       "When written data is forced to disk: always (before the answer), interval, none (the kernel decides).",
       &c.wal.sync},
      {"wal.sync-interval", kWal, "With wal.sync interval: how much a power cut may lose.",
       duration(&c.wal.sync_interval_ms), 1, 60 * kSecond},
      {"wal.segment-bytes", kWal, "Size at which a log file is closed and the next one begun.",
       size(&c.wal.segment_bytes), 64 << 10, 4ll << 30},

      {"head.shards", kHead, "Threads among which series are divided; 0 for as many as cores.", &c.head.shards, 0,
       1024},
      {"head.cut-interval", kHead, "How often recent data is written out as blocks.", duration(&c.head.cut_interval_ms),
       kSecond},
      {"head.checkpoint-interval", kHead, "How often the head is saved, so that a restart replays little.",
       duration(&c.head.checkpoint_interval_ms), kSecond},
      {"head.checkpoint-wal-bytes", kHead, "So much log in one shard also makes it save the head.",
       size(&c.head.checkpoint_wal_bytes), 1 << 20, 64ll << 30},
      {"head.stale-after", kHead,
       "How often ended series (staleness marker seen) may be moved to a block when there are many of them.",
       duration(&c.head.stale_after_ms), kSecond},
      {"head.idle-after", kHead, "How long a series without samples stays in the head.",
       duration(&c.head.idle_after_ms), kSecond},

      {"storage.retention", kStorage, "How long samples are kept; 0 for ever.", duration(&c.storage.retention_ms)},

      {"limits.out-of-order-window", kLimits, "How much older than its series' newest a sample may be.",
       duration(&c.limits.out_of_order_window_ms)},
      {"limits.future-max", kLimits, "How far ahead of the server's clock a sample may be.",
       duration(&c.limits.future_max_ms)},
      {"limits.label-names-per-series-max", kLimits, "Labels of one series, the metric's name included.",
       &c.limits.label_names_per_series_max, 1, kUint32Max},
      {"limits.label-name-bytes-max", kLimits, "Length of a label's name.", size32(&c.limits.label_name_bytes_max), 1,
       kUint32Max},
      {"limits.label-value-bytes-max", kLimits, "Length of a label's value.", size32(&c.limits.label_value_bytes_max),
       1, kUint32Max},
      {"limits.series-max", kLimits, "Active series of a tenant in this process; 0 for no limit.",
       &c.limits.series_max},
      {"limits.exemplars-max", kLimits, "Exemplars kept for a tenant; 0 to keep none.", &c.limits.exemplars_max},

      {"query.lookback-delta", kQuery, "How far back an instant selector looks for a sample.",
       duration(&c.query.lookback_delta_ms), 1},
      {"query.timeout", kQuery, "Longest a query may run.", duration(&c.query.timeout_ms), 1},
      {"query.samples-max", kQuery, "Samples that one query may hold in memory.", &c.query.samples_max, 1},
      {"query.concurrency", kQuery, "Queries that run at once; more wait.", &c.query.concurrency, 1, 4096},
      {"query.memory-bytes-max", kQuery, "Memory that one query may take.", size(&c.query.memory_bytes_max), 1 << 20},
  };
}

std::string EnvironmentName(std::string_view name) {
  std::string out = "VARVE_";
  for (const char c : name) {
    if (c == '.' || c == '-') {
      out += '_';
    } else {
      out += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
  }
  return out;
}

std::string_view KindName(const Setting& setting) {
  struct Visitor {
    std::string_view operator()(bool*) const { return "bool"; }
    std::string_view operator()(int32_t*) const { return "number"; }
    std::string_view operator()(uint32_t*) const { return "number"; }
    std::string_view operator()(uint64_t*) const { return "number"; }
    std::string_view operator()(std::string*) const { return "text"; }
    std::string_view operator()(std::vector<std::string>*) const { return "list"; }
    std::string_view operator()(DurationMs) const { return "duration"; }
    std::string_view operator()(Bytes) const { return "size"; }
    std::string_view operator()(WalSync*) const { return "word"; }
    std::string_view operator()(base::LogLevel*) const { return "word"; }
    std::string_view operator()(base::LogFormat*) const { return "word"; }
  };
  return std::visit(Visitor(), setting.target);
}

std::string FormatValue(const Setting& setting) {
  struct Visitor {
    std::string operator()(bool* v) const { return *v ? "true" : "false"; }
    std::string operator()(int32_t* v) const { return base::StrCat(*v); }
    std::string operator()(uint32_t* v) const { return base::StrCat(*v); }
    std::string operator()(uint64_t* v) const { return base::StrCat(*v); }
    std::string operator()(std::string* v) const { return *v; }
    std::string operator()(std::vector<std::string>* v) const { return base::StrJoin(*v, ","); }
    std::string operator()(DurationMs v) const { return FormatDurationMs(*v.ms); }
    std::string operator()(Bytes v) const {
      return std::visit([](auto* bytes) { return FormatBytes(*bytes); }, v.bytes);
    }
    std::string operator()(WalSync* v) const { return FormatWord(kWalSync, *v); }
    std::string operator()(base::LogLevel* v) const { return FormatWord(kLogLevel, *v); }
    std::string operator()(base::LogFormat* v) const { return FormatWord(kLogFormat, *v); }
  };
  return std::visit(Visitor(), setting.target);
}

std::string ShownValue(const Setting& setting) {
  std::string value = FormatValue(setting);
  return setting.secret && !value.empty() ? "<secret>" : value;
}

absl::Status SetValue(const Setting& setting, std::string_view text) {
  const bool has_control =
      std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  if (has_control || !base::IsValidUtf8(text)) {
    return absl::InvalidArgumentError(base::StrCat(base::QuoteGo(text), " is not plain UTF-8 text"));
  }
  struct Visitor {
    const Setting& setting;
    std::string_view text;
    absl::Status operator()(bool* v) const {
      if (text != "true" && text != "false") {
        return absl::InvalidArgumentError(base::StrCat(base::QuoteGo(text), " is not true or false"));
      }
      *v = text == "true";
      return absl::OkStatus();
    }
    absl::Status operator()(int32_t* v) const { return SetInteger(setting, text, v); }
    absl::Status operator()(uint32_t* v) const { return SetInteger(setting, text, v); }
    absl::Status operator()(uint64_t* v) const { return SetInteger(setting, text, v); }
    absl::Status operator()(std::string* v) const {
      *v = text;
      return absl::OkStatus();
    }
    absl::Status operator()(std::vector<std::string>* v) const {
      v->clear();
      for (const std::string_view part : base::StrSplit(text, ',')) {
        const std::string_view item = base::StrTrim(part);
        if (!item.empty()) v->emplace_back(item);
      }
      return absl::OkStatus();
    }
    absl::Status operator()(DurationMs v) const {
      ASSIGN_OR_RETURN(const int64_t ms, ParseDurationMs(text));
      RETURN_IF_ERROR(CheckRange(setting, ms, text));
      *v.ms = ms;
      return absl::OkStatus();
    }
    absl::Status operator()(Bytes v) const {
      ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(text));
      RETURN_IF_ERROR(CheckRange(setting, static_cast<int64_t>(bytes), text));
      std::visit([&](auto* out) { *out = static_cast<std::remove_reference_t<decltype(*out)>>(bytes); }, v.bytes);
      return absl::OkStatus();
    }
    absl::Status operator()(WalSync* v) const { return SetWord(kWalSync, text, v); }
    absl::Status operator()(base::LogLevel* v) const { return SetWord(kLogLevel, text, v); }
    absl::Status operator()(base::LogFormat* v) const { return SetWord(kLogFormat, text, v); }
  };
  return std::visit(Visitor{setting, text}, setting.target);
}

absl::StatusOr<int64_t> ParseDurationMs(std::string_view text) {
  const auto bad = [&] {
    return absl::InvalidArgumentError(
        base::StrCat(base::QuoteGo(text), " is not a duration; want for example 100ms, 30s, 1h30m or 15d"));
  };
  if (text == "0") return 0;
  std::string_view rest = text;
  int64_t total = 0;
  int64_t smallest = std::numeric_limits<int64_t>::max();
  while (!rest.empty()) {
    size_t digits = 0, letters = 0;
    while (digits < rest.size() && IsDigit(rest[digits])) ++digits;
    while (digits + letters < rest.size() && !IsDigit(rest[digits + letters])) ++letters;
    const auto number = base::ParseInt64(rest.substr(0, digits));
    const std::string_view unit_name = rest.substr(digits, letters);
    const auto unit =
        std::find_if(kDurationUnits.begin(), kDurationUnits.end(), [&](const Unit& u) { return u.name == unit_name; });
    if (digits == 0 || !number || unit == kDurationUnits.end() || unit->size >= smallest) return bad();
    int64_t part = 0;
    if (__builtin_mul_overflow(*number, unit->size, &part) || __builtin_add_overflow(total, part, &total)) {
      return absl::InvalidArgumentError(base::StrCat(base::QuoteGo(text), " is too long a duration"));
    }
    smallest = unit->size;
    rest.remove_prefix(digits + letters);
  }
  if (text.empty()) return bad();
  return total;
}

std::string FormatDurationMs(int64_t ms) {
  if (ms == 0) return "0";
  // Weeks and years only where nothing is left over: "15d" says more than "2w1d".
  if (ms % (365 * kDay) == 0) return base::StrCat(ms / (365 * kDay), "y");
  std::string out;
  for (const Unit& unit : kDurationUnits) {
    if (unit.size > kDay) continue;
    if (ms / unit.size > 0) base::StrAppend(out, ms / unit.size, unit.name);
    ms %= unit.size;
  }
  return out;
}

absl::StatusOr<uint64_t> ParseBytes(std::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && IsDigit(text[digits])) ++digits;
  const auto number = base::ParseInt64(text.substr(0, digits));
  const std::string_view unit_name = text.substr(digits);
  for (const Unit& unit : kSizeUnits) {
    if (!number || (unit_name != unit.name && !(unit_name.empty() && unit.size == 1))) continue;
    int64_t bytes = 0;
    if (__builtin_mul_overflow(*number, unit.size, &bytes)) break;
    return static_cast<uint64_t>(bytes);
  }
  return absl::InvalidArgumentError(
      base::StrCat(base::QuoteGo(text), " is not a size; want for example 4096, 64KiB, 32MiB or 2GiB"));
}

std::string FormatBytes(uint64_t bytes) {
  for (const std::string_view name : {"TiB", "GiB", "MiB", "KiB"}) {
    const auto unit = std::find_if(kSizeUnits.begin(), kSizeUnits.end(), [&](const Unit& u) { return u.name == name; });
    const auto size = static_cast<uint64_t>(unit->size);
    if (bytes >= size && bytes % size == 0) return base::StrCat(bytes / size, name);
  }
  return base::StrCat(bytes);
}

std::string Nearest(std::string_view name, const std::vector<std::string>& known) {
  // Edit distance with transpositions; far-off names are no help.
  const auto distance = [](std::string_view a, std::string_view b) {
    std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
    for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
    for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
      for (size_t j = 1; j <= b.size(); ++j) {
        d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
          d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
      }
    }
    return d[a.size()][b.size()];
  };
  if (name.size() > 200) return "";
  std::string best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const size_t here = distance(name, candidate);
    if (here < best_distance) best_distance = here, best = candidate;
  }
  if (!best.empty()) return best;
  // A last part alone ("retention" for "storage.retention") is the other way to go wrong.
  for (const std::string& candidate : known) {
    const size_t dot = candidate.rfind('.');
    if (dot != std::string::npos && std::string_view(candidate).substr(dot + 1) == name) return candidate;
  }
  return "";
}

}  // namespace varve::app
