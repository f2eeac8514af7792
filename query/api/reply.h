#pragma once
// Inner parts of the API: replies, and parameters that several endpoints share.
#include "query/api/api.h"
#include "query/api/json.h"
#include "storage/base/strings.h"

namespace varve::api {

inline constexpr std::string_view kTruncated = "results truncated due to limit";

// {"status":"success","data":<data>,"warnings":[...],"infos":[...]}. At most ten of either kind are shown.
Reply Success(std::string_view data, const std::vector<std::string>& warnings = {},
              const std::vector<std::string>& infos = {});
// The same in two steps, so that large data is written where it stays.
std::string BeginSuccess();
void AddSourceWarnings(const Context& context, std::vector<std::string>& warnings);
Reply EndSuccess(std::string body, const std::vector<std::string>& warnings, const std::vector<std::string>& infos);

absl::Status InvalidParameter(std::string_view name, const absl::Status& status);

// `time`-like parameters, ms; `missing` when absent.
absl::StatusOr<int64_t> TimeParameter(const Params& params, std::string_view name, int64_t missing);
// `limit`: 0 when there is none.
absl::StatusOr<uint64_t> LimitParameter(const Params& params);

// start, end and match[] of the metadata endpoints: one request for each match[], or one that matches everything.
absl::StatusOr<std::vector<model::SelectRequest>> SelectRequests(const Params& params, const Context& context,
                                                                 const promql::Options& options);

#define REPLY_IF_ERROR(expression)                                                                        \
  do {                                                                                                    \
    if (absl::Status reply_status_ = (expression); !reply_status_.ok()) return ErrorReply(reply_status_); \
  } while (false)
#define ASSIGN_OR_REPLY_INNER(result, target, expression) \
  auto result = (expression);                             \
  if (!result.ok()) return ErrorReply(result.status());   \
  target = std::move(result).value()
#define ASSIGN_OR_REPLY(target, expression) \
  ASSIGN_OR_REPLY_INNER(VARVE_CONCAT(reply_result_, __LINE__), target, expression)

}  // namespace varve::api
