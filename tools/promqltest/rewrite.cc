#include "tools/promqltest/rewrite.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "query/promql/parser.h"

namespace varve::promqltest {

namespace {

using namespace promql;  // NOLINT: this file is about nothing but its nodes

constexpr std::array<std::string_view, 15> kLooksAtTime = {
    "days_in_month",  "day_of_month", "day_of_week", "day_of_year", "hour", "minute", "month", "year",
    "predict_linear", "time",         "timestamp",   "start",       "end",  "step",   "range"};

void Pin(Modifiers& modifiers, int64_t t_ms) {
  if (modifiers.at != AtKind::kNone) return;
  modifiers.at = AtKind::kTimestamp;
  modifiers.at_ms = t_ms;
}

// False when a call stands in the way.
bool PinAll(Expr& expr, int64_t t_ms) {
  switch (expr.kind) {
    case NodeKind::kNumber:
    case NodeKind::kString:
      return true;
    case NodeKind::kVectorSelector:
      return Pin(static_cast<VectorSelector&>(expr).modifiers, t_ms), true;
    case NodeKind::kMatrixSelector:
      return Pin(static_cast<MatrixSelector&>(expr).vector->modifiers, t_ms), true;
    case NodeKind::kSubquery: {
      // What is inside is evaluated at the subquery's own times, and must stay so.
      auto& subquery = static_cast<Subquery&>(expr);
      Pin(subquery.modifiers, t_ms);
      const ExprPtr copy = Clone(*subquery.expr);
      return PinAll(*copy, t_ms);
    }
    case NodeKind::kUnary:
      return PinAll(*static_cast<Unary&>(expr).expr, t_ms);
    case NodeKind::kParen:
      return PinAll(*static_cast<Paren&>(expr).expr, t_ms);
    case NodeKind::kBinary: {
      auto& binary = static_cast<Binary&>(expr);
      return PinAll(*binary.lhs, t_ms) && PinAll(*binary.rhs, t_ms);
    }
    case NodeKind::kAggregate: {
      auto& aggregate = static_cast<Aggregate&>(expr);
      return (aggregate.param == nullptr || PinAll(*aggregate.param, t_ms)) && PinAll(*aggregate.expr, t_ms);
    }
    case NodeKind::kCall: {
      auto& call = static_cast<Call&>(expr);
      if (std::find(kLooksAtTime.begin(), kLooksAtTime.end(), call.function->name) != kLooksAtTime.end()) return false;
      for (const ExprPtr& argument : call.arguments) {
        if (!PinAll(*argument, t_ms)) return false;
      }
      return true;
    }
  }
  return true;
}

}  // namespace

std::optional<std::string> PinToTime(const Expr& expr, int64_t t_ms) {
  const ExprPtr copy = Clone(expr);
  if (!PinAll(*copy, t_ms)) return std::nullopt;
  return Print(*copy);
}

}  // namespace varve::promqltest
