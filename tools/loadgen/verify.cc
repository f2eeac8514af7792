#include <algorithm>
#include <optional>

#include "server/http/client.h"
#include "server/http/message.h"
#include "storage/base/dice.h"
#include "storage/base/strings.h"
#include "tools/loadgen/run.h"

namespace varve::loadgen {

namespace {

using base::StrAppend;
using base::StrCat;

// The first sample's value in an instant query's answer: ..."value":[<time>,"<value>"]... Nothing when there is none.
std::optional<double> ValueIn(std::string_view body) {
  constexpr std::string_view kKey = "\"value\":[";
  size_t at = body.find(kKey);
  if (at == std::string_view::npos) return std::nullopt;
  at = body.find(",\"", at + kKey.size());
  if (at == std::string_view::npos) return std::nullopt;
  const size_t end = body.find('"', at + 2);
  if (end == std::string_view::npos) return std::nullopt;
  return base::ParseDouble(body.substr(at + 2, end - at - 2));
}

class Asker {
 public:
  Asker(http::Connection connection, std::string target, const std::string& tenant, int64_t timeout_ms)
      : connection_(std::move(connection)), target_(std::move(target)), timeout_ms_(timeout_ms) {
    headers_ = {{"Content-Type", "application/x-www-form-urlencoded"}};
    if (!tenant.empty()) headers_.emplace_back("X-Scope-OrgID", tenant);
  }
  absl::StatusOr<std::optional<double>> Ask(std::string_view query, int64_t t_ms) {
    const int64_t part = t_ms % 1000;
    const std::string body =
        StrCat("query=", http::PercentEncode(query), "&time=", t_ms / 1000, ".", part / 100, part / 10 % 10, part % 10);
    ASSIGN_OR_RETURN(const http::ClientResponse answer, connection_.Send("POST", target_, headers_, body, timeout_ms_));
    if (answer.status != 200) {
      return absl::InternalError(StrCat("query ", query, ": status ", answer.status, ": ", answer.body.substr(0, 300)));
    }
    return ValueIn(answer.body);
  }

 private:
  http::Connection connection_;
  const std::string target_;
  const int64_t timeout_ms_;
  http::Headers headers_;
};

std::string Selector(model::LabelsView labels) {
  std::string out = "{";
  for (const model::LabelRef label : labels) {
    const bool classic = model::IsClassicLabelName(label.name);
    StrAppend(out, out.size() > 1 ? "," : "", classic ? std::string(label.name) : base::QuoteGo(label.name), "=",
              base::QuoteGo(label.value));
  }
  return out + "}";
}

}  // namespace

absl::StatusOr<Verification> Verify(const Fleet& fleet, const std::string& url, const std::string& tenant,
                                    int64_t scrapes, uint64_t spots, int64_t timeout_ms) {
  ASSIGN_OR_RETURN(http::Url parsed, http::Url::Parse(url));
  ASSIGN_OR_RETURN(http::Connection connection, http::Connection::Open(parsed.host, parsed.port, timeout_ms));
  while (parsed.target.ends_with('/')) parsed.target.pop_back();
  Asker asker(std::move(connection), parsed.target + "/api/v1/query", tenant, timeout_ms);

  Verification out;
  int64_t newest_ms = 0;
  int64_t oldest_ms = INT64_MAX;
  base::StringMap<uint64_t> want_by_metric;  // staleness markers do not count
  std::string bytes;
  for (size_t target = 0; target < fleet.targets(); ++target) {
    newest_ms = std::max(newest_ms, fleet.TimeMs(target, scrapes - 1));
    oldest_ms = std::min(oldest_ms, fleet.TimeMs(target, 0));
    for (size_t i = 0; i < fleet.series_of(target); ++i) {
      bytes.clear();
      fleet.AppendLabels(target, i, 0, bytes);
      want_by_metric[model::LabelsView(bytes).MetricName()] += static_cast<uint64_t>(scrapes);
    }
    out.series_want += fleet.series_of(target);
    out.samples_want += fleet.series_of(target) * static_cast<uint64_t>(scrapes);
  }
  constexpr std::string_view kAll = "{job=~\"loadgen-.+\"}";
  ASSIGN_OR_RETURN(const std::optional<double> series, asker.Ask(StrCat("count(", kAll, ")"), newest_ms));
  out.series_got = static_cast<uint64_t>(series.value_or(0));
  // Metric by metric: without their names, series of different metrics would be the same.
  for (const auto& [metric, want] : want_by_metric) {
    const std::string query = StrCat("sum(count_over_time({__name__=", base::QuoteGo(metric), ",job=~\"loadgen-.+\"}[",
                                     newest_ms - oldest_ms + 1, "ms]))");
    ASSIGN_OR_RETURN(const std::optional<double> got, asker.Ask(query, newest_ms));
    out.samples_got += static_cast<uint64_t>(got.value_or(0));
    if (got.value_or(0) != static_cast<double>(want) && out.first_difference.empty()) {
      out.first_difference = StrCat(query, " at ", newest_ms, ": want ", want, ", got ", got.value_or(0));
    }
  }

  base::Dice dice(fleet.config().seed);
  for (uint64_t i = 0; i < spots; ++i) {
    const size_t target = dice.Below(fleet.targets());
    const size_t of_target = dice.Below(fleet.series_of(target));
    const int64_t scrape = static_cast<int64_t>(dice.Below(static_cast<uint64_t>(scrapes)));
    std::string labels;
    fleet.AppendLabels(target, of_target, fleet.Revision(target, scrape), labels);
    const std::string selector = Selector(model::LabelsView(labels));
    const int64_t t_ms = fleet.TimeMs(target, scrape);
    const double want = fleet.Value(target, of_target, scrape);
    ASSIGN_OR_RETURN(const std::optional<double> got, asker.Ask(selector, t_ms));
    ++out.spots;
    if (got.has_value() && (*got == want || (*got != *got && want != want))) {
      ++out.spots_right;
    } else if (out.first_difference.empty()) {
      out.first_difference =
          StrCat(selector, " at ", t_ms, ": want ", want, ", got ", got.has_value() ? StrCat(*got) : "nothing");
    }
  }
  return out;
}

}  // namespace varve::loadgen
