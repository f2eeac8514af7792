#pragma once
// The gRPC listener: the standard health service (grpc.health.v1) and reflection for now; services between roles join
// it when there are several processes.
#include <memory>
#include <string>
#include <string_view>

#include "storage/base/status.h"

namespace varve::rpc {

struct ServerConfig {
  std::string listen = "127.0.0.1:9202";  // host:port; port 0 picks a free one
  int message_bytes_max = 64 << 20;
};

// Any thread.
class Server {
 public:
  // Listens when it returns, and says NOT_SERVING until SetServing(true). Unavailable when the address is taken.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerConfig& config);
  ~Server();  // Stop(0) when not stopped yet

  int port() const;
  // What the health service answers, for the whole server ("") and, when `service` is given, for that name.
  void SetServing(bool serving, std::string_view service = {});
  // Health turns to NOT_SERVING for good; running calls may finish within the deadline. Blocks.
  void Stop(int64_t deadline_ms);

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Asks a server's health service. True for SERVING; NotFound when it does not know the service; Unavailable when nobody
// answers in time. For probes and tests.
absl::StatusOr<bool> CheckHealth(const std::string& address, const std::string& service, int64_t timeout_ms);

}  // namespace varve::rpc
