#pragma once
// A small blocking HTTP/1.1 client for tools and tests. No TLS, no redirects.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/base/status.h"

namespace varve::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct ClientResponse {
  int status = 0;
  Headers headers;  // names in lower case
  std::string body;
  std::string_view Header(std::string_view lower_case_name) const;  // "" when absent
};

// "http://host:port/path?query" taken apart. Port 80 when none is given.
struct Url {
  std::string host;
  int port = 80;
  std::string target = "/";
  static absl::StatusOr<Url> Parse(std::string_view text);
};

// One kept-alive connection. Not thread-safe. Errors: Unavailable (no connection, or it broke), DeadlineExceeded,
// InvalidArgument (URL), Internal (the answer is not HTTP).
class Connection {
 public:
  static absl::StatusOr<Connection> Open(const std::string& host, int port, int64_t timeout_ms);
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection();
  // Any status code is an answer, not an error. Host and Content-Length are added.
  absl::StatusOr<ClientResponse> Send(std::string_view method, std::string_view target, const Headers& headers,
                                      std::string_view body, int64_t timeout_ms);
  // For tests: bytes as they are, and the next answer. `to_head`: the answer to a HEAD request has no body.
  absl::Status SendRaw(std::string_view bytes, int64_t timeout_ms);
  absl::StatusOr<ClientResponse> ReadResponse(int64_t timeout_ms, bool to_head = false);
  void ShutdownWrite();  // tells the other side that nothing more comes

 private:
  struct Impl;
  explicit Connection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

absl::StatusOr<ClientResponse> Get(std::string_view url, const Headers& headers, int64_t timeout_ms);
absl::StatusOr<ClientResponse> Post(std::string_view url, const Headers& headers, std::string_view body,
                                    int64_t timeout_ms);

}  // namespace varve::http
