#pragma once
// Real programs for tests: started on loopback with free ports, waited for by condition, stopped by their pid.
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/status.h"

namespace varve::test {

// A folder of its own under the system's temporary folder, removed with everything in it at the end.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

// A port on 127.0.0.1 that nothing listens on right now.
int FreePort();

// A child process. Its standard output and error go to a file. Killed (SIGKILL) and reaped by the destructor.
class Process {
 public:
  Process() = default;
  static absl::StatusOr<Process> Start(const std::vector<std::string>& command, const std::string& log_path,
                                       const std::vector<std::string>& extra_environment = {});
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  pid_t pid() const { return pid_; }
  bool Running();
  void Signal(int signal) const;
  // Exit code, or 128 + signal. -1 when it has not ended within the time.
  int Wait(int64_t timeout_ms);
  void Kill();  // SIGKILL, and waits
  // SIGTERM, then waits. The exit code as Wait has it.
  int Stop(int64_t timeout_ms = 30'000);

 private:
  pid_t pid_ = -1;
  int exit_code_ = -1;
};

// Asks `condition` every few milliseconds until it holds. False when the time ran out.
bool Eventually(const std::function<bool()>& condition, int64_t timeout_ms = 20'000);

// The full path of a program, or "" when the machine does not have it.
std::string FindProgram(std::string_view name);
// build/<preset>/bin/<name>, from the environment that ctest sets.
std::string OurProgram(std::string_view name);

// A running varve with its ports.
struct Varve {
  Process process;
  int port = 0;
  std::string data_dir;
  std::string url() const;
};
// Starts varve on `data_dir` with free ports and waits until it is ready. `flags` come last.
absl::StatusOr<Varve> StartVarve(const std::string& data_dir, const std::vector<std::string>& flags = {},
                                 int64_t ready_timeout_ms = 30'000);

}  // namespace varve::test
