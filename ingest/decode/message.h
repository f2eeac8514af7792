#pragma once
// What both versions of remote write have in common. Private to this folder.
#include <optional>
#include <string>
#include <string_view>

#include "ingest/decode/wire.h"
#include "storage/base/status.h"
#include "storage/model/write_batch.h"

namespace varve::decode {

// A Histogram message; both versions number its fields alike, and only 2.0 has start_timestamp.
bool ReadHistogram(Wire wire, bool with_start, model::HistogramSample& sample);
// A Sample message. `start` may be null (1.0).
bool ReadSample(Wire wire, double& value, int64_t& t_ms, int64_t* start_ms);

model::MetricType MetricTypeOf(uint64_t number);  // unknown numbers are kUnknown

absl::Status FaultStatus(const Fault& fault, std::string_view version, std::string_view message,
                         std::optional<size_t> series);

}  // namespace varve::decode
