#pragma once
// A sender of remote write 1.0 for tests, encoded by libprotobuf so that it owes nothing to our own decoder.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/http/client.h"
#include "storage/base/status.h"

namespace varve::test {

struct SentSeries {
  std::vector<std::pair<std::string, std::string>> labels;  // sorted by name
  std::vector<std::pair<int64_t, double>> samples;          // ms, value
};
// The snappy-compressed message.
std::string EncodeRemoteWrite(const std::vector<SentSeries>& series);
// Posts it to <url>/api/v1/push.
absl::StatusOr<http::ClientResponse> SendRemoteWrite(const std::string& url, const std::string& body,
                                                     const http::Headers& extra = {}, int64_t timeout_ms = 10'000);

}  // namespace varve::test
