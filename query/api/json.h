#pragma once
// JSON as Prometheus writes it, appended to one string. The caller keeps the structure right; only values are helped.
#include <cstdint>
#include <string>
#include <string_view>

#include "query/engine/engine.h"
#include "storage/model/histogram.h"
#include "storage/model/labels.h"

namespace varve::api {

// Go's encoding/json also escapes <, > and & in strings; Prometheus does so except in label sets.
enum class Html { kPlain, kEscaped };
void AppendString(std::string& out, std::string_view text, Html html = Html::kEscaped);
void AppendLabels(std::string& out, model::LabelsView labels);  // {"__name__":"up",...}
void AppendTimestamp(std::string& out, int64_t t_ms);           // seconds: 1435781451.781, 1, 0.050
void AppendSampleValue(std::string& out, double v);             // without quotes: 0.1, 1e-07, NaN, +Inf
void AppendHistogram(std::string& out, const model::Histogram& histogram);
// {"resultType":"vector","result":[...]; the caller closes the object, perhaps after "stats".
void AppendResult(std::string& out, const engine::Result& result);

// The syntax tree as /api/v1/parse_query shows it: keys sorted.
void AppendTree(std::string& out, const promql::Expr& expr);

}  // namespace varve::api
