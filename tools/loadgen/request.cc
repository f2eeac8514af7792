#include "tools/loadgen/request.h"

#include <snappy.h>

#include <algorithm>

#include "storage/base/bytes.h"

namespace varve::loadgen {

namespace {

constexpr uint8_t kBytesField1 = 0x0A, kBytesField2 = 0x12, kBytesField3 = 0x1A, kBytesField4 = 0x22,
                  kBytesField5 = 0x2A;

size_t VarintSize(uint64_t v) {
  size_t n = 1;
  for (; v >= 0x80; v >>= 7) ++n;
  return n;
}

// Sample: value = 1 (double), timestamp = 2. Zeros are left out, as generated encoders do.
void PutSample(std::string& out, int64_t t_ms, double value) {
  const auto t = static_cast<uint64_t>(t_ms);
  const bool zero = model::SameBits(value, 0.0);
  base::PutU8(out, kBytesField2);
  base::PutVarint(out, (zero ? 0 : 9) + (t == 0 ? 0 : 1 + VarintSize(t)));
  if (!zero) base::PutU8(out, 0x09), base::PutFixed(out, value);
  if (t != 0) base::PutU8(out, 0x10), base::PutVarint(out, t);
}

}  // namespace

Stream::Stream(const Fleet& fleet, const StreamConfig& config)
    : fleet_(fleet), config_(config), scrape_(config.first_scrape) {
  for (size_t target = config.shard; target < fleet.targets(); target += config.shards) order_.push_back(target);
  std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) { return fleet.TimeMs(a, 0) < fleet.TimeMs(b, 0); });
}

void Stream::AddSeriesV2(size_t target, size_t series, int64_t t_ms, double value) {
  const auto ref = [this](std::string_view text) {
    const auto it = refs_.find(text);
    if (it != refs_.end()) return it->second;
    if (symbols_.empty()) {
      symbols_.emplace_back();
      refs_.emplace("", 0);
      if (text.empty()) return uint32_t{0};
    }
    const auto n = static_cast<uint32_t>(symbols_.size());
    symbols_.emplace_back(text);
    refs_.emplace(std::string(text), n);
    return n;
  };
  std::string refs;
  for (const model::LabelRef label : model::LabelsView(labels_)) {
    base::PutVarint(refs, ref(label.name));
    base::PutVarint(refs, ref(label.value));
  }
  const Fleet::Description about = fleet_.Describe(target, series);
  std::string metadata;
  if (about.type != model::MetricType::kUnknown)
    base::PutU8(metadata, 0x08), base::PutVarint(metadata, static_cast<uint64_t>(about.type));
  if (!about.help.empty()) base::PutU8(metadata, 0x18), base::PutVarint(metadata, ref(about.help));
  series_bytes_.clear();
  base::PutU8(series_bytes_, kBytesField1), base::PutBytes(series_bytes_, refs);
  PutSample(series_bytes_, t_ms, value);
  if (!metadata.empty()) base::PutU8(series_bytes_, kBytesField5), base::PutBytes(series_bytes_, metadata);
  base::PutU8(message_, kBytesField5), base::PutBytes(message_, series_bytes_);
}

void Stream::AddSeries(size_t target, size_t series, int64_t revision, int64_t t_ms, double value) {
  labels_.clear();
  fleet_.AppendLabels(target, series, revision, labels_);
  if (config_.version == 2) {
    AddSeriesV2(target, series, t_ms, value);
  } else {
    PutSample(labels_, t_ms, value);  // labels are fields of the series as they are
    base::PutU8(message_, kBytesField1), base::PutBytes(message_, labels_);
  }
  ++samples_;
  newest_ms_ = std::max(newest_ms_, t_ms);
}

Request Stream::Finish() {
  if (config_.version == 2) {
    std::string head;
    for (const std::string& symbol : symbols_) base::PutU8(head, kBytesField4), base::PutBytes(head, symbol);
    message_.insert(0, head);
    symbols_.clear();
    refs_.clear();
  }
  Request request;
  request.samples = samples_;
  request.message_bytes = message_.size();
  request.newest_ms = newest_ms_;
  snappy::Compress(message_.data(), message_.size(), &request.body);
  message_.clear();
  samples_ = 0;
  return request;
}

std::optional<Request> Stream::Next() {
  while (scrape_ < config_.scrapes) {
    if (at_ == order_.size()) {
      at_ = 0;
      ++scrape_;
      continue;
    }
    const size_t target = order_[at_];
    const size_t of_target = fleet_.series_of(target);
    const int64_t t_ms = fleet_.TimeMs(target, scrape_);
    const int64_t revision = fleet_.Revision(target, scrape_);
    if (scrape_ > 0 && revision != fleet_.Revision(target, scrape_ - 1)) {
      for (; stale_ < of_target; ++stale_) {
        if (samples_ == config_.samples_per_request) return Finish();
        AddSeries(target, stale_, revision - 1, t_ms, model::StaleNan());
      }
    }
    for (; series_ < of_target; ++series_) {
      if (samples_ == config_.samples_per_request) return Finish();
      AddSeries(target, series_, revision, t_ms, fleet_.Value(target, series_, scrape_));
    }
    series_ = stale_ = 0;
    ++at_;
  }
  if (samples_ > 0) return Finish();
  return std::nullopt;
}

Request MetadataRequest(const Fleet& fleet) {
  std::string message;
  for (const model::Metadata& about : fleet.metadata()) {
    std::string entry;
    if (about.type != model::MetricType::kUnknown)
      base::PutU8(entry, 0x08), base::PutVarint(entry, static_cast<uint64_t>(about.type));
    base::PutU8(entry, kBytesField2), base::PutBytes(entry, about.metric);
    if (!about.help.empty()) base::PutU8(entry, kBytesField4), base::PutBytes(entry, about.help);
    if (!about.unit.empty()) base::PutU8(entry, kBytesField5), base::PutBytes(entry, about.unit);
    base::PutU8(message, kBytesField3), base::PutBytes(message, entry);
  }
  Request request;
  request.message_bytes = message.size();
  snappy::Compress(message.data(), message.size(), &request.body);
  return request;
}

}  // namespace varve::loadgen
