#pragma once
#include "query/exec/operator.h"

namespace varve::exec {

// What an instant selector gives: the sample's value, or its time or start time in seconds (for timestamp() and
// start_timestamp(), which drop the name).
enum class SelectorValue : uint8_t { kSample, kTime, kStartTime };

OperatorPtr MakeSelector(const plan::Node& node, const Grid& grid, Context& context,
                         SelectorValue value = SelectorValue::kSample);

// For each step the position of the newest sample in (t - lookback, t], or -1. `times` ascending.
void LookbackPositions(const std::vector<int64_t>& times, const std::vector<int64_t>& at_ms, int64_t lookback_ms,
                       std::vector<int32_t>& positions);

}  // namespace varve::exec
