#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "server/app/app.h"
#include "server/app/config.h"
#include "server/app/version.h"
#include "storage/base/clock.h"
#include "storage/base/log.h"
#include "storage/base/strings.h"

// jemalloc reads this at its start: give memory back soon, so that a burst does not stay resident.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "background_thread:true,dirty_decay_ms:2000,muzzy_decay_ms:0";
}

namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr int kExitForced = 130;

int Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace varve;
  // Before any thread starts, so that all of them inherit it and only WaitForSignal sees these.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  const auto loaded = app::LoadFromProcess(argc, argv);
  if (!loaded.ok()) {
    std::fprintf(stderr, "varve: %s\n", std::string(base::Message(loaded.status())).c_str());
    std::fprintf(stderr, "Run 'varve --help' for all settings.\n");
    return kExitUsage;
  }
  switch (loaded->action) {
    case app::Action::kHelp:
      return Print(app::HelpText());
    case app::Action::kVersion:
      return Print(base::StrCat("varve ", app::Version(), " (", app::Revision(), ", ", app::Compiler(), ")\n"));
    case app::Action::kConfigCheck:
      return Print("The configuration is valid.\n");
    case app::Action::kConfigDocs:
      return Print(app::DocsMarkdown());
    case app::Action::kRun:
      break;
  }

  const base::SystemClock clock;
  const base::Logger log(STDERR_FILENO, loaded->config.log_format, loaded->config.log_level);
  auto started = app::App::Start(loaded->config, clock, log);
  if (!started.ok()) {
    log.Error("cannot start", {{"error", base::Message(started.status())}});
    return kExitFailure;
  }

  int signal_number = 0;
  sigwait(&signals, &signal_number);
  log.Info("stopping, a second signal forces it", {{"signal", strsignal(signal_number)}});
  std::thread force([&signals, &log] {
    int second = 0;
    sigwait(&signals, &second);
    log.Warn("forced to stop", {{"signal", strsignal(second)}});
    _exit(kExitForced);
  });
  force.detach();
  (*started)->Stop();
  log.Info("stopped");
  return 0;
}
