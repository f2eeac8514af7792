#include "storage/base/log.h"

#include <unistd.h>

#include <chrono>
#include <ctime>

#include "storage/base/strings.h"

namespace varve::base {

namespace log_internal {
std::string Text(std::string_view v) { return std::string(v); }
std::string Text(const std::string& v) { return v; }
std::string Text(const char* v) { return v; }
std::string Text(bool v) { return v ? "true" : "false"; }
std::string Text(double v) { return StrCat(v); }
std::string Text(int64_t v) { return StrCat(v); }
std::string Text(uint64_t v) { return StrCat(v); }
}  // namespace log_internal

namespace {

constexpr std::string_view kLevels[] = {"debug", "info", "warn", "error"};

std::string Timestamp() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const time_t seconds = ms / 1000;
  tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  const size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  std::string out(text, n);
  const std::string fraction = StrCat(1000 + ms % 1000);
  StrAppend(out, ".", std::string_view(fraction).substr(1), "Z");
  return out;
}

// Log texts can come from the wire: no control byte may reach a terminal, no newline may fake a second line.
std::string Quote(std::string_view text) {
  std::string out;
  AppendJsonString(out, text);
  return out;
}

bool NeedsQuotes(std::string_view text) {
  if (text.empty()) return true;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7F) return true;
  }
  return false;
}

}  // namespace

Logger::Logger(int fd, LogFormat format, LogLevel lowest) : fd_(fd), format_(format), lowest_(lowest) {}
Logger Logger::Silent() { return Logger(-1, LogFormat::kLogfmt, LogLevel::kError); }

Logger Logger::With(LogField field) const {
  Logger copy = *this;
  copy.always_.push_back(std::move(field));
  return copy;
}

void Logger::Write(LogLevel level, std::string_view message, Fields fields) const {
  if (fd_ < 0 || level < lowest_) return;
  std::string line;
  const bool json = format_ == LogFormat::kJson;
  const auto add = [&](std::string_view key, std::string_view value, bool quoted) {
    if (json) {
      StrAppend(line, line.empty() ? "{" : ",", Quote(key), ":");
      line += quoted ? Quote(value) : std::string(value);
    } else {
      StrAppend(line, line.empty() ? "" : " ", key, "=");
      line += quoted && NeedsQuotes(value) ? Quote(value) : std::string(value);
    }
  };
  add("ts", Timestamp(), true);
  add("level", kLevels[static_cast<int>(level)], true);
  add("msg", message, true);
  for (const LogField& field : always_) add(field.key, field.value, field.quoted);
  for (const LogField& field : fields) add(field.key, field.value, field.quoted);
  line += json ? "}\n" : "\n";
  // A log that cannot be written is not worth failing for.
  [[maybe_unused]] const ssize_t written = ::write(fd_, line.data(), line.size());
}

}  // namespace varve::base
