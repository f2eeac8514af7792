#pragma once
// Sends a fleet's requests over several connections and counts what becomes of them; asks the server afterwards.
#include <cstdint>
#include <string>
#include <vector>

#include "storage/base/clock.h"
#include "storage/base/status.h"
#include "tools/loadgen/fleet.h"

namespace varve::loadgen {

struct RunConfig {
  std::string url;     // of the push endpoint
  std::string tenant;  // X-Scope-OrgID; "" sends none
  int version = 1;
  size_t samples_per_request = 2000;
  size_t connections = 2;
  int64_t scrapes = 1;            // the last scrape sent is scrapes - 1
  int64_t first_scrape = 0;       // for sending a fleet in several runs
  double samples_per_second = 0;  // 0 = as fast as the server takes them
  double seconds_max = 0;         // 0 = until all scrapes are sent
  bool prepare = false;           // encode everything before the clock starts
  bool dry_run = false;           // encode only
  int64_t timeout_ms = 30'000;
  int attempts = 5;  // per request, on 5xx and broken connections
};

struct Summary {
  uint64_t series = 0, targets = 0;
  uint64_t requests = 0, samples = 0;                  // answered 2xx
  uint64_t refused_requests = 0, refused_samples = 0;  // answered 4xx
  uint64_t failed_requests = 0;                        // given up
  uint64_t retries = 0;
  uint64_t body_bytes = 0, message_bytes = 0;  // of all requests, compressed and not
  int64_t newest_ms = 0;                       // newest timestamp sent
  int64_t scrapes_done = 0;                    // of every target
  bool complete = false;                       // all scrapes were sent
  double prepare_seconds = 0, seconds = 0, cpu_seconds = 0;
  double latency_p50_ms = 0, latency_p99_ms = 0, latency_max_ms = 0;
  std::string first_error;

  std::string AsTable() const;
  std::string AsJson() const;
};

// Blocks until done. Uses `connections` threads.
Summary Run(const Fleet& fleet, const RunConfig& config, const base::Clock& clock);

struct Verification {
  uint64_t series_want = 0, series_got = 0;
  uint64_t samples_want = 0, samples_got = 0;
  uint64_t spots = 0, spots_right = 0;
  std::string first_difference;
  bool ok() const { return series_want == series_got && samples_want == samples_got && spots == spots_right; }
};
// Counts series and samples by PromQL and recomputes `spots` random samples. `url` is the server's root. All scrapes
// must have been sent.
absl::StatusOr<Verification> Verify(const Fleet& fleet, const std::string& url, const std::string& tenant,
                                    int64_t scrapes, uint64_t spots, int64_t timeout_ms);

}  // namespace varve::loadgen
