#pragma once
// What a tenant may send: judged once per new series, and for each exemplar and metadata entry.
#include <cstdint>

#include "storage/model/labels.h"
#include "storage/model/limits.h"
#include "storage/model/write_batch.h"
#include "storage/model/write_result.h"

namespace varve::admit {

inline constexpr size_t kExemplarLabelCharactersMax = 128;  // names and values together, OpenMetrics' own limit
inline constexpr size_t kMetricNameBytesMax = 1024;         // of metadata; help and unit are cut off at the next two
inline constexpr size_t kHelpBytesMax = 4096;
inline constexpr size_t kUnitBytesMax = 256;

// Label validation and the series limit. Immutable, so any thread; `limits` are copied.
class Admission : public model::SeriesGate {
 public:
  explicit Admission(const model::Limits& limits) : limits_(limits) {}
  bool Admit(model::LabelsView labels, uint64_t active_series, uint64_t samples, model::WriteResult& result) override;

 private:
  const model::Limits limits_;
};

// Why the label set may not be a series, or kCount when it may.
model::Reason JudgeLabels(model::LabelsView labels, const model::Limits& limits, std::string* why);

// Takes exemplars and metadata that may not be kept out of the batch, cuts overlong help and unit, and tells `result`;
// merges batch.refused into it as well. To be called once per request, before the batch is split over shards.
void Screen(model::WriteBatch& batch, const model::Limits& limits, model::WriteResult& result);

}  // namespace varve::admit
