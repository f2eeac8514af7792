#include "ingest/admit/status.h"

#include "storage/base/strings.h"

namespace varve::admit {

namespace {

using base::StrAppend;
using base::StrCat;
using model::Reason;

struct Knob {
  std::string_view name;  // "" when no limit decides it
  uint64_t value = 0;
  std::string_view unit = {};
};

Knob KnobOf(Reason reason, const model::Limits& limits) {
  switch (reason) {
    case Reason::kTooManyLabels:
      return {"limits.label-names-per-series-max", limits.label_names_per_series_max};
    case Reason::kLabelNameTooLong:
      return {"limits.label-name-bytes-max", limits.label_name_bytes_max};
    case Reason::kLabelValueTooLong:
      return {"limits.label-value-bytes-max", limits.label_value_bytes_max};
    case Reason::kTooFarInFuture:
      return {"limits.future-max", static_cast<uint64_t>(limits.future_max_ms), "ms"};
    case Reason::kTooOld:
      return {"limits.out-of-order-window", static_cast<uint64_t>(limits.out_of_order_window_ms), "ms"};
    case Reason::kSeriesLimit:
      return {"limits.series-max", limits.series_max};
    default:
      return {};
  }
}

std::string_view FixOf(Reason reason) {
  switch (reason) {
    case Reason::kMalformedLabels:
      return "the sender encodes labels wrongly: update or report the sender";
    case Reason::kMissingMetricName:
      return "give the series a metric name (label __name__)";
    case Reason::kInvalidMetricName:
    case Reason::kInvalidLabelName:
    case Reason::kInvalidLabelValue:
      return "make the text valid UTF-8 where it is exposed, or drop it by write_relabel_configs";
    case Reason::kDuplicateLabelName:
      return "send each label name once per series";
    case Reason::kTooManyLabels:
      return "drop labels by write_relabel_configs, or raise --limits.label-names-per-series-max";
    case Reason::kLabelNameTooLong:
      return "shorten the label name, or raise --limits.label-name-bytes-max";
    case Reason::kLabelValueTooLong:
      return "shorten the label value, or raise --limits.label-value-bytes-max";
    case Reason::kTooFarInFuture:
      return "correct the sender's clock (NTP), or raise --limits.future-max";
    case Reason::kTooOld:
      return "let the sender catch up sooner, or raise --limits.out-of-order-window";
    case Reason::kDuplicateTimestamp:
      return "two senders write the same series: give each an external label of its own, or stop one";
    case Reason::kInvalidHistogram:
      return "the client library makes invalid histograms: update or report it";
    case Reason::kNoSamples:
      return "send at least one sample or histogram with each series";
    case Reason::kInvalidExemplar:
      return "keep exemplar labels short (128 characters together) and valid UTF-8";
    case Reason::kInvalidMetadata:
      return "send a metric name and valid UTF-8 with metadata";
    case Reason::kSeriesLimit:
      return "reduce the number of series, or raise --limits.series-max";
    case Reason::kTimestampOutOfRange:
      return "send timestamps in milliseconds since 1970";
    case Reason::kCount:
      break;
  }
  return "";
}

void AddWritten(Answer& answer, int version, uint64_t samples, uint64_t histograms, uint64_t exemplars) {
  if (version != 2) return;
  answer.headers.emplace_back("X-Prometheus-Remote-Write-Samples-Written", StrCat(samples));
  answer.headers.emplace_back("X-Prometheus-Remote-Write-Histograms-Written", StrCat(histograms));
  answer.headers.emplace_back("X-Prometheus-Remote-Write-Exemplars-Written", StrCat(exemplars));
}

// The line that Prometheus logs: how much, the main reason, one example.
std::string Summary(const model::WriteResult& result) {
  uint64_t series = 0;
  size_t reasons = 0;
  size_t main = 0;
  for (size_t i = 0; i < result.rejections.size(); ++i) {
    const model::Rejection& rejection = result.rejections[i];
    if (rejection.series == 0) continue;
    ++reasons;
    series += rejection.series;
    if (result.rejections[main].series < rejection.series) main = i;
  }
  std::string out = StrCat(result.SamplesRejected(), " samples of ", series, " series or other items refused, ",
                           result.samples_stored + result.histograms_stored, " samples stored; ",
                           model::ToString(static_cast<Reason>(main)));
  if (!result.rejections[main].examples.empty()) StrAppend(out, ": ", result.rejections[main].examples[0]);
  if (reasons > 1) StrAppend(out, " (and ", reasons - 1, " more reasons)");
  return out;
}

std::string ErrorBody(std::string_view type, std::string_view text) {
  std::string body = StrCat("{\"status\":\"error\",\"errorType\":\"", type, "\",\"error\":");
  base::AppendJsonString(body, text);
  return body;
}

}  // namespace

Answer AnswerWrite(const model::WriteResult& result, const model::Limits& limits, int version) {
  Answer answer;
  AddWritten(answer, version, result.samples_stored, result.histograms_stored, result.exemplars_stored);
  if (result.AllStored()) return answer;
  answer.status = 400;
  answer.content_type = "application/json";
  answer.body = ErrorBody("bad_data", Summary(result));
  StrAppend(answer.body, ",\"stored\":{\"samples\":", result.samples_stored,
            ",\"histograms\":", result.histograms_stored, ",\"exemplars\":", result.exemplars_stored,
            "},\"rejected\":[");
  bool first = true;
  for (size_t i = 0; i < result.rejections.size(); ++i) {
    const model::Rejection& rejection = result.rejections[i];
    if (rejection.series == 0) continue;
    const auto reason = static_cast<Reason>(i);
    StrAppend(answer.body, first ? "" : ",", "{\"reason\":\"", model::ToString(reason),
              "\",\"samples\":", rejection.samples, ",\"series\":", rejection.series);
    if (const Knob knob = KnobOf(reason, limits); !knob.name.empty()) {
      StrAppend(answer.body, ",\"limit\":{\"name\":\"", knob.name, "\",\"value\":", knob.value);
      if (!knob.unit.empty()) StrAppend(answer.body, ",\"unit\":\"", knob.unit, "\"");
      answer.body += '}';
    }
    answer.body += ",\"examples\":[";
    for (size_t k = 0; k < rejection.examples.size(); ++k) {
      if (k > 0) answer.body += ',';
      base::AppendJsonString(answer.body, rejection.examples[k]);
    }
    answer.body += "],\"fix\":";
    base::AppendJsonString(answer.body, FixOf(reason));
    answer.body += '}';
    first = false;
  }
  answer.body += "]}\n";
  return answer;
}

Answer AnswerError(const absl::Status& status, int version) {
  Answer answer;
  AddWritten(answer, version, 0, 0, 0);
  std::string_view type;
  bool again = false;
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      answer.status = 400, type = "bad_data";
      break;
    case absl::StatusCode::kUnauthenticated:
      answer.status = 401, type = "unauthorized";
      break;
    case absl::StatusCode::kOutOfRange:
      answer.status = 413, type = "bad_data";
      break;
    case absl::StatusCode::kUnimplemented:
      answer.status = 415, type = "bad_data";
      break;
    case absl::StatusCode::kCancelled:
      answer.status = 499, type = "canceled";
      break;
    case absl::StatusCode::kDeadlineExceeded:
      answer.status = 503, type = "timeout", again = true;
      break;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
      answer.status = 503, type = "unavailable", again = true;
      break;
    default:
      answer.status = 500, type = "internal";
  }
  if (again) answer.headers.emplace_back("Retry-After", "5");
  answer.content_type = "application/json";
  answer.body = StrCat(ErrorBody(type, base::Message(status)), "}\n");
  return answer;
}

}  // namespace varve::admit
