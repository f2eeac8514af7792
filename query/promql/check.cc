#include "query/promql/check.h"

#include <algorithm>

#include "storage/base/strings.h"

namespace varve::promql {

namespace {

using Problem = std::optional<ParseProblem>;
using base::StrCat;

enum class EmptyMatchers { kRefused, kAllowed };

#define RETURN_IF_PROBLEM(expression)                     \
  do {                                                    \
    if (Problem problem_ = (expression)) return problem_; \
  } while (false)

Problem Fail(const PositionRange& position, std::string text) { return ParseProblem{position, std::move(text)}; }

Problem ExpectType(const Expr& expr, ValueType want, std::string_view context) {
  RETURN_IF_PROBLEM(CheckTypes(expr));
  if (expr.type() == want) return std::nullopt;
  return Fail(expr.position,
              StrCat("expected type ", ToString(want), " in ", context, ", got ", ToString(expr.type())));
}

Problem CheckAggregate(const Aggregate& aggregate) {
  RETURN_IF_PROBLEM(ExpectType(*aggregate.expr, ValueType::kVector, "aggregation expression"));
  if (aggregate.param == nullptr) return std::nullopt;
  const ValueType want = aggregate.op == AggregateOp::kCountValues ? ValueType::kString : ValueType::kScalar;
  return ExpectType(*aggregate.param, want, "aggregation parameter");
}

Problem CheckBinary(const Binary& binary) {
  RETURN_IF_PROBLEM(CheckTypes(*binary.lhs));
  RETURN_IF_PROBLEM(CheckTypes(*binary.rhs));
  const ValueType left = binary.lhs->type(), right = binary.rhs->type();
  const bool comparison = IsComparison(binary.op), set = IsSetOperator(binary.op);
  const VectorMatching& matching = *binary.matching;  // dropped by the parser afterwards where it means nothing
  if (binary.return_bool && !comparison) {
    return Fail(binary.operator_position, "bool modifier can only be used on comparison operators");
  }
  const bool scalars = left == ValueType::kScalar && right == ValueType::kScalar;
  if (comparison && !binary.return_bool && scalars) {
    return Fail(binary.operator_position, "comparisons between scalars must use BOOL modifier");
  }
  if (matching.on) {
    for (const std::string& label : matching.labels) {
      if (std::find(matching.include.begin(), matching.include.end(), label) != matching.include.end()) {
        return Fail(binary.operator_position,
                    StrCat("label ", base::QuoteGo(label), " must not occur in ON and GROUP clause at once"));
      }
    }
  }
  for (const Expr* side : {binary.lhs.get(), binary.rhs.get()}) {
    if (side->type() != ValueType::kScalar && side->type() != ValueType::kVector) {
      return Fail(side->position, "binary expression must contain only scalar and instant vector types");
    }
  }
  const bool fills = matching.fill_left.has_value() || matching.fill_right.has_value();
  if (left != ValueType::kVector || right != ValueType::kVector) {
    if (!matching.labels.empty()) return Fail(binary.position, "vector matching only allowed between instant vectors");
    if (fills) return Fail(binary.position, "filling in missing series only allowed between instant vectors");
    if (set) {
      return Fail(binary.position, StrCat("set operator ", base::QuoteGo(ToString(binary.op)),
                                          " not allowed in binary scalar expression"));
    }
    if (scalars && (binary.op == BinaryOp::kTrimUpper || binary.op == BinaryOp::kTrimLower)) {
      return Fail(binary.position,
                  StrCat("operator ", base::QuoteGo(ToString(binary.op)), " not allowed between scalars"));
    }
  } else if (set) {
    if (matching.cardinality == Cardinality::kManyToOne || matching.cardinality == Cardinality::kOneToMany) {
      return Fail(binary.position,
                  StrCat("no grouping allowed for ", base::QuoteGo(ToString(binary.op)), " operation"));
    }
    if (fills) return Fail(binary.position, "filling in missing series not allowed for set operators");
  }
  return std::nullopt;
}

Problem CheckSelector(const VectorSelector& selector, EmptyMatchers empty) {
  if (!selector.name.empty()) {
    // The last matcher is that of the name before the braces.
    for (size_t i = 0; i + 1 < selector.matchers.size(); ++i) {
      if (selector.matchers[i].name() == model::kMetricName) {
        return Fail(selector.position, StrCat("metric name must not be set twice: ", base::QuoteGo(selector.name),
                                              " or ", base::QuoteGo(selector.matchers[i].value())));
      }
    }
    return std::nullopt;
  }
  if (empty == EmptyMatchers::kAllowed) return std::nullopt;
  for (const model::Matcher& matcher : selector.matchers) {
    if (!matcher.MatchesEmpty()) return std::nullopt;
  }
  return Fail(selector.position, "vector selector must contain at least one non-empty matcher");
}

Problem CheckCall(const Call& call) {
  const FunctionSignature& function = *call.function;
  const size_t most = function.arguments.size(), given = call.arguments.size();
  const auto count = [&](std::string_view words, size_t n) {
    return Fail(call.position, StrCat("expected ", words, n, " argument(s) in call to ", base::QuoteGo(function.name),
                                      ", got ", given));
  };
  if (function.variadic == 0) {
    if (given != most) return count("", most);
  } else {
    const size_t least = most - static_cast<size_t>(function.variadic < 0 ? 1 : function.variadic);
    if (given < least) return count("at least ", least);
    if (function.variadic > 0 && given > most) return count("at most ", most);
  }
  const bool info = function.name == "info";
  if (info && given > 1) {
    const Expr& selector = *call.arguments[1];
    if (selector.kind != NodeKind::kVectorSelector) return Fail(selector.position, "expected label selectors only");
    if (!static_cast<const VectorSelector&>(selector).name.empty()) {
      return Fail(selector.position, "expected label selectors only, got vector selector instead");
    }
  }
  for (size_t i = 0; i < given; ++i) {
    const Expr& argument = *call.arguments[i];
    if (info && i == 1) {
      RETURN_IF_PROBLEM(CheckSelector(static_cast<const VectorSelector&>(argument), EmptyMatchers::kAllowed));
    } else {
      RETURN_IF_PROBLEM(CheckTypes(argument));
    }
    const ValueType want = function.arguments[std::min(i, most - 1)];
    if (argument.type() != want) {
      return Fail(argument.position, StrCat("expected type ", ToString(want), " in call to function ",
                                            base::QuoteGo(function.name), ", got ", ToString(argument.type())));
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<ParseProblem> CheckTypes(const Expr& expr) {
  switch (expr.kind) {
    case NodeKind::kNumber:
    case NodeKind::kString:
      return std::nullopt;
    case NodeKind::kVectorSelector:
      return CheckSelector(static_cast<const VectorSelector&>(expr), EmptyMatchers::kRefused);
    case NodeKind::kMatrixSelector:
      return CheckSelector(*static_cast<const MatrixSelector&>(expr).vector, EmptyMatchers::kRefused);
    case NodeKind::kSubquery: {
      const Expr& inner = *static_cast<const Subquery&>(expr).expr;
      RETURN_IF_PROBLEM(CheckTypes(inner));
      if (inner.type() == ValueType::kVector) return std::nullopt;
      // Here Prometheus shows the short name of the type.
      const ValueType type = inner.type();
      return Fail(expr.position,
                  StrCat("subquery is only allowed on instant vector, got ",
                         type == ValueType::kMatrix ? std::string_view("matrix") : ToString(type), " instead"));
    }
    case NodeKind::kUnary: {
      const Expr& inner = *static_cast<const Unary&>(expr).expr;
      RETURN_IF_PROBLEM(CheckTypes(inner));
      if (inner.type() == ValueType::kScalar || inner.type() == ValueType::kVector) return std::nullopt;
      return Fail(expr.position,
                  StrCat("unary expression only allowed on expressions of type scalar or instant vector, got ",
                         base::QuoteGo(ToString(inner.type()))));
    }
    case NodeKind::kBinary:
      return CheckBinary(static_cast<const Binary&>(expr));
    case NodeKind::kAggregate:
      return CheckAggregate(static_cast<const Aggregate&>(expr));
    case NodeKind::kCall:
      return CheckCall(static_cast<const Call&>(expr));
    case NodeKind::kParen:
      return CheckTypes(*static_cast<const Paren&>(expr).expr);
  }
  return std::nullopt;
}

}  // namespace varve::promql
