#pragma once
#include <optional>
#include <string>

#include "query/promql/ast.h"

namespace varve::promqltest {

// The expression with every outermost selector and subquery that has no @ pinned to `t_ms`: a text that gives the same
// at any time. Nothing when the expression calls a function that looks at the time of evaluation.
std::optional<std::string> PinToTime(const promql::Expr& expr, int64_t t_ms);

}  // namespace varve::promqltest
