#include <algorithm>
#include <cmath>
#include <map>

#include "storage/base/strings.h"
#include "tools/promqltest/world.h"

namespace varve::promqltest {

namespace {

struct ClassicAt {                      // a classic histogram at one time
  std::map<double, double> cumulative;  // by upper bound
  std::optional<double> count, sum;
};

absl::StatusOr<model::Histogram> ToNative(ClassicAt classic) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  auto& cumulative = classic.cumulative;
  const double total = classic.count ? *classic.count : cumulative.empty() ? 0 : cumulative.rbegin()->second;
  if (cumulative.empty() || cumulative.rbegin()->first != kInfinity) cumulative[kInfinity] = total;
  if (cumulative[kInfinity] != total) return absl::InvalidArgumentError("the count differs from the +Inf bucket");
  model::Histogram h;
  h.schema = model::kCustomBucketsSchema;
  h.count = total;
  h.sum = classic.sum.value_or(0);
  double before = 0;
  for (const auto& [bound, count] : cumulative) {
    if (!(count >= before)) return absl::InvalidArgumentError("cumulative bucket counts decrease or are negative");
    if (bound != kInfinity) h.custom_values.push_back(bound);
    h.positive_buckets.push_back(count - before);
    before = count;
  }
  h.positive_spans = {{0, static_cast<uint32_t>(h.positive_buckets.size())}};
  return h;
}

absl::Status AddNative(std::map<model::Labels, WorldSeries>& all) {
  std::map<model::Labels, std::map<int64_t, ClassicAt>> classics;
  for (const auto& [labels, series] : all) {
    const std::string_view name = labels.Get(model::kMetricName);
    std::string_view suffix;
    for (const std::string_view candidate : {"_bucket", "_count", "_sum"}) {
      if (name.ends_with(candidate)) suffix = candidate;
    }
    if (suffix.empty()) continue;
    std::optional<double> bound;
    if (suffix == "_bucket") {
      bound = base::ParseDouble(labels.Get("le"));
      if (!bound || std::isnan(*bound)) continue;
    }
    const std::string le[] = {"le"};
    const model::Labels key =
        model::With(model::Without(labels, le), model::kMetricName, name.substr(0, name.size() - suffix.size()));
    for (const WorldSample& sample : series.samples) {
      if (sample.histogram != nullptr || model::IsStaleNan(sample.value)) continue;
      ClassicAt& classic = classics[key][sample.t_ms];
      if (bound) {
        classic.cumulative.emplace(*bound, sample.value);
      } else {
        (suffix == "_count" ? classic.count : classic.sum) = sample.value;
      }
    }
  }
  for (auto& [labels, times] : classics) {
    // A counter or a summary: nothing says that it was a histogram.
    if (std::none_of(times.begin(), times.end(), [](const auto& at) { return !at.second.cumulative.empty(); }))
      continue;
    WorldSeries native{labels, {}};
    for (auto& [t_ms, classic] : times) {
      auto histogram = ToNative(std::move(classic));
      if (!histogram.ok()) return base::Annotate(histogram.status(), labels.ToString());
      native.samples.push_back(
          {t_ms, histogram->sum, std::make_shared<const model::Histogram>(*std::move(histogram)), 0});
    }
    all.insert_or_assign(labels, std::move(native));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<WorldSeries>> Expand(const Load& load) {
  std::map<model::Labels, WorldSeries> all;
  for (const LoadedSeries& loaded : load.series) {
    WorldSeries series{loaded.series.labels, {}};
    const auto& values = loaded.series.values;
    std::shared_ptr<const model::Histogram> last;  // when the newest sample is a histogram
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].omitted) continue;
      WorldSample sample{static_cast<int64_t>(i) * load.step_ms, values[i].value, values[i].histogram, 0};
      if (values[i].IsStale() && last != nullptr) {  // the marker must end the histogram
        auto marker = std::make_shared<model::Histogram>();
        marker->sum = model::StaleNan();
        sample.histogram = std::move(marker);
      }
      if (i < loaded.start_offsets_ms.size() && loaded.start_offsets_ms[i]) {
        sample.start_ms = sample.t_ms + *loaded.start_offsets_ms[i];
      }
      if (sample.histogram != nullptr) sample.value = sample.histogram->sum;
      last = sample.histogram;
      series.samples.push_back(std::move(sample));
    }
    all.insert_or_assign(loaded.series.labels, std::move(series));
  }
  if (load.with_nhcb) RETURN_IF_ERROR(AddNative(all));
  std::vector<WorldSeries> out;
  for (auto& [labels, series] : all) out.push_back(std::move(series));
  return out;
}

}  // namespace varve::promqltest
