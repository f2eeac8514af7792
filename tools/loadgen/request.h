#pragma once
// Turns a part of a fleet into remote write requests, in the order of time.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/base/strings.h"
#include "tools/loadgen/fleet.h"

namespace varve::loadgen {

struct Request {
  std::string body;  // snappy
  uint64_t samples = 0;
  uint64_t message_bytes = 0;  // before compression
  int64_t newest_ms = 0;
};

struct StreamConfig {
  int version = 1;  // of remote write
  size_t samples_per_request = 2000;
  int64_t scrapes = 1;           // the last scrape sent is scrapes - 1
  size_t shard = 0, shards = 1;  // this stream has every shards-th target: a series always in the same one
  int64_t first_scrape = 0;
};

// One sender's requests. Not thread-safe; the fleet must outlive it. When a target is replaced, its old series get
// staleness markers, as a Prometheus writes them.
class Stream {
 public:
  Stream(const Fleet& fleet, const StreamConfig& config);
  // Nothing when all scrapes are through.
  std::optional<Request> Next();

 private:
  void AddSeries(size_t target, size_t series, int64_t revision, int64_t t_ms, double value);
  void AddSeriesV2(size_t target, size_t series, int64_t t_ms, double value);
  Request Finish();

  const Fleet& fleet_;
  const StreamConfig config_;
  std::vector<size_t> order_;  // of this stream's targets within an interval
  int64_t scrape_ = 0;
  size_t at_ = 0;      // into order_
  size_t series_ = 0;  // of the target
  size_t stale_ = 0;   // series of the revision before that have their marker
  std::string message_, labels_, series_bytes_;
  std::vector<std::string> symbols_;
  base::StringMap<uint32_t> refs_;
  uint64_t samples_ = 0;
  int64_t newest_ms_ = 0;
};

// A 1.0 request with the metadata of all pages.
Request MetadataRequest(const Fleet& fleet);

}  // namespace varve::loadgen
