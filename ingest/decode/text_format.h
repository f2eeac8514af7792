#pragma once
// Prometheus' text exposition format 0.0.4 and OpenMetrics 1.0.
#include <cstdint>
#include <string_view>

#include "storage/base/status.h"
#include "storage/model/write_batch.h"

namespace varve::decode {

enum class TextFormat { kPrometheus, kOpenMetrics };
// By Content-Type; everything that is not application/openmetrics-text is Prometheus' own.
TextFormat TextFormatOf(std::string_view content_type);

struct TextOptions {
  TextFormat format = TextFormat::kPrometheus;
  int64_t now_ms = 0;      // for samples without a timestamp
  uint64_t hash_seed = 0;  // of HashLabels
};

// Appends one page to `batch`: a series per line in the order of the page, canonical labels in batch.bodies, HELP, TYPE
// and UNIT as metadata, exemplars (OpenMetrics). Histograms and summaries are their lines, `_created` lines are
// ordinary series, as Prometheus has it by default. Does not keep `page`. Any thread. InvalidArgument with line number,
// what was expected and what was found; then the batch is fit for Clear() only.
absl::Status DecodeText(std::string_view page, const TextOptions& options, model::WriteBatch& batch);

}  // namespace varve::decode
