#pragma once
// The table behind flags, environment, file, help, docs and status pages: one row per thing an operator can set.
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "server/app/config.h"

namespace varve::app {

struct DurationMs {
  int64_t* ms;
};
struct Bytes {
  std::variant<uint32_t*, uint64_t*> bytes;
};
using Target = std::variant<bool*, int32_t*, uint32_t*, uint64_t*, std::string*, std::vector<std::string>*, DurationMs,
                            Bytes, WalSync*, base::LogLevel*, base::LogFormat*>;

struct Setting {
  std::string_view name;   // dotted: flag without "--", keys of the file
  std::string_view group;  // heading in --help and in the docs
  std::string_view help;
  Target target;
  int64_t min = 0, max = INT64_MAX;  // of numbers, in ms or bytes where the kind says so
  bool secret = false;               // shown as <secret>
};

// Rows that point into `config`, which must outlive them. In the order of --help.
std::vector<Setting> Settings(Config& config);

std::string EnvironmentName(std::string_view name);  // "wal.sync" -> "VARVE_WAL_SYNC"
std::string_view KindName(const Setting& setting);   // "duration", "size", "bool", ...
std::string FormatValue(const Setting& setting);     // as SetValue takes it
std::string ShownValue(const Setting& setting);      // the same, with secrets hidden
// The error says what was given and what is wanted, but not for which setting.
absl::Status SetValue(const Setting& setting, std::string_view text);

absl::StatusOr<int64_t> ParseDurationMs(std::string_view text);  // "1h30m", "100ms", "15d"; "0"
std::string FormatDurationMs(int64_t ms);
absl::StatusOr<uint64_t> ParseBytes(std::string_view text);  // "32MiB", "10MB", "4096"
std::string FormatBytes(uint64_t bytes);

// The known name that is nearest to a mistyped one; "" when none is near.
std::string Nearest(std::string_view name, const std::vector<std::string>& known);

}  // namespace varve::app
