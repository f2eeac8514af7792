#include "query/exec/annotations.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>

#include "query/promql/parser.h"
#include "storage/base/strings.h"

namespace varve::exec {
namespace {

std::string Rfc3339(int64_t ms) {
  int64_t seconds = ms / 1000;
  if (ms % 1000 < 0) --seconds;
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&time, &parts);
  char buffer[32];
  const size_t n = std::strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::string(buffer, n);
}

std::string TwoDigits(double v) {  // Go's %.2g
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::general, 2).ptr;
  return std::string(buffer, end);
}

std::vector<std::string> Render(std::string_view prefix, const std::map<std::string, int32_t, std::less<>>& texts,
                                std::string_view query) {
  std::vector<std::string> out;
  for (const auto& [text, offset] : texts) {
    out.push_back(base::StrCat(prefix, text, " (", promql::LineColumn(query, offset), ")"));
  }
  return out;
}

}  // namespace

void Annotations::Add(Texts& texts, std::string_view text, promql::PositionRange position) {
  const auto found = texts.find(text);
  if (found == texts.end()) {
    texts.emplace(std::string(text), position.begin);
  } else {
    found->second = std::min(found->second, position.begin);
  }
}

void Annotations::Levelled(std::string_view metric, promql::PositionRange position, const Monotonicity& event) {
  auto [entry, fresh] = levelled_.try_emplace({std::string(metric), position.begin}, event);
  if (fresh) return;
  Monotonicity& all = entry->second;
  all.bucket_low = std::min(all.bucket_low, event.bucket_low);
  all.bucket_high = std::max(all.bucket_high, event.bucket_high);
  all.difference_max = std::max(all.difference_max, event.difference_max);
  all.first_ms = std::min(all.first_ms, event.first_ms);
  all.last_ms = std::max(all.last_ms, event.last_ms);
  all.count += event.count;
}

std::vector<std::string> Annotations::Warnings(std::string_view query) const {
  return Render("PromQL warning: ", warnings_, query);
}

std::vector<std::string> Annotations::Infos(std::string_view query) const {
  Texts texts = infos_;
  for (const auto& [place, event] : levelled_) {
    const std::string text =
        base::StrCat(ForMetric("input to histogram_quantile needed to be fixed for monotonicity (see "
                               "https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile)",
                               place.first),
                     ", from buckets ", FormatG(event.bucket_low), " to ", FormatG(event.bucket_high),
                     ", with a max diff of ", TwoDigits(event.difference_max), ", over ", event.count, " samples from ",
                     Rfc3339(event.first_ms), " to ", Rfc3339(event.last_ms));
    Add(texts, text, {place.second, place.second});
  }
  return Render("PromQL info: ", texts, query);
}

std::string ForMetric(std::string_view text, std::string_view metric) {
  if (metric.empty()) return std::string(text);
  return base::StrCat(text, " for metric name ", base::QuoteGo(metric));
}

std::string Quoted(std::string_view text, std::string_view name) {
  return base::StrCat(text, " ", base::QuoteGo(name));
}

std::string FormatF(double v) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v > 0 ? "+Inf" : "-Inf";
  char buffer[400];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::fixed).ptr;
  return std::string(buffer, end);
}

std::string FormatG(double v) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v > 0 ? "+Inf" : "-Inf";
  const double size = std::fabs(v);
  if (size != 0 && (size < 1e-4 || size >= 1e21)) {
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::scientific).ptr;
    return std::string(buffer, end);
  }
  return FormatF(v);
}

}  // namespace varve::exec
