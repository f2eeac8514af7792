#include "query/api/params.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "query/promql/parser.h"
#include "storage/base/strings.h"

namespace varve::api {

std::string_view Params::Get(std::string_view key) const {
  for (const auto& [name, value] : pairs_) {
    if (name == key) return value;
  }
  return {};
}

std::vector<std::string_view> Params::All(std::string_view key) const {
  std::vector<std::string_view> out;
  for (const auto& [name, value] : pairs_) {
    if (name == key) out.push_back(value);
  }
  return out;
}

namespace {

// Days since the epoch of a date in the proleptic Gregorian calendar (Howard Hinnant's algorithm, public domain).
int64_t DaysFromCivil(int64_t year, int64_t month, int64_t day) {
  year -= month <= 2 ? 1 : 0;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

void CivilFromDays(int64_t days, int64_t& year, int64_t& month, int64_t& day) {
  days += 719468;
  const int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const int64_t day_of_era = days - era * 146097;
  const int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t shifted = (5 * day_of_year + 2) / 153;
  day = day_of_year - (153 * shifted + 2) / 5 + 1;
  month = shifted + (shifted < 10 ? 3 : -9);
  year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
}

bool TakeDigits(std::string_view& rest, size_t count, int64_t low, int64_t high, int64_t& out) {
  if (rest.size() < count) return false;
  out = 0;
  for (size_t i = 0; i < count; ++i) {
    if (rest[i] < '0' || rest[i] > '9') return false;
    out = out * 10 + (rest[i] - '0');
  }
  rest.remove_prefix(count);
  return low <= out && out <= high;
}
bool TakeByte(std::string_view& rest, char c) {
  if (rest.empty() || rest.front() != c) return false;
  rest.remove_prefix(1);
  return true;
}

std::optional<int64_t> ParseRfc3339(std::string_view rest) {
  int64_t year, month, day, hour, minute, second;
  if (!TakeDigits(rest, 4, 0, 9999, year) || !TakeByte(rest, '-') || !TakeDigits(rest, 2, 1, 12, month) ||
      !TakeByte(rest, '-') || !TakeDigits(rest, 2, 1, 31, day) || !TakeByte(rest, 'T') ||
      !TakeDigits(rest, 2, 0, 23, hour) || !TakeByte(rest, ':') || !TakeDigits(rest, 2, 0, 59, minute) ||
      !TakeByte(rest, ':') || !TakeDigits(rest, 2, 0, 59, second)) {
    return std::nullopt;
  }
  static constexpr int64_t kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  if (day > kDays[month - 1] + (leap && month == 2 ? 1 : 0)) return std::nullopt;
  int64_t ms = 0;
  if (TakeByte(rest, '.') || TakeByte(rest, ',')) {
    size_t digits = 0;
    while (digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9') ++digits;
    if (digits == 0) return std::nullopt;
    for (size_t i = 0; i < 3; ++i) ms = ms * 10 + (i < digits ? rest[i] - '0' : 0);
    rest.remove_prefix(digits);
  }
  int64_t offset_minutes = 0;
  if (!TakeByte(rest, 'Z')) {
    const bool west = TakeByte(rest, '-');
    int64_t hours, minutes;
    if ((!west && !TakeByte(rest, '+')) || !TakeDigits(rest, 2, 0, 23, hours) || !TakeByte(rest, ':') ||
        !TakeDigits(rest, 2, 0, 59, minutes)) {
      return std::nullopt;
    }
    offset_minutes = (west ? -1 : 1) * (hours * 60 + minutes);
  }
  if (!rest.empty()) return std::nullopt;
  const int64_t seconds =
      DaysFromCivil(year, month, day) * 86400 + hour * 3600 + (minute - offset_minutes) * 60 + second;
  return seconds * 1000 + ms;
}

}  // namespace

absl::StatusOr<int64_t> ParseTime(std::string_view text) {
  const auto invalid = [&] {
    return absl::InvalidArgumentError(base::StrCat("cannot parse ", base::QuoteGo(text), " to a valid timestamp"));
  };
  if (const std::optional<double> seconds = base::ParseDouble(text)) {
    if (!(std::fabs(*seconds) < 9.2e15)) return invalid();
    double whole;
    const double fraction = std::modf(*seconds, &whole);
    return static_cast<int64_t>(whole) * 1000 + std::llround(fraction * 1000);
  }
  // What Prometheus' own client sends for "no bound".
  if (text == "-292273086-05-16T16:47:06Z") return std::numeric_limits<int64_t>::min() / 2;
  if (text == "+292277025-08-18T07:12:54.999999999Z" || text == "292277025-08-18T07:12:54.999999999Z") {
    return std::numeric_limits<int64_t>::max() / 2;
  }
  if (const std::optional<int64_t> ms = ParseRfc3339(text)) return *ms;
  return invalid();
}

absl::StatusOr<int64_t> ParseDurationNs(std::string_view text) {
  const auto cannot = [&](std::string_view rest) {
    return absl::InvalidArgumentError(base::StrCat("cannot parse ", base::QuoteGo(text), " to a valid duration", rest));
  };
  if (const std::optional<double> seconds = base::ParseDouble(text)) {
    const double ns = *seconds * 1e9;
    if (!(std::fabs(ns) < 9.2233720368547748e18)) return cannot(". It overflows int64");
    return static_cast<int64_t>(ns);
  }
  const auto ms = promql::ParseDuration(text);
  if (!ms.ok()) return cannot("");
  return *ms * 1'000'000;
}

std::string UnescapeName(std::string_view name) {
  if (!name.starts_with("U__")) return std::string(name);
  std::string out;
  for (size_t i = 3; i < name.size();) {
    if (name[i] != '_') {
      out += name[i++];
      continue;
    }
    ++i;
    if (i < name.size() && name[i] == '_') {
      out += '_';
      ++i;
      continue;
    }
    const size_t end = name.find('_', i);
    uint32_t rune = 0;
    const char* stop = name.data() + std::min(end, name.size());
    const auto [parsed, error] = std::from_chars(name.data() + i, stop, rune, 16);
    if (end == std::string_view::npos || error != std::errc() || parsed != stop || end - i > 6 || rune > 0x10FFFF ||
        (rune >= 0xD800 && rune < 0xE000)) {
      return std::string(name);
    }
    base::AppendUtf8(out, rune);
    i = end + 1;
  }
  return out;
}

std::string FormatTime(int64_t t_ms) {
  constexpr int64_t kDayMs = 86'400'000;
  int64_t days = t_ms / kDayMs, rest = t_ms % kDayMs;
  if (rest < 0) --days, rest += kDayMs;
  int64_t year, month, day;
  CivilFromDays(days, year, month, day);
  const auto padded = [](int64_t v, size_t width) {
    std::string text = std::to_string(v);
    return text.size() < width ? std::string(width - text.size(), '0') + text : text;
  };
  std::string out =
      base::StrCat(padded(year, 4), "-", padded(month, 2), "-", padded(day, 2), "T", padded(rest / 3'600'000, 2), ":",
                   padded(rest / 60'000 % 60, 2), ":", padded(rest / 1000 % 60, 2));
  if (const int64_t ms = rest % 1000; ms != 0) {
    base::StrAppend(out, ".", padded(ms, 3));
    while (out.back() == '0') out.pop_back();
  }
  return out + "Z";
}

}  // namespace varve::api
