#include "tests/support/process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "server/http/client.h"
#include "storage/base/check.h"
#include "storage/base/strings.h"

namespace varve::test {

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "varve-test-XXXXXX").string();
  VARVE_CHECK(mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}
TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  VARVE_CHECK(fd >= 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  VARVE_CHECK(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  socklen_t size = sizeof address;
  VARVE_CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  close(fd);
  return ntohs(address.sin_port);
}

absl::StatusOr<Process> Process::Start(const std::vector<std::string>& command, const std::string& log_path,
                                       const std::vector<std::string>& extra_environment) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const int log = open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) return base::ErrnoStatus(errno, log_path);
  std::vector<std::string> environment = extra_environment;
  for (char** variable = environ; *variable != nullptr; ++variable) environment.emplace_back(*variable);
  std::vector<char*> envp;
  for (const std::string& variable : environment) envp.push_back(const_cast<char*>(variable.c_str()));
  envp.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    close(log);
    return base::ErrnoStatus(errno, "fork");
  }
  if (pid == 0) {
    // A test that dies must not leave its servers behind.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    dup2(log, 1);
    dup2(log, 2);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  close(log);
  Process process;
  process.pid_ = pid;
  return process;
}

Process::Process(Process&& other) noexcept : pid_(other.pid_), exit_code_(other.exit_code_) { other.pid_ = -1; }
Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    Kill();
    pid_ = other.pid_;
    exit_code_ = other.exit_code_;
    other.pid_ = -1;
  }
  return *this;
}
Process::~Process() { Kill(); }

bool Process::Running() { return pid_ > 0 && Wait(0) == -1; }
void Process::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

int Process::Wait(int64_t timeout_ms) {
  if (pid_ <= 0) return exit_code_;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    int state = 0;
    if (waitpid(pid_, &state, WNOHANG) == pid_) {
      pid_ = -1;
      exit_code_ = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
      return exit_code_;
    }
    if (std::chrono::steady_clock::now() >= deadline) return -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void Process::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  int state = 0;
  while (waitpid(pid_, &state, 0) < 0 && errno == EINTR) {
  }
  exit_code_ = 128 + SIGKILL;
  pid_ = -1;
}

int Process::Stop(int64_t timeout_ms) {
  Signal(SIGTERM);
  return Wait(timeout_ms);
}

bool Eventually(const std::function<bool()>& condition, int64_t timeout_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    if (condition()) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::string FindProgram(std::string_view name) {
  const char* path = getenv("PATH");
  const std::string folders = base::StrCat(path == nullptr ? "" : path, ":/usr/bin:/usr/local/bin:/usr/sbin");
  for (const std::string_view folder : base::StrSplit(folders, ':')) {
    const std::string candidate = base::StrCat(folder, "/", name);
    if (!folder.empty() && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

std::string OurProgram(std::string_view name) {
  const char* folder = getenv("VARVE_BIN_DIR");
  VARVE_CHECK_MSG(folder != nullptr, "VARVE_BIN_DIR is not set; run the tests through ctest");
  return base::StrCat(folder, "/", name);
}

std::string Varve::url() const { return base::StrCat("http://127.0.0.1:", port); }

absl::StatusOr<Varve> StartVarve(const std::string& data_dir, const std::vector<std::string>& flags,
                                 int64_t ready_timeout_ms) {
  Varve varve;
  varve.data_dir = data_dir;
  varve.port = FreePort();
  std::vector<std::string> command = {OurProgram("varve"),
                                      "--data-dir",
                                      data_dir,
                                      "--http.listen",
                                      base::StrCat("127.0.0.1:", varve.port),
                                      "--grpc.listen",
                                      ""};
  command.insert(command.end(), flags.begin(), flags.end());
  const std::string log = data_dir + ".log";
  ASSIGN_OR_RETURN(varve.process, Process::Start(command, log));
  const bool ready = Eventually(
      [&] {
        if (!varve.process.Running()) return true;
        const auto answer = http::Get(varve.url() + "/ready", {}, 2000);
        return answer.ok() && answer->status == 200;
      },
      ready_timeout_ms);
  if (!ready || !varve.process.Running()) {
    return absl::UnavailableError(base::StrCat("varve did not become ready, see ", log));
  }
  return varve;
}

}  // namespace varve::test
