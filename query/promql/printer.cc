#include <algorithm>
#include <cmath>

#include "query/promql/parser.h"
#include "storage/base/float_text.h"
#include "storage/base/strings.h"

namespace varve::promql {

namespace {

using base::StrAppend;
using base::StrCat;

std::string LabelList(const std::vector<std::string>& labels) {
  std::string out = "(";
  for (size_t i = 0; i < labels.size(); ++i) {
    if (i > 0) out += ", ";
    out += model::IsClassicLabelName(labels[i]) ? labels[i] : base::QuoteGo(labels[i]);
  }
  return out + ")";
}

std::string SecondsText(double seconds, bool as_duration) {
  if (!as_duration || !(std::fabs(seconds) < 9.2e9)) return base::FloatFixed(seconds);
  return FormatDuration(std::llround(seconds * 1000));
}

std::string PrintDuration(const DurationExpr& d);

std::string DurationOperand(const DurationExpr& d) { return PrintDuration(d); }

std::string PrintDuration(const DurationExpr& d) {
  std::string out;
  const auto binary = [&](std::string_view op) {
    out = StrCat(DurationOperand(*d.left), " ", op, " ", DurationOperand(*d.right));
  };
  switch (d.op) {
    case DurationOp::kLiteral:
      out = SecondsText(d.literal_seconds, d.written_as_duration);
      break;
    case DurationOp::kStep:
      out = "step()";
      break;
    case DurationOp::kRange:
      out = "range()";
      break;
    case DurationOp::kAdd:
      binary("+");
      break;
    case DurationOp::kSub:
      binary("-");
      break;
    case DurationOp::kMul:
      binary("*");
      break;
    case DurationOp::kDiv:
      binary("/");
      break;
    case DurationOp::kMod:
      binary("%");
      break;
    case DurationOp::kPow:
      binary("^");
      break;
    case DurationOp::kNegate:
      out = StrCat("-", DurationOperand(*d.left));
      break;
    case DurationOp::kPlus:
      out = StrCat("+", DurationOperand(*d.left));
      break;
    case DurationOp::kMinOf:
    case DurationOp::kMaxOf:
      out = StrCat(d.op == DurationOp::kMinOf ? "min_of(" : "max_of(", PrintDuration(*d.left), ", ",
                   PrintDuration(*d.right), ")");
      break;
  }
  return d.parenthesised ? StrCat("(", out, ")") : out;
}

std::string RangeText(int64_t ms, const std::unique_ptr<DurationExpr>& expr) {
  return expr != nullptr ? PrintDuration(*expr) : FormatDuration(ms);
}

std::string ModifiersText(const Modifiers& modifiers) {
  std::string out;
  switch (modifiers.at) {
    case AtKind::kNone:
      break;
    case AtKind::kStart:
      out += " @ start()";
      break;
    case AtKind::kEnd:
      out += " @ end()";
      break;
    case AtKind::kTimestamp: {
      const bool negative = modifiers.at_ms < 0;
      const uint64_t ms =
          negative ? 0 - static_cast<uint64_t>(modifiers.at_ms) : static_cast<uint64_t>(modifiers.at_ms);
      const std::string fraction = StrCat(ms % 1000);
      StrAppend(out, " @ ", negative ? "-" : "", ms / 1000, ".", std::string(3 - fraction.size(), '0'), fraction);
      break;
    }
  }
  if (modifiers.offset_expr != nullptr) {
    StrAppend(out, " offset ", PrintDuration(*modifiers.offset_expr));
  } else if (modifiers.offset_ms != 0) {
    StrAppend(out, " offset ", FormatDuration(modifiers.offset_ms));
  }
  return out;
}

std::string SelectorText(const VectorSelector& selector, std::string_view range) {
  std::vector<std::string> inside;
  for (size_t i = 0; i < selector.matchers.size(); ++i) {
    const bool written_before = !selector.name.empty() && i + 1 == selector.matchers.size();
    if (!written_before) inside.push_back(selector.matchers[i].ToString());
  }
  std::sort(inside.begin(), inside.end());
  std::string out = selector.name;
  if (!inside.empty() || out.empty()) StrAppend(out, "{", base::StrJoin(inside, ","), "}");
  StrAppend(out, range, selector.anchored ? " anchored" : selector.smoothed ? " smoothed" : "");
  return out + ModifiersText(selector.modifiers);
}

std::string SubquerySuffix(const Subquery& subquery) {
  std::string out = StrCat("[", RangeText(subquery.range_ms, subquery.range_expr), ":");
  if (subquery.step_expr != nullptr || subquery.step_ms != 0) out += RangeText(subquery.step_ms, subquery.step_expr);
  return StrCat(out, "]", ModifiersText(subquery.modifiers));
}

std::string AggregateHead(const Aggregate& aggregate) {
  std::string out(ToString(aggregate.op));
  if (aggregate.without) {
    StrAppend(out, " without ", LabelList(aggregate.grouping), " ");
  } else if (!aggregate.grouping.empty()) {
    StrAppend(out, " by ", LabelList(aggregate.grouping), " ");
  }
  return out;
}

std::string OperatorText(const Binary& binary) {
  std::string out(ToString(binary.op));
  if (binary.return_bool) out += " bool";
  if (binary.matching == nullptr) return out;
  const VectorMatching& matching = *binary.matching;
  const bool grouped =
      matching.cardinality == Cardinality::kManyToOne || matching.cardinality == Cardinality::kOneToMany;
  if (matching.on || !matching.labels.empty() || grouped) {
    StrAppend(out, matching.on ? " on " : " ignoring ", LabelList(matching.labels));
  }
  if (grouped) {
    StrAppend(out, matching.cardinality == Cardinality::kManyToOne ? " group_left " : " group_right ",
              LabelList(matching.include));
  }
  const auto& left = matching.fill_left;
  const auto& right = matching.fill_right;
  if (left && right && (*left == *right || (std::isnan(*left) && std::isnan(*right)))) {
    StrAppend(out, " fill (", base::FloatFixed(*left), ")");
  } else {
    if (left) StrAppend(out, " fill_left (", base::FloatFixed(*left), ")");
    if (right) StrAppend(out, " fill_right (", base::FloatFixed(*right), ")");
  }
  return out;
}

// `+Inf ^ 2` would read as +(Inf ^ 2), therefore no sign there.
std::string LeftOperand(const Binary& binary) {
  std::string out = Print(*binary.lhs);
  if (binary.op == BinaryOp::kPow && out == "+Inf") return "Inf";
  return out;
}

std::string Pretty(const Expr& expr, int level);

std::string Indent(int level) { return std::string(static_cast<size_t>(level) * 2, ' '); }

std::string PrettyList(const std::vector<ExprPtr>& exprs, int level) {
  std::string out;
  for (size_t i = 0; i < exprs.size(); ++i) StrAppend(out, i > 0 ? ",\n" : "", Pretty(*exprs[i], level));
  return out;
}

constexpr size_t kLineBytesMax = 100;

std::string Pretty(const Expr& expr, int level) {
  const std::string line = Print(expr);
  if (line.size() <= kLineBytesMax) return Indent(level) + line;
  switch (expr.kind) {
    case NodeKind::kAggregate: {
      const auto& aggregate = static_cast<const Aggregate&>(expr);
      std::string out = StrCat(Indent(level), AggregateHead(aggregate), "(\n");
      if (aggregate.param != nullptr) StrAppend(out, Pretty(*aggregate.param, level + 1), ",\n");
      return StrCat(out, Pretty(*aggregate.expr, level + 1), "\n", Indent(level), ")");
    }
    case NodeKind::kBinary: {
      const auto& binary = static_cast<const Binary&>(expr);
      return StrCat(Pretty(*binary.lhs, level + 1), "\n", Indent(level), OperatorText(binary), "\n",
                    Pretty(*binary.rhs, level + 1));
    }
    case NodeKind::kCall: {
      const auto& call = static_cast<const Call&>(expr);
      return StrCat(Indent(level), call.function->name, "(\n", PrettyList(call.arguments, level + 1), "\n",
                    Indent(level), ")");
    }
    case NodeKind::kParen:
      return StrCat(Indent(level), "(\n", Pretty(*static_cast<const Paren&>(expr).expr, level + 1), "\n", Indent(level),
                    ")");
    case NodeKind::kSubquery: {
      const auto& subquery = static_cast<const Subquery&>(expr);
      return StrCat(Pretty(*subquery.expr, level), SubquerySuffix(subquery));
    }
    case NodeKind::kUnary: {
      const auto& unary = static_cast<const Unary&>(expr);
      return StrCat(Indent(level), unary.negative ? "-" : "+", base::StrTrim(Pretty(*unary.expr, level)));
    }
    default:
      return Indent(level) + line;
  }
}

}  // namespace

std::string Print(const Expr& expr) {
  switch (expr.kind) {
    case NodeKind::kNumber: {
      const auto& number = static_cast<const NumberLiteral&>(expr);
      return SecondsText(number.value, number.written_as_duration);
    }
    case NodeKind::kString:
      return base::QuoteGo(static_cast<const StringLiteral&>(expr).value);
    case NodeKind::kVectorSelector:
      return SelectorText(static_cast<const VectorSelector&>(expr), "");
    case NodeKind::kMatrixSelector: {
      const auto& matrix = static_cast<const MatrixSelector&>(expr);
      return SelectorText(*matrix.vector, StrCat("[", RangeText(matrix.range_ms, matrix.range_expr), "]"));
    }
    case NodeKind::kSubquery: {
      const auto& subquery = static_cast<const Subquery&>(expr);
      return Print(*subquery.expr) + SubquerySuffix(subquery);
    }
    case NodeKind::kUnary: {
      const auto& unary = static_cast<const Unary&>(expr);
      return StrCat(unary.negative ? "-" : "+", Print(*unary.expr));
    }
    case NodeKind::kBinary: {
      const auto& binary = static_cast<const Binary&>(expr);
      return StrCat(LeftOperand(binary), " ", OperatorText(binary), " ", Print(*binary.rhs));
    }
    case NodeKind::kAggregate: {
      const auto& aggregate = static_cast<const Aggregate&>(expr);
      std::string out = AggregateHead(aggregate) + "(";
      if (aggregate.param != nullptr) StrAppend(out, Print(*aggregate.param), ", ");
      return StrCat(out, Print(*aggregate.expr), ")");
    }
    case NodeKind::kCall: {
      const auto& call = static_cast<const Call&>(expr);
      std::string out = StrCat(call.function->name, "(");
      for (size_t i = 0; i < call.arguments.size(); ++i) StrAppend(out, i > 0 ? ", " : "", Print(*call.arguments[i]));
      return out + ")";
    }
    case NodeKind::kParen:
      return StrCat("(", Print(*static_cast<const Paren&>(expr).expr), ")");
  }
  return "";
}

std::string PrettyPrint(const Expr& expr) { return Pretty(expr, 0); }

}  // namespace varve::promql
