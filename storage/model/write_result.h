#pragma once
// What became of a request: how much was stored, and what was refused, why, and which knob decides it.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace varve::model {

// The text is stable: it is the `reason` label of varve_discarded_samples_total and stands in error answers.
enum class Reason : uint8_t {
  kMalformedLabels,      // "label-invalid"
  kMissingMetricName,    // "missing-metric-name"
  kInvalidMetricName,    // "metric-name-invalid"
  kInvalidLabelName,     // "label-name-invalid"
  kInvalidLabelValue,    // "label-value-invalid"
  kDuplicateLabelName,   // "duplicate-label-names"
  kTooManyLabels,        // "max-label-names-per-series"
  kLabelNameTooLong,     // "label-name-too-long"
  kLabelValueTooLong,    // "label-value-too-long"
  kTooFarInFuture,       // "too-far-in-future"
  kTooOld,               // "sample-timestamp-too-old": outside the out-of-order window
  kDuplicateTimestamp,   // "sample-duplicate-timestamp": another value is stored at this timestamp
  kInvalidHistogram,     // "invalid-native-histogram"
  kNoSamples,            // "series-without-samples" (remote write 2.0)
  kInvalidExemplar,      // "exemplar-invalid"
  kInvalidMetadata,      // "metadata-invalid"
  kSeriesLimit,          // "max-series-per-tenant"
  kTimestampOutOfRange,  // "timestamp-out-of-range": beyond what milliseconds in 63 bits sensibly hold
  kCount
};
std::string_view ToString(Reason reason);

struct Rejection {
  uint64_t samples = 0;               // floats and histograms refused for this reason
  uint64_t series = 0;                // series (or other items) hit
  std::vector<std::string> examples;  // the first few, each naming the series, the value seen and the limit
};

struct WriteResult {
  static constexpr size_t kExamplesMax = 3;

  uint64_t samples_stored = 0;  // floats, exact duplicates included: they are stored
  uint64_t histograms_stored = 0;
  uint64_t exemplars_stored = 0;
  uint64_t metadata_stored = 0;
  uint64_t series_created = 0;
  uint64_t duplicates = 0;    // of the stored, those that were there already
  uint64_t out_of_order = 0;  // of the stored, those older than their series' newest
  std::array<Rejection, static_cast<size_t>(Reason::kCount)> rejections;

  bool AllStored() const;
  uint64_t SamplesRejected() const;
  // `example` is only kept while there are few.
  void Reject(Reason reason, uint64_t samples, std::string_view example);
  void MergeFrom(const WriteResult& other);
};

// Asked once for each label set that the head has not seen: where label validation and series limits stand, below which
// no series is created. Called on the head's thread.
class LabelsView;
class SeriesGate {
 public:
  virtual ~SeriesGate() = default;
  // True: create it. False: `result` has been told why (with `samples` refused).
  virtual bool Admit(LabelsView labels, uint64_t active_series, uint64_t samples, WriteResult& result) = 0;
};

}  // namespace varve::model
