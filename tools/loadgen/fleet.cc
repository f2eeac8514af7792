#include "tools/loadgen/fleet.h"

#include <algorithm>
#include <cmath>

#include "ingest/decode/text_format.h"
#include "storage/base/strings.h"

namespace varve::loadgen {

namespace {

using base::StrAppend;
using base::StrCat;

uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t z = a * 0x9E3779B97F4A7C15u + b + 0x632BE59BD9B4E019u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
double Unit(uint64_t hash) { return static_cast<double>(hash >> 11) * 0x1p-53; }

// A walk in about [-1, 1] that can be asked at any place: noise at four time scales, with straight lines in between.
double Walk(uint64_t hash, int64_t k) {
  static constexpr struct {
    int64_t scrapes;
    double weight;
  } kScales[] = {{256, 0.5}, {32, 0.3}, {4, 0.15}, {1, 0.05}};
  double sum = 0;
  for (const auto& [scrapes, weight] : kScales) {
    const int64_t at = k / scrapes;
    const double part = static_cast<double>(k % scrapes) / static_cast<double>(scrapes);
    const uint64_t scale_hash = Mix(hash, static_cast<uint64_t>(scrapes));
    const double from = Unit(Mix(scale_hash, static_cast<uint64_t>(at)));
    const double to = Unit(Mix(scale_hash, static_cast<uint64_t>(at + 1)));
    sum += weight * (2 * (from + (to - from) * part) - 1);
  }
  return sum;
}

constexpr double kPowers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};

int DecimalsOf(double v) {
  for (int d = 0; d < 9; ++d) {
    const double scaled = v * kPowers[d];
    if (std::fabs(scaled) > 0x1p53) return d;
    if (std::round(scaled) / kPowers[d] == v) return d;
  }
  return 9;
}
double RoundTo(double v, int decimals) {
  const double scaled = v * kPowers[decimals];
  return std::fabs(scaled) > 0x1p53 ? v : std::round(scaled) / kPowers[decimals];
}

std::string Canonical(std::vector<model::Label> labels) {
  return std::string(model::Labels::FromPairs(std::move(labels)).bytes());
}

// The family that a line of a histogram or summary belongs to.
std::string_view FamilyOf(std::string_view metric, std::string_view suffix) {
  return metric.size() > suffix.size() && metric.ends_with(suffix) ? metric.substr(0, metric.size() - suffix.size())
                                                                   : std::string_view();
}

}  // namespace

Page BuiltinPage() {
  std::string text =
      "# HELP process_cpu_seconds_total Total user and system CPU time spent in seconds.\n"
      "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 8713.42\n"
      "# HELP process_resident_memory_bytes Resident memory size in bytes.\n"
      "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes 3.1256576e+07\n"
      "# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.\n"
      "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds 1.69999871245e+09\n"
      "# HELP node_load1 1m load average.\n# TYPE node_load1 gauge\nnode_load1 0.37\n"
      "# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.\n# TYPE node_cpu_seconds_total counter\n";
  for (int cpu = 0; cpu < 4; ++cpu) {
    int i = 0;
    for (const char* mode : {"idle", "iowait", "irq", "nice", "softirq", "steal", "system", "user"}) {
      StrAppend(text, "node_cpu_seconds_total{cpu=\"", cpu, "\",mode=\"", mode, "\"} ", 1000 * (++i) + cpu, ".5", i,
                "\n");
    }
  }
  text += "# HELP http_request_duration_seconds Latency.\n# TYPE http_request_duration_seconds histogram\n";
  for (const char* handler : {"/", "/api"}) {
    int count = 0;
    for (const char* le : {"0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "+Inf"}) {
      StrAppend(text, "http_request_duration_seconds_bucket{handler=\"", handler, "\",le=\"", le, "\"} ", count += 90,
                "\n");
    }
    StrAppend(text, "http_request_duration_seconds_sum{handler=\"", handler, "\"} 321.125\n");
    StrAppend(text, "http_request_duration_seconds_count{handler=\"", handler, "\"} ", count, "\n");
  }
  return {"builtin", text};
}

absl::Status Fleet::AddPage(const Page& page) {
  model::WriteBatch batch;
  decode::TextOptions options;
  RETURN_IF_ERROR(base::Annotate(decode::DecodeText(page.text, options, batch), page.name));
  Exposition& exposition = pages_.emplace_back();
  exposition.job = StrCat("loadgen-", page.name);

  base::StringMap<size_t> families;
  for (const model::Metadata& entry : batch.metadata) {
    families.emplace(entry.metric, metadata_.size());
    metadata_.push_back(entry);
  }
  const auto find = [&](std::string_view metric) {
    for (const std::string_view suffix : {"", "_bucket", "_sum", "_count"}) {
      const std::string_view family = suffix.empty() ? metric : FamilyOf(metric, suffix);
      if (const auto it = families.find(family); it != families.end()) return it->second;
    }
    families.emplace(std::string(metric), metadata_.size());
    metadata_.push_back({std::string(metric), model::MetricType::kUnknown, "", ""});
    return metadata_.size() - 1;
  };

  // How many observations the page has of each histogram: its _count, by labels without le and the family.
  base::StringMap<double> observations;
  const auto group_key = [](std::string_view family, const model::Labels& labels) {
    std::vector<model::Label> rest;
    for (const model::LabelRef label : labels) {
      if (label.name != "le" && label.name != model::kMetricName)
        rest.push_back({std::string(label.name), std::string(label.value)});
    }
    return StrCat(family, Canonical(std::move(rest)));
  };
  const auto labels_of = [&](const model::WriteBatch::Series& series) {
    return model::Labels(model::LabelsView(series.labels));
  };
  for (size_t i = 0; i < batch.series.size(); ++i) {
    const model::Labels labels = labels_of(batch.series[i]);
    const std::string_view family = FamilyOf(labels.Get(model::kMetricName), "_count");
    if (!family.empty()) observations[group_key(family, labels)] = batch.values[i];
  }

  for (size_t i = 0; i < batch.series.size(); ++i) {
    const model::Labels labels = labels_of(batch.series[i]);
    const std::string_view metric = labels.Get(model::kMetricName);
    Template& t = exposition.series.emplace_back();
    t.metadata = find(metric);
    t.base = batch.values[i];
    t.decimals = DecimalsOf(t.base);
    const model::Metadata& about = metadata_[t.metadata];
    const bool with_observations =
        about.type == model::MetricType::kHistogram || about.type == model::MetricType::kSummary;
    std::string_view suffix;
    for (const std::string_view s : {"_bucket", "_sum", "_count"}) {
      if (with_observations && metric.ends_with(s) && metric.substr(0, metric.size() - s.size()) == about.metric)
        suffix = s;
    }
    if (!suffix.empty()) {
      const std::string key = group_key(about.metric, labels);
      const auto it = observations.find(key);
      t.group_base = it == observations.end() ? 0 : it->second;
      t.group = model::HashLabels(key, 1).low;
      t.shape = suffix == "_bucket" ? Shape::kBucket
                : suffix == "_sum"  ? Shape::kSumOfObservations
                                    : Shape::kObservations;
      t.share = t.group_base > 0 ? t.base / t.group_base : 0;
      if (suffix == "_sum") t.decimals = std::max(t.decimals, 3);
      if (!std::isfinite(t.base)) t.shape = Shape::kConstant;
    } else if (!std::isfinite(t.base)) {
      t.shape = Shape::kConstant;
    } else if (about.type == model::MetricType::kCounter || metric.ends_with("_total")) {
      t.shape = Shape::kCounter;
    } else if (metric.ends_with("_info") || metric.ends_with("_created") || metric.ends_with("_time_seconds") ||
               (t.decimals == 0 && std::fabs(t.base) <= 1)) {
      t.shape = Shape::kConstant;  // facts, flags and dates
    } else {
      t.shape = Shape::kGauge;
    }
    std::vector<model::Label> before, between, after;
    for (const model::LabelRef label : labels) {
      if (label.name == "instance" || label.name == "job" || label.name == "revision") continue;
      auto& to = label.name < "instance" ? before : label.name < "revision" ? between : after;
      to.push_back({std::string(label.name), std::string(label.value)});
    }
    between.push_back({"job", exposition.job});
    t.before_instance = Canonical(std::move(before));
    t.between = Canonical(std::move(between));
    t.after_revision = Canonical(std::move(after));
  }
  if (exposition.series.empty()) return absl::InvalidArgumentError(StrCat(page.name, ": the page has no samples"));
  return absl::OkStatus();
}

absl::StatusOr<Fleet> Fleet::Create(const FleetConfig& config, const std::vector<Page>& pages) {
  if (config.interval_ms <= 0) return absl::InvalidArgumentError("the interval must be positive");
  if (config.jitter_ms < 0 || config.jitter_ms * 2 >= config.interval_ms) {
    return absl::InvalidArgumentError("the jitter must be less than half of the interval");
  }
  if (!(config.churn >= 0) || config.churn > 1000) return absl::InvalidArgumentError("the churn must not be negative");
  if (config.series == 0 || pages.empty()) return absl::InvalidArgumentError("no series to make");
  Fleet fleet;
  fleet.config_ = config;
  if (config.churn > 0) {
    fleet.life_scrapes_ =
        std::max<int64_t>(1, std::llround(600'000 / config.churn / static_cast<double>(config.interval_ms)));
  }
  for (const Page& page : pages) RETURN_IF_ERROR(fleet.AddPage(page));
  fleet.first_series_.push_back(0);
  while (fleet.first_series_.back() < config.series) {
    const size_t page_series = fleet.PageOf(fleet.first_series_.size() - 1).series.size();
    fleet.first_series_.push_back(std::min<size_t>(config.series, fleet.first_series_.back() + page_series));
  }
  return fleet;
}

int64_t Fleet::TimeMs(size_t target, int64_t scrape) const {
  const uint64_t hash = Mix(config_.seed, target);
  const auto phase = static_cast<int64_t>(hash % static_cast<uint64_t>(config_.interval_ms));
  int64_t jitter = 0;
  if (config_.jitter_ms > 0) {
    const auto range = static_cast<uint64_t>(2 * config_.jitter_ms + 1);
    jitter = static_cast<int64_t>(Mix(hash, static_cast<uint64_t>(scrape)) % range) - config_.jitter_ms;
  }
  return config_.start_ms + scrape * config_.interval_ms + phase + jitter;
}

int64_t Fleet::Revision(size_t target, int64_t scrape) const {
  if (life_scrapes_ == 0) return 0;
  const auto age = static_cast<int64_t>(Mix(config_.seed ^ 0xA6E, target) % static_cast<uint64_t>(life_scrapes_));
  return (scrape + age) / life_scrapes_;
}

int64_t Fleet::RevisionBegin(size_t target, int64_t revision) const {
  if (revision == 0) return 0;
  const auto age = static_cast<int64_t>(Mix(config_.seed ^ 0xA6E, target) % static_cast<uint64_t>(life_scrapes_));
  return revision * life_scrapes_ - age;
}

void Fleet::AppendLabels(size_t target, size_t series, int64_t revision, std::string& out) const {
  const Template& t = PageOf(target).series[series];
  out += t.before_instance;
  char digits[24];
  std::string_view number(digits,
                          static_cast<size_t>(std::to_chars(digits, digits + sizeof digits, target).ptr - digits));
  constexpr std::string_view kHost = "node-00000000:9100";
  char host[kHost.size()];
  std::copy(kHost.begin(), kHost.end(), host);
  number = number.substr(0, 8);
  std::copy(number.begin(), number.end(), host + 13 - number.size());
  // One label by hand, since this runs once per sample: tag, size, name, value.
  out += "\x0A\x1E\x0A\x08instance\x12\x12";
  out.append(host, kHost.size());
  out += t.between;
  if (life_scrapes_ > 0) out += model::Labels::Of({{"revision", StrCat("r", revision)}}).bytes();
  out += t.after_revision;
}

// A count that starts at about `base` (0 after a replacement) and grows by an uneven step each scrape, never back.
double Fleet::Count(uint64_t target_hash, uint64_t series_hash, double base, int64_t revision, int64_t since) const {
  const uint64_t hash = Mix(target_hash, series_hash);
  const double from = revision == 0 ? base * (0.5 + Unit(hash)) : 0;
  // As if the page's value had come together within a day or so; three series in ten stand still.
  if (base <= 0 || Unit(Mix(series_hash, 7)) < 0.3) return from;
  const double step = base / 86'400 * (0.25 + 2 * Unit(Mix(hash, 3))) * static_cast<double>(config_.interval_ms) / 1000;
  return from + step * (static_cast<double>(since) + Unit(Mix(hash, static_cast<uint64_t>(since) + 16)));
}

double Fleet::Value(size_t target, size_t series, int64_t scrape) const {
  const Template& t = PageOf(target).series[series];
  if (t.shape == Shape::kConstant) return t.base;
  const int64_t revision = Revision(target, scrape);
  const int64_t since = scrape - RevisionBegin(target, revision);
  const uint64_t target_hash = Mix(Mix(config_.seed, target), static_cast<uint64_t>(revision));
  switch (t.shape) {
    case Shape::kConstant:
      return t.base;
    case Shape::kCounter: {
      const double v = Count(target_hash, series + 1000, t.base, revision, since);
      return t.decimals == 0 ? std::floor(v) : RoundTo(v, t.decimals);
    }
    case Shape::kGauge: {
      const uint64_t hash = Mix(target_hash, series);
      if (t.decimals == 0 && Unit(Mix(series, 5)) < 0.5) return t.base;  // sizes, limits, numbers of things
      return RoundTo(t.base * (1 + 0.2 * Walk(hash, scrape)), t.decimals);
    }
    case Shape::kObservations:
      return std::floor(Count(target_hash, t.group, t.group_base, revision, since));
    case Shape::kBucket:
      return std::floor(t.share * std::floor(Count(target_hash, t.group, t.group_base, revision, since)));
    case Shape::kSumOfObservations:
      return RoundTo(t.share * std::floor(Count(target_hash, t.group, t.group_base, revision, since)), t.decimals);
  }
  return 0;
}

Fleet::Description Fleet::Describe(size_t target, size_t series) const {
  const model::Metadata& about = metadata_[PageOf(target).series[series].metadata];
  return {about.metric, about.help, about.type};
}

}  // namespace varve::loadgen
