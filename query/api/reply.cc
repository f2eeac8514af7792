#include "query/api/reply.h"

#include "query/promql/parser.h"

namespace varve::api {

namespace {

constexpr size_t kAnnotationsMax = 10;

void AppendAnnotations(std::string& out, std::string_view key, std::string_view kind,
                       const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  base::StrAppend(out, ",\"", key, "\":[");
  for (size_t i = 0; i < texts.size() && i < kAnnotationsMax; ++i) {
    if (i > 0) out += ',';
    AppendString(out, texts[i]);
  }
  if (texts.size() > kAnnotationsMax) {
    base::StrAppend(out, ",\"", texts.size() - kAnnotationsMax, " more ", kind, " annotations omitted\"");
  }
  out += ']';
}

}  // namespace

void AddSourceWarnings(const Context& context, std::vector<std::string>& warnings) {
  for (std::string& warning : context.source->Warnings()) warnings.push_back(std::move(warning));
}

std::string BeginSuccess() { return "{\"status\":\"success\",\"data\":"; }

Reply EndSuccess(std::string body, const std::vector<std::string>& warnings, const std::vector<std::string>& infos) {
  AppendAnnotations(body, "warnings", "warning", warnings);
  AppendAnnotations(body, "infos", "info", infos);
  body += '}';
  return {200, std::move(body)};
}

Reply Success(std::string_view data, const std::vector<std::string>& warnings, const std::vector<std::string>& infos) {
  return EndSuccess(BeginSuccess().append(data), warnings, infos);
}

Reply ErrorReply(int status, std::string_view message) {
  std::string_view type = "internal";
  switch (status) {
    case 400:
      type = "bad_data";
      break;
    case 404:
      type = "not_found";
      break;
    case 406:
      type = "not_acceptable";
      break;
    case 422:
      type = "execution";
      break;
    case 499:
      type = "canceled";
      break;
    case 503:
      type = "timeout";
      break;
    default:
      break;
  }
  Reply reply;
  reply.status = status;
  base::StrAppend(reply.body, "{\"status\":\"error\",\"errorType\":\"", type, "\",\"error\":");
  AppendString(reply.body, message);
  reply.body += '}';
  return reply;
}

Reply ErrorReply(const absl::Status& status) {
  int code = 500;
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      code = 400;
      break;
    case absl::StatusCode::kNotFound:
      code = 404;
      break;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kResourceExhausted:
      code = 422;
      break;
    case absl::StatusCode::kCancelled:
      code = 499;
      break;
    case absl::StatusCode::kDeadlineExceeded:
      code = 503;
      break;
    default:
      break;
  }
  return ErrorReply(code, base::Message(status));
}

absl::Status InvalidParameter(std::string_view name, const absl::Status& status) {
  return base::Annotate(status, base::StrCat("invalid parameter ", base::QuoteGo(name)));
}

absl::StatusOr<int64_t> TimeParameter(const Params& params, std::string_view name, int64_t missing) {
  const std::string_view text = params.Get(name);
  if (text.empty()) return missing;
  auto time = ParseTime(text);
  if (!time.ok()) return InvalidParameter(name, time.status());
  return time;
}

absl::StatusOr<uint64_t> LimitParameter(const Params& params) {
  const std::string_view text = params.Get("limit");
  if (text.empty()) return 0;
  const std::optional<int64_t> limit = base::ParseInt64(text);
  if (!limit) {
    return InvalidParameter("limit", absl::InvalidArgumentError(base::StrCat("strconv.Atoi: parsing ",
                                                                             base::QuoteGo(text), ": invalid syntax")));
  }
  if (*limit < 0) return InvalidParameter("limit", absl::InvalidArgumentError("limit must be non-negative"));
  return static_cast<uint64_t>(*limit);
}

absl::StatusOr<std::vector<model::SelectRequest>> SelectRequests(const Params& params, const Context& context,
                                                                 const promql::Options& options) {
  model::SelectRequest request;
  request.cancel = context.cancel;
  ASSIGN_OR_RETURN(const int64_t start_ms, TimeParameter(params, "start", std::numeric_limits<int64_t>::min()));
  ASSIGN_OR_RETURN(const int64_t end_ms, TimeParameter(params, "end", std::numeric_limits<int64_t>::max()));
  if (end_ms < start_ms) return absl::InvalidArgumentError("end timestamp must not be before start timestamp");
  request.range = model::TimeRange::Closed(start_ms, end_ms);
  std::vector<model::SelectRequest> requests;
  for (const std::string_view text : params.All("match[]")) {
    auto matchers = promql::ParseMetricSelector(text, options);
    if (!matchers.ok()) {
      absl::Status status = matchers.status();
      if (base::Message(status).find("must contain at least one non-empty matcher") != std::string_view::npos) {
        status = absl::InvalidArgumentError("match[] must contain at least one non-empty matcher");
      }
      return InvalidParameter("match[]", status);
    }
    request.matchers = *std::move(matchers);
    requests.push_back(request);
  }
  if (requests.empty()) requests.push_back(request);
  return requests;
}

}  // namespace varve::api
