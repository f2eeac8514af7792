#include "server/app/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "server/app/version.h"

namespace varve::app {

namespace {

// Field `index` (from 0) of /proc/self/statm, in bytes.
double StatmBytes(int index) {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  unsigned long fields[2] = {0, 0};
  const int n = std::fscanf(file, "%lu %lu", &fields[0], &fields[1]);
  std::fclose(file);
  return n == 2 ? static_cast<double>(fields[index]) * static_cast<double>(sysconf(_SC_PAGESIZE)) : 0;
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double CountEntries(const char* folder) {
  std::error_code error;
  double n = 0;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) ++n;
  return n;
}

}  // namespace

void AddProcessMetrics(const base::Clock& clock, base::Registry& registry) {
  const double started = static_cast<double>(clock.NowMs()) / 1000.0;
  registry.AddGaugeFunction("varve_process_resident_memory_bytes", "Resident memory.", {},
                            [] { return StatmBytes(1); });
  registry.AddGaugeFunction("varve_process_virtual_memory_bytes", "Virtual memory.", {}, [] { return StatmBytes(0); });
  registry.AddGaugeFunction("varve_process_cpu_seconds", "User and system CPU time.", {}, CpuSeconds);
  registry.AddGaugeFunction("varve_process_open_files", "Open file descriptors.", {},
                            [] { return CountEntries("/proc/self/fd"); });
  registry.AddGaugeFunction("varve_process_threads", "Threads.", {}, [] { return CountEntries("/proc/self/task"); });
  registry.AddGaugeFunction("varve_process_start_time_seconds", "Start of the process, Unix time.", {},
                            [started] { return started; });
  registry
      .AddGauge("varve_build_info", "Always 1; the labels say what was built.",
                {{"version", std::string(Version())},
                 {"revision", std::string(Revision())},
                 {"compiler", std::string(Compiler())}})
      .Set(1);
}

}  // namespace varve::app
