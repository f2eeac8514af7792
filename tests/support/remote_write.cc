#include "tests/support/remote_write.h"

#include <snappy.h>

#include "proto/prom_write_v1.pb.h"

namespace varve::test {

std::string EncodeRemoteWrite(const std::vector<SentSeries>& series) {
  prometheus::WriteRequest request;
  for (const SentSeries& one : series) {
    auto* out = request.add_timeseries();
    for (const auto& [name, value] : one.labels) {
      auto* label = out->add_labels();
      label->set_name(name);
      label->set_value(value);
    }
    for (const auto& [t, value] : one.samples) {
      auto* sample = out->add_samples();
      sample->set_timestamp(t);
      sample->set_value(value);
    }
  }
  const std::string message = request.SerializeAsString();
  std::string compressed;
  snappy::Compress(message.data(), message.size(), &compressed);
  return compressed;
}

absl::StatusOr<http::ClientResponse> SendRemoteWrite(const std::string& url, const std::string& body,
                                                     const http::Headers& extra, int64_t timeout_ms) {
  http::Headers headers = {{"Content-Type", "application/x-protobuf"},
                           {"Content-Encoding", "snappy"},
                           {"X-Prometheus-Remote-Write-Version", "0.1.0"},
                           {"User-Agent", "varve-tests"}};
  headers.insert(headers.end(), extra.begin(), extra.end());
  return http::Post(url + "/api/v1/push", headers, body, timeout_ms);
}

}  // namespace varve::test
