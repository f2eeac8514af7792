#include "storage/model/write_result.h"

#include "storage/model/write_batch.h"

namespace varve::model {

std::string_view ToString(Reason reason) {
  static constexpr std::string_view kTexts[] = {"label-invalid",
                                                "missing-metric-name",
                                                "metric-name-invalid",
                                                "label-name-invalid",
                                                "label-value-invalid",
                                                "duplicate-label-names",
                                                "max-label-names-per-series",
                                                "label-name-too-long",
                                                "label-value-too-long",
                                                "too-far-in-future",
                                                "sample-timestamp-too-old",
                                                "sample-duplicate-timestamp",
                                                "invalid-native-histogram",
                                                "series-without-samples",
                                                "exemplar-invalid",
                                                "metadata-invalid",
                                                "max-series-per-tenant",
                                                "timestamp-out-of-range"};
  static_assert(std::size(kTexts) == static_cast<size_t>(Reason::kCount));
  return kTexts[static_cast<size_t>(reason)];
}

bool WriteResult::AllStored() const {
  for (const Rejection& rejection : rejections) {
    if (rejection.series > 0) return false;
  }
  return true;
}

uint64_t WriteResult::SamplesRejected() const {
  uint64_t n = 0;
  for (const Rejection& rejection : rejections) n += rejection.samples;
  return n;
}

void WriteResult::Reject(Reason reason, uint64_t samples, std::string_view example) {
  Rejection& rejection = rejections[static_cast<size_t>(reason)];
  rejection.samples += samples;
  rejection.series += 1;
  if (rejection.examples.size() < kExamplesMax) rejection.examples.emplace_back(example);
}

void WriteResult::MergeFrom(const WriteResult& other) {
  samples_stored += other.samples_stored;
  histograms_stored += other.histograms_stored;
  exemplars_stored += other.exemplars_stored;
  metadata_stored += other.metadata_stored;
  series_created += other.series_created;
  duplicates += other.duplicates;
  out_of_order += other.out_of_order;
  for (size_t i = 0; i < rejections.size(); ++i) {
    rejections[i].samples += other.rejections[i].samples;
    rejections[i].series += other.rejections[i].series;
    for (const std::string& example : other.rejections[i].examples) {
      if (rejections[i].examples.size() < kExamplesMax) rejections[i].examples.push_back(example);
    }
  }
}

void WriteBatch::Clear() {
  series.clear();
  timestamps.clear();
  values.clear();
  start_timestamps.clear();
  histograms.clear();
  exemplars.clear();
  metadata.clear();
  bodies.clear();
  refused = WriteResult();
}

std::string_view ToString(MetricType type) {
  static constexpr std::string_view kTexts[] = {"unknown",        "counter", "gauge", "histogram",
                                                "gaugehistogram", "summary", "info",  "stateset"};
  return kTexts[static_cast<size_t>(type) & 7];
}

}  // namespace varve::model
