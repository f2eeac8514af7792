#pragma once
// The answer to a write, and what a write request says about itself. Pure functions; HTTP itself is server/http's.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ingest/decode/encoding.h"
#include "storage/base/status.h"
#include "storage/model/limits.h"
#include "storage/model/write_result.h"

namespace varve::admit {

struct PushFormat {
  int version = 1;  // of remote write
  decode::Encoding encoding = decode::Encoding::kSnappy;
};
// Reads Content-Type and Content-Encoding. The error's message is the text of a 415 answer.
//   application/x-protobuf                                              1
//   application/x-protobuf;proto=prometheus.WriteRequest                1
//   application/x-protobuf;proto=io.prometheus.write.v2.Request         2
// Encodings: snappy, zstd, gzip, identity; none means snappy, since 0.1.0 senders may leave it out.
absl::StatusOr<PushFormat> ParsePushFormat(std::string_view content_type, std::string_view content_encoding);

struct Answer {
  int status = 204;
  std::string content_type;  // "" when there is no body
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};
// 204 when everything was stored, else 400 with a JSON body that counts both parts and says for each reason which knob
// decides it. Never 2xx with something missing, never 5xx for something that stays wrong.
Answer AnswerWrite(const model::WriteResult& result, const model::Limits& limits, int version);
// For a request of which nothing was stored. What stays wrong is 4xx: InvalidArgument 400, OutOfRange 413 (body too
// large), Unimplemented 415, Unauthenticated 401, Cancelled 499. What may pass is 5xx, so that the sender tries again:
// Unavailable, ResourceExhausted, DeadlineExceeded and Aborted 503 with Retry-After, everything else 500.
Answer AnswerError(const absl::Status& status, int version);

}  // namespace varve::admit
