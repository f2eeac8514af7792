#pragma once
// A decoded write request, in columns. What ingest/decode makes and the head eats; protocol versions end here.
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "storage/model/histogram.h"
#include "storage/model/labels.h"
#include "storage/model/write_result.h"

namespace varve::model {

enum class MetricType : uint8_t {  // remote write's numbers
  kUnknown = 0,
  kCounter = 1,
  kGauge = 2,
  kHistogram = 3,
  kGaugeHistogram = 4,
  kSummary = 5,
  kInfo = 6,
  kStateset = 7
};
std::string_view ToString(MetricType type);  // "counter", ...; Prometheus' metadata API names

struct HistogramSample {
  int64_t t_ms = 0;
  int64_t start_ms = 0;  // 0: unknown
  Histogram histogram;
};
struct Exemplar {
  Labels labels;  // of the exemplar, e.g. {trace_id="..."}
  double value = 0;
  int64_t t_ms = 0;  // 0: as the sample's
};
struct Metadata {
  std::string metric;
  MetricType type = MetricType::kUnknown;
  std::string help, unit;
};

// One request. Views point into `bodies`, which keep their addresses.
struct WriteBatch {
  struct Series {
    // Wire form (labels.h). Not checked yet: bytes whose hash is known are those of a known series; any others go
    // through Labels::FromWire. Thus a request of known series is never taken apart.
    std::string_view labels;
    SeriesHash hash;                                    // HashLabels(labels, seed)
    uint32_t float_begin = 0, float_count = 0;          // into timestamps, values, start_timestamps
    uint32_t histogram_begin = 0, histogram_count = 0;  // into histograms
    uint32_t exemplar_begin = 0, exemplar_count = 0;    // into exemplars
  };
  std::vector<Series> series;             // in the order of the request; a label set may occur more than once
  std::vector<int64_t> timestamps;        // ms
  std::vector<double> values;             // bits as received
  std::vector<int64_t> start_timestamps;  // ms, 0 = unknown; empty when the request has none at all
  std::vector<HistogramSample> histograms;
  std::vector<Exemplar> exemplars;
  std::vector<Metadata> metadata;
  std::deque<std::string> bodies;
  // What the decoder left out of a message that is sound as a whole (a bad symbol reference, a bad exemplar). Whoever
  // answers the sender merges this into the result of the write.
  WriteResult refused;

  void Clear();  // keeps capacity
};

}  // namespace varve::model
