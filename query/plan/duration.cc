#include <cmath>
#include <limits>

#include "query/plan/plan.h"
#include "storage/base/strings.h"

namespace varve::plan {
namespace {

using promql::DurationExpr;
using promql::DurationOp;

absl::StatusOr<double> Seconds(const DurationExpr& expr, const Bounds& bounds) {
  double left = 0, right = 0;
  if (expr.left != nullptr) {
    ASSIGN_OR_RETURN(left, Seconds(*expr.left, bounds));
  }
  if (expr.right != nullptr) {
    ASSIGN_OR_RETURN(right, Seconds(*expr.right, bounds));
  }
  switch (expr.op) {
    case DurationOp::kLiteral:
      return expr.literal_seconds;
    case DurationOp::kStep:
      return static_cast<double>(bounds.step_ms) / 1000;
    case DurationOp::kRange:
      return static_cast<double>(bounds.end_ms - bounds.start_ms) / 1000;
    case DurationOp::kAdd:
      return left + right;
    case DurationOp::kSub:
      return left - right;
    case DurationOp::kMul:
      return left * right;
    case DurationOp::kDiv:
      if (right == 0) return absl::InvalidArgumentError("division by zero");
      return left / right;
    case DurationOp::kMod:
      if (right == 0) return absl::InvalidArgumentError("modulo by zero");
      return std::fmod(left, right);
    case DurationOp::kPow:
      return std::pow(left, right);
    case DurationOp::kNegate:
      return -left;
    case DurationOp::kPlus:
      return left;
    case DurationOp::kMinOf:
      return std::fmin(left, right);
    case DurationOp::kMaxOf:
      return std::fmax(left, right);
  }
  return absl::InternalError("unknown duration operator");
}

}  // namespace

absl::StatusOr<int64_t> EvaluateDuration(const DurationExpr& expr, const Bounds& bounds) {
  ASSIGN_OR_RETURN(const double seconds, Seconds(expr, bounds));
  const double ms = seconds * 1000;
  // The bound is that of a time in nanoseconds, which is what Prometheus counts in.
  constexpr double kLimitMs = static_cast<double>(std::numeric_limits<int64_t>::max() / 1'000'000);
  if (!(std::fabs(ms) < kLimitMs)) return absl::InvalidArgumentError("duration out of range");
  return static_cast<int64_t>(std::trunc(ms + (ms < 0 ? -1e-6 : 1e-6)));
}

}  // namespace varve::plan
