#pragma once
// The answer to a write. Pure functions; HTTP itself is server/http's.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/base/status.h"
#include "storage/model/limits.h"
#include "storage/model/write_result.h"

namespace varve::admit {

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
