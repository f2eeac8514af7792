#pragma once
// Structured logs: one line per event, a constant message plus key-value pairs, as logfmt or JSON.
//   log.Info("wal segment closed", {{"shard", 3}, {"bytes", size}});
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace varve::base {

enum class LogLevel { kDebug, kInfo, kWarn, kError };
enum class LogFormat { kLogfmt, kJson };

struct LogField {
  template <class T>
  LogField(std::string_view k, const T& v);
  std::string_view key;
  std::string value;
  bool quoted;  // a text, as opposed to a number or a bool
};

// Any thread. A line is written with one write; lines never mix.
class Logger {
 public:
  using Fields = std::initializer_list<LogField>;
  // Writes to `fd`, which must stay open.
  Logger(int fd, LogFormat format, LogLevel lowest);
  static Logger Silent();  // for tests

  void Debug(std::string_view message, Fields fields = {}) const { Write(LogLevel::kDebug, message, fields); }
  void Info(std::string_view message, Fields fields = {}) const { Write(LogLevel::kInfo, message, fields); }
  void Warn(std::string_view message, Fields fields = {}) const { Write(LogLevel::kWarn, message, fields); }
  void Error(std::string_view message, Fields fields = {}) const { Write(LogLevel::kError, message, fields); }
  // For lines whose fields cost something to make.
  bool Enabled(LogLevel level) const { return level >= lowest_; }
  void Write(LogLevel level, std::string_view message, Fields fields) const;
  // A logger that adds a field to every line, for example {"component", "wal"}.
  Logger With(LogField field) const;

 private:
  int fd_;
  LogFormat format_;
  LogLevel lowest_;
  std::vector<LogField> always_;
};

namespace log_internal {
std::string Text(std::string_view v);
std::string Text(const std::string& v);
std::string Text(const char* v);
std::string Text(bool v);
std::string Text(double v);
std::string Text(int64_t v);
std::string Text(uint64_t v);
template <class T>
constexpr bool kIsText = !std::is_arithmetic_v<T>;
}  // namespace log_internal

template <class T>
LogField::LogField(std::string_view k, const T& v) : key(k), quoted(log_internal::kIsText<T>) {
  if constexpr (std::is_same_v<T, double>) quoted = !std::isfinite(v);  // JSON has no such numbers
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, double>) {
    value = log_internal::Text(v);
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    value = log_internal::Text(static_cast<int64_t>(v));
  } else if constexpr (std::is_integral_v<T>) {
    value = log_internal::Text(static_cast<uint64_t>(v));
  } else {
    value = log_internal::Text(v);
  }
}

}  // namespace varve::base
