#pragma once
#include "query/engine/engine.h"
#include "query/exec/context.h"
#include "query/plan/plan.h"

namespace varve::engine {

// Runs the plan and gathers what it gives into `result`: type, values, series.
absl::Status Assemble(const plan::Node& root, const Query& query, const exec::Grid& grid, exec::Context& context,
                      Result& result);

}  // namespace varve::engine
