#pragma once
#include <optional>
#include <string>

#include "query/promql/ast.h"

namespace varve::promql {

struct ParseProblem {
  PositionRange position;
  std::string text;
};

// The first offence against PromQL's typing rules below `expr`, in the order in which Prometheus looks for them.
std::optional<ParseProblem> CheckTypes(const Expr& expr);

}  // namespace varve::promql
