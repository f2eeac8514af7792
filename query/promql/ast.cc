#include "query/promql/ast.h"

#include <algorithm>

#include "query/promql/parser.h"
#include "storage/base/check.h"

namespace varve::promql {

std::string_view ToString(ValueType type) {
  switch (type) {
    case ValueType::kNone:
      return "none";
    case ValueType::kScalar:
      return "scalar";
    case ValueType::kVector:
      return "instant vector";
    case ValueType::kMatrix:
      return "range vector";
    case ValueType::kString:
      return "string";
  }
  return "";
}

std::string_view ToString(BinaryOp op) {
  static constexpr std::string_view kTexts[] = {
      "+", "-", "*", "/", "%", "^", "atan2", "==", "!=", "<", ">", "<=", ">=", "and", "or", "unless", "</", ">/"};
  return kTexts[static_cast<int>(op)];
}

bool IsComparison(BinaryOp op) { return op >= BinaryOp::kEqual && op <= BinaryOp::kGreaterEqual; }
bool IsSetOperator(BinaryOp op) { return op == BinaryOp::kAnd || op == BinaryOp::kOr || op == BinaryOp::kUnless; }

std::string_view ToString(AggregateOp op) {
  static constexpr std::string_view kTexts[] = {"sum",          "avg",      "count",  "min",        "max",
                                                "group",        "stddev",   "stdvar", "topk",       "bottomk",
                                                "count_values", "quantile", "limitk", "limit_ratio"};
  return kTexts[static_cast<int>(op)];
}

ValueType Expr::type() const {
  switch (kind) {
    case NodeKind::kNumber:
      return ValueType::kScalar;
    case NodeKind::kString:
      return ValueType::kString;
    case NodeKind::kVectorSelector:
    case NodeKind::kAggregate:
      return ValueType::kVector;
    case NodeKind::kMatrixSelector:
    case NodeKind::kSubquery:
      return ValueType::kMatrix;
    case NodeKind::kUnary:
      return static_cast<const Unary&>(*this).expr->type();
    case NodeKind::kParen:
      return static_cast<const Paren&>(*this).expr->type();
    case NodeKind::kCall:
      return static_cast<const Call&>(*this).function->result;
    case NodeKind::kBinary: {
      const auto& binary = static_cast<const Binary&>(*this);
      return binary.lhs->type() == ValueType::kScalar && binary.rhs->type() == ValueType::kScalar ? ValueType::kScalar
                                                                                                  : ValueType::kVector;
    }
  }
  return ValueType::kNone;
}

namespace {

std::unique_ptr<DurationExpr> Clone(const std::unique_ptr<DurationExpr>& from) {
  if (from == nullptr) return nullptr;
  auto to = std::make_unique<DurationExpr>();
  to->op = from->op;
  to->literal_seconds = from->literal_seconds;
  to->written_as_duration = from->written_as_duration;
  to->parenthesised = from->parenthesised;
  to->left = Clone(from->left);
  to->right = Clone(from->right);
  to->position = from->position;
  return to;
}

Modifiers Clone(const Modifiers& from) {
  Modifiers to;
  to.offset_ms = from.offset_ms;
  to.offset_expr = Clone(from.offset_expr);
  to.at = from.at;
  to.at_ms = from.at_ms;
  return to;
}

ExprPtr CloneOrNull(const ExprPtr& expr) { return expr == nullptr ? nullptr : promql::Clone(*expr); }

std::unique_ptr<VectorSelector> CloneSelector(const VectorSelector& from) {
  auto to = std::make_unique<VectorSelector>();
  to->name = from.name;
  to->matchers = from.matchers;
  to->modifiers = Clone(from.modifiers);
  to->anchored = from.anchored;
  to->smoothed = from.smoothed;
  to->position = from.position;
  to->depth = from.depth;
  return to;
}

ExprPtr CloneNode(const Expr& expr) {
  switch (expr.kind) {
    case NodeKind::kNumber: {
      const auto& from = static_cast<const NumberLiteral&>(expr);
      auto to = std::make_unique<NumberLiteral>();
      to->value = from.value;
      to->written_as_duration = from.written_as_duration;
      return to;
    }
    case NodeKind::kString: {
      auto to = std::make_unique<StringLiteral>();
      to->value = static_cast<const StringLiteral&>(expr).value;
      return to;
    }
    case NodeKind::kVectorSelector:
      return CloneSelector(static_cast<const VectorSelector&>(expr));
    case NodeKind::kMatrixSelector: {
      const auto& from = static_cast<const MatrixSelector&>(expr);
      auto to = std::make_unique<MatrixSelector>();
      to->vector = CloneSelector(*from.vector);
      to->range_ms = from.range_ms;
      to->range_expr = Clone(from.range_expr);
      return to;
    }
    case NodeKind::kSubquery: {
      const auto& from = static_cast<const Subquery&>(expr);
      auto to = std::make_unique<Subquery>();
      to->expr = CloneOrNull(from.expr);
      to->range_ms = from.range_ms;
      to->range_expr = Clone(from.range_expr);
      to->step_ms = from.step_ms;
      to->step_expr = Clone(from.step_expr);
      to->modifiers = Clone(from.modifiers);
      return to;
    }
    case NodeKind::kUnary: {
      const auto& from = static_cast<const Unary&>(expr);
      auto to = std::make_unique<Unary>();
      to->negative = from.negative;
      to->expr = CloneOrNull(from.expr);
      return to;
    }
    case NodeKind::kBinary: {
      const auto& from = static_cast<const Binary&>(expr);
      auto to = std::make_unique<Binary>();
      to->op = from.op;
      to->lhs = CloneOrNull(from.lhs);
      to->rhs = CloneOrNull(from.rhs);
      to->return_bool = from.return_bool;
      if (from.matching != nullptr) to->matching = std::make_unique<VectorMatching>(*from.matching);
      to->operator_position = from.operator_position;
      return to;
    }
    case NodeKind::kAggregate: {
      const auto& from = static_cast<const Aggregate&>(expr);
      auto to = std::make_unique<Aggregate>();
      to->op = from.op;
      to->expr = CloneOrNull(from.expr);
      to->param = CloneOrNull(from.param);
      to->without = from.without;
      to->grouping = from.grouping;
      return to;
    }
    case NodeKind::kCall: {
      const auto& from = static_cast<const Call&>(expr);
      auto to = std::make_unique<Call>();
      to->function = from.function;
      for (const ExprPtr& argument : from.arguments) to->arguments.push_back(CloneOrNull(argument));
      return to;
    }
    case NodeKind::kParen: {
      auto to = std::make_unique<Paren>();
      to->expr = CloneOrNull(static_cast<const Paren&>(expr).expr);
      return to;
    }
  }
  VARVE_CHECK(false);
}

bool Equal(const std::unique_ptr<DurationExpr>& a, const std::unique_ptr<DurationExpr>& b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->op == b->op && a->literal_seconds == b->literal_seconds && Equal(a->left, b->left) &&
         Equal(a->right, b->right);
}

bool Equal(const Modifiers& a, const Modifiers& b) {
  return a.offset_ms == b.offset_ms && Equal(a.offset_expr, b.offset_expr) && a.at == b.at && a.at_ms == b.at_ms;
}

bool EqualSelectors(const VectorSelector& a, const VectorSelector& b) {
  if (a.name != b.name || a.matchers.size() != b.matchers.size() || a.anchored != b.anchored ||
      a.smoothed != b.smoothed || !Equal(a.modifiers, b.modifiers)) {
    return false;
  }
  // The printer sorts matchers, whose order means nothing.
  std::vector<std::string> left, right;
  for (const model::Matcher& matcher : a.matchers) left.push_back(matcher.ToString());
  for (const model::Matcher& matcher : b.matchers) right.push_back(matcher.ToString());
  std::sort(left.begin(), left.end());
  std::sort(right.begin(), right.end());
  return left == right;
}

bool SameNumber(double a, double b) { return a == b || (a != a && b != b); }
bool SameNumber(const std::optional<double>& a, const std::optional<double>& b) {
  return a.has_value() == b.has_value() && (!a || SameNumber(*a, *b));
}

bool Equal(const ExprPtr& a, const ExprPtr& b) {
  if (a == nullptr || b == nullptr) return a == b;
  return promql::Equal(*a, *b);
}

}  // namespace

ExprPtr Clone(const Expr& expr) {
  ExprPtr copy = CloneNode(expr);
  copy->position = expr.position;
  copy->depth = expr.depth;
  return copy;
}

bool Equal(const Expr& x, const Expr& y) {
  if (x.kind != y.kind) return false;
  switch (x.kind) {
    case NodeKind::kNumber:
      return SameNumber(static_cast<const NumberLiteral&>(x).value, static_cast<const NumberLiteral&>(y).value);
    case NodeKind::kString:
      return static_cast<const StringLiteral&>(x).value == static_cast<const StringLiteral&>(y).value;
    case NodeKind::kVectorSelector:
      return EqualSelectors(static_cast<const VectorSelector&>(x), static_cast<const VectorSelector&>(y));
    case NodeKind::kMatrixSelector: {
      const auto& a = static_cast<const MatrixSelector&>(x);
      const auto& b = static_cast<const MatrixSelector&>(y);
      return EqualSelectors(*a.vector, *b.vector) && a.range_ms == b.range_ms && Equal(a.range_expr, b.range_expr);
    }
    case NodeKind::kSubquery: {
      const auto& a = static_cast<const Subquery&>(x);
      const auto& b = static_cast<const Subquery&>(y);
      return Equal(a.expr, b.expr) && a.range_ms == b.range_ms && Equal(a.range_expr, b.range_expr) &&
             a.step_ms == b.step_ms && Equal(a.step_expr, b.step_expr) && Equal(a.modifiers, b.modifiers);
    }
    case NodeKind::kUnary: {
      const auto& a = static_cast<const Unary&>(x);
      const auto& b = static_cast<const Unary&>(y);
      return a.negative == b.negative && Equal(a.expr, b.expr);
    }
    case NodeKind::kBinary: {
      const auto& a = static_cast<const Binary&>(x);
      const auto& b = static_cast<const Binary&>(y);
      if (a.op != b.op || a.return_bool != b.return_bool || !Equal(a.lhs, b.lhs) || !Equal(a.rhs, b.rhs)) return false;
      if (a.matching == nullptr || b.matching == nullptr) return a.matching == b.matching;
      const VectorMatching& m = *a.matching;
      const VectorMatching& n = *b.matching;
      return m.cardinality == n.cardinality && m.on == n.on && m.labels == n.labels && m.include == n.include &&
             SameNumber(m.fill_left, n.fill_left) && SameNumber(m.fill_right, n.fill_right);
    }
    case NodeKind::kAggregate: {
      const auto& a = static_cast<const Aggregate&>(x);
      const auto& b = static_cast<const Aggregate&>(y);
      return a.op == b.op && a.without == b.without && a.grouping == b.grouping && Equal(a.expr, b.expr) &&
             Equal(a.param, b.param);
    }
    case NodeKind::kCall: {
      const auto& a = static_cast<const Call&>(x);
      const auto& b = static_cast<const Call&>(y);
      return a.function == b.function &&
             std::equal(a.arguments.begin(), a.arguments.end(), b.arguments.begin(), b.arguments.end(),
                        [](const ExprPtr& i, const ExprPtr& j) { return Equal(i, j); });
    }
    case NodeKind::kParen:
      return Equal(static_cast<const Paren&>(x).expr, static_cast<const Paren&>(y).expr);
  }
  return false;
}

}  // namespace varve::promql
