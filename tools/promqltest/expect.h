#pragma once
// Judges what a query gave by what its eval command expects.
#include "query/engine/engine.h"
#include "tools/promqltest/script.h"

namespace varve::promqltest {

enum class Order { kAny, kAsListed };

// OK when as expected, else InvalidArgument that says what differs.
absl::Status CheckFailure(const Eval& eval, const absl::Status& status);
absl::Status CheckAnnotations(const Eval& eval, const engine::Result& result);
absl::Status CheckResult(const Eval& eval, const engine::Result& result, Order order);
// The points of a matrix at one time must be the instant query's expected result.
absl::Status CheckColumn(const Eval& eval, const engine::Result& matrix, int64_t t_ms);
absl::Status CheckSorted(const engine::Result& matrix);

}  // namespace varve::promqltest
