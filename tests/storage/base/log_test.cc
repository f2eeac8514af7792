#include "storage/base/log.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>
#include <limits>

namespace varve::base {
namespace {

// What `write` logs, without the time stamp.
std::string Logged(LogFormat format, LogLevel lowest, const std::function<void(const Logger&)>& write) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  write(Logger(ends[1], format, lowest));
  ::close(ends[1]);
  std::string out;
  char buffer[4096];
  for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<size_t>(n));
  ::close(ends[0]);
  std::string without;
  for (size_t at = 0; at < out.size();) {
    const size_t end = out.find('\n', at);
    REQUIRE(end != std::string::npos);
    const std::string line = out.substr(at, end - at);
    const size_t level = line.find("level");
    REQUIRE(level != std::string::npos);
    without += line.substr(format == LogFormat::kJson ? level - 1 : level) + "\n";
    at = end + 1;
  }
  return without;
}

TEST_CASE("log lines are logfmt with quotes where they are needed") {
  CHECK(Logged(LogFormat::kLogfmt, LogLevel::kInfo,
               [](const Logger& log) {
                 log.Debug("not shown");
                 log.Info("two words",
                          {{"n", 3}, {"f", 1.5}, {"yes", true}, {"name", "plain"}, {"empty", ""}, {"eq", "a=b"}});
                 log.With({"component", "wal"}).Error("x", {{"big", UINT64_MAX}});
               }) ==
        "level=info msg=\"two words\" n=3 f=1.5 yes=true name=plain empty=\"\" eq=\"a=b\"\n"
        "level=error msg=x component=wal big=18446744073709551615\n");
}

TEST_CASE("log lines are JSON when asked") {
  CHECK(Logged(LogFormat::kJson, LogLevel::kDebug, [](const Logger& log) {
          log.Debug("two words", {{"n", -3}, {"yes", false}, {"name", "say \"hi\" \\"}});
        }) == "\"level\":\"debug\",\"msg\":\"two words\",\"n\":-3,\"yes\":false,\"name\":\"say \\\"hi\\\" \\\\\"}\n");
}

TEST_CASE("numbers that JSON does not have are texts there") {
  CHECK(Logged(LogFormat::kJson, LogLevel::kDebug, [](const Logger& log) {
          log.Info("x", {{"v", std::numeric_limits<double>::infinity()}});
        }) == "\"level\":\"info\",\"msg\":\"x\",\"v\":\"inf\"}\n");
}

TEST_CASE("no text can fake a line or reach the terminal with a control byte") {
  for (const LogFormat format : {LogFormat::kLogfmt, LogFormat::kJson}) {
    for (int byte = 0; byte < 256; ++byte) {
      const std::string evil = std::string("a") + static_cast<char>(byte) + "level=error b";
      const std::string line =
          Logged(format, LogLevel::kInfo, [&](const Logger& log) { log.Info(evil, {{"v", evil}}); });
      CHECK(std::count(line.begin(), line.end(), '\n') == 1);
      for (const char c : line.substr(0, line.size() - 1)) {
        CHECK(static_cast<unsigned char>(c) >= 0x20);
        CHECK(c != 0x7F);
      }
    }
  }
}

TEST_CASE("a silent logger writes nowhere") { Logger::Silent().Error("nobody reads this", {{"n", 1}}); }

}  // namespace
}  // namespace varve::base
