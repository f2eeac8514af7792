#include "ingest/admit/status.h"

#include <catch2/catch.hpp>

namespace varve::admit {

namespace {

using model::Reason;

std::string HeaderOf(const Answer& answer, std::string_view name) {
  for (const auto& [key, value] : answer.headers) {
    if (key == name) return value;
  }
  return "(none)";
}

}  // namespace

TEST_CASE("all stored is 204 without a body", "[admit]") {
  model::WriteResult result;
  result.samples_stored = 5;
  result.histograms_stored = 2;
  const Answer one = AnswerWrite(result, {}, 1);
  CHECK(one.status == 204);
  CHECK(one.body.empty());
  CHECK(one.headers.empty());
  const Answer two = AnswerWrite(result, {}, 2);
  CHECK(two.status == 204);
  CHECK(HeaderOf(two, "X-Prometheus-Remote-Write-Samples-Written") == "5");
  CHECK(HeaderOf(two, "X-Prometheus-Remote-Write-Histograms-Written") == "2");
  CHECK(HeaderOf(two, "X-Prometheus-Remote-Write-Exemplars-Written") == "0");
}

TEST_CASE("a partial write is 400 and says everything in JSON", "[admit]") {
  model::WriteResult result;
  result.samples_stored = 5;
  result.exemplars_stored = 1;
  model::Limits limits;
  limits.series_max = 10;
  result.Reject(Reason::kSeriesLimit, 3, "series up{a=\"1\"}");
  result.Reject(Reason::kInvalidLabelValue, 1, "bytes \xFF and\ncontrol \x01");
  const Answer answer = AnswerWrite(result, limits, 2);
  CHECK(answer.status == 400);
  CHECK(answer.content_type == "application/json");
  CHECK(HeaderOf(answer, "X-Prometheus-Remote-Write-Samples-Written") == "5");
  CHECK(
      answer.body ==
      "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"4 samples of 2 series or other items refused, 5 "
      "samples stored; label-value-invalid: bytes \xEF\xBF\xBD and\\ncontrol \\u0001 (and 1 more reasons)\","
      "\"stored\":{\"samples\":5,\"histograms\":0,\"exemplars\":1},\"rejected\":["
      "{\"reason\":\"label-value-invalid\",\"samples\":1,\"series\":1,\"examples\":[\"bytes \xEF\xBF\xBD and\\ncontrol "
      "\\u0001\"],\"fix\":\"make the text valid UTF-8 where it is exposed, or drop it by write_relabel_configs\"},"
      "{\"reason\":\"max-series-per-tenant\",\"samples\":3,\"series\":1,\"limit\":{\"name\":\"limits.series-max\","
      "\"value\":10},\"examples\":[\"series up{a=\\\"1\\\"}\"],\"fix\":\"reduce the number of series, or raise "
      "--limits.series-max\"}]}\n");
}

TEST_CASE("every reason has advice", "[admit]") {
  for (size_t i = 0; i < static_cast<size_t>(Reason::kCount); ++i) {
    model::WriteResult result;
    result.Reject(static_cast<Reason>(i), 1, "x");
    CAPTURE(i);
    CHECK(AnswerWrite(result, {}, 1).body.find("\"fix\":\"\"") == std::string::npos);
  }
}

TEST_CASE("what may pass is 5xx and what stays wrong is 4xx", "[admit]") {
  CHECK(AnswerError(absl::InvalidArgumentError("x"), 1).status == 400);
  CHECK(AnswerError(absl::OutOfRangeError("x"), 1).status == 413);
  CHECK(AnswerError(absl::UnimplementedError("x"), 1).status == 415);
  CHECK(AnswerError(absl::UnauthenticatedError("x"), 1).status == 401);
  CHECK(AnswerError(absl::CancelledError("x"), 1).status == 499);
  CHECK(AnswerError(absl::DataLossError("x"), 1).status == 500);
  for (const absl::Status& passing :
       {absl::UnavailableError("x"), absl::ResourceExhaustedError("disk"), absl::DeadlineExceededError("x")}) {
    const Answer answer = AnswerError(passing, 2);
    CHECK(answer.status == 503);
    CHECK(HeaderOf(answer, "Retry-After") == "5");
    CHECK(HeaderOf(answer, "X-Prometheus-Remote-Write-Samples-Written") == "0");
  }
}

}  // namespace varve::admit
