#pragma once
// The HTTP/1.1 listener. Handlers run on its socket threads and must not block; their answers may come from any thread.
//
// Promises: on one connection answers leave in the order of the requests, one handler at a time. Whatever a client
// sends gets an answer with a status (garbage 400, slow 408, large body 413, large header 431, overload 503 with
// Retry-After) before the connection is closed. A request's Cancel is requested when its client goes away and when Stop
// runs out of patience. Memory of unfinished requests is bounded: connections, header bytes, body bytes.
#include <cstdint>
#include <memory>
#include <string>

#include "server/http/router.h"
#include "storage/base/log.h"
#include "storage/base/metrics.h"
#include "storage/base/status.h"

namespace varve::http {

struct ServerConfig {
  std::string listen = "127.0.0.1:9201";          // host:port; an IPv6 host in brackets; port 0 picks a free one
  int32_t threads = 2;                            // socket threads; a connection stays on one
  int32_t connections_max = 4096;                 // more wait in the kernel's queue
  uint64_t body_bytes_max = 32u << 20;            // larger ones: 413
  uint64_t header_bytes_max = 64u << 10;          // larger ones: 431
  uint64_t inflight_body_bytes_max = 512u << 20;  // bodies of all unfinished requests; beyond: 503, Retry-After
  int64_t idle_timeout_ms = 120'000;              // between requests
  int64_t read_timeout_ms = 30'000;               // from the first byte of a request to its last: 408
  int64_t write_timeout_ms = 30'000;              // for a whole answer: the connection is closed
  uint64_t gzip_bytes_min = 1024;                 // smaller answers are not compressed

  absl::Status Validate() const;
};

class Server {
 public:
  // Listens and serves when it returns. The logger is copied; `registry` must outlive the server. Unavailable when the
  // address is taken, InvalidArgument when it makes no sense.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerConfig& config, Router router,
                                                       const base::Logger& logger, base::Registry& registry);
  ~Server();  // Stop(0) when not stopped yet

  int port() const;
  std::string address() const;  // "127.0.0.1:9201", with the real port

  // Stops accepting, closes idle connections, lets running requests finish within the deadline; then requests their
  // cancellation, waits for at most a second more and closes what is left. Blocks; not from a handler. Answers that
  // come later are dropped, and may come even when the server is gone.
  void Stop(int64_t deadline_ms);

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace varve::http
