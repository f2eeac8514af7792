// The syntax tree as JSON, for /api/v1/parse_query.
#include "query/api/json.h"
#include "query/promql/parser.h"
#include "storage/base/float_text.h"
#include "storage/base/strings.h"

namespace varve::api {

namespace {

using namespace promql;  // NOLINT: this file is about nothing but its nodes

std::string_view ShortType(ValueType type) {
  switch (type) {
    case ValueType::kNone:
      return "none";
    case ValueType::kScalar:
      return "scalar";
    case ValueType::kVector:
      return "vector";
    case ValueType::kMatrix:
      return "matrix";
    case ValueType::kString:
      return "string";
  }
  return "";
}

void AppendStrings(std::string& out, const std::vector<std::string>& texts) {
  out += '[';
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) out += ',';
    AppendString(out, texts[i]);
  }
  out += ']';
}

void AppendMatchers(std::string& out, const std::vector<model::Matcher>& matchers) {
  out += '[';
  for (size_t i = 0; i < matchers.size(); ++i) {
    out += i > 0 ? ",{\"name\":" : "{\"name\":";
    AppendString(out, matchers[i].name());
    base::StrAppend(out, ",\"type\":\"", model::ToString(matchers[i].type()), "\",\"value\":");
    AppendString(out, matchers[i].value());
    out += '}';
  }
  out += ']';
}

void AppendStartOrEnd(std::string& out, const Modifiers& modifiers) {
  base::StrAppend(out, "\"startOrEnd\":",
                  modifiers.at == AtKind::kStart ? "\"start\""
                  : modifiers.at == AtKind::kEnd ? "\"end\""
                                                 : "null");
}
void AppendAtTime(std::string& out, const Modifiers& modifiers) {
  out += "\"timestamp\":";
  if (modifiers.at == AtKind::kTimestamp) {
    base::StrAppend(out, modifiers.at_ms);
  } else {
    out += "null";
  }
}

void AppendChild(std::string& out, std::string_view key, const ExprPtr& child) {
  base::StrAppend(out, "\"", key, "\":");
  if (child == nullptr) {
    out += "null";
  } else {
    AppendTree(out, *child);
  }
}

void AppendBinary(std::string& out, const Binary& binary) {
  static constexpr std::string_view kCards[] = {"one-to-one", "many-to-one", "one-to-many", "many-to-many"};
  base::StrAppend(out, "{\"bool\":", binary.return_bool, ",");
  AppendChild(out, "lhs", binary.lhs);
  out += ",\"matching\":";
  if (binary.matching == nullptr) {
    out += "null";
  } else {
    const VectorMatching& matching = *binary.matching;
    base::StrAppend(out, "{\"card\":\"", kCards[static_cast<int>(matching.cardinality)], "\"");
    if (matching.fill_left || matching.fill_right) {
      const auto fill = [&out](const std::optional<double>& value) {
        if (!value) {
          out += "null";
          return;
        }
        // Not every double is a JSON number.
        out += '"';
        AppendSampleValue(out, *value);
        out += '"';
      };
      out += ",\"fillValues\":{\"lhs\":";
      fill(matching.fill_left);
      out += ",\"rhs\":";
      fill(matching.fill_right);
      out += '}';
    }
    out += ",\"include\":";
    AppendStrings(out, matching.include);
    out += ",\"labels\":";
    AppendStrings(out, matching.labels);
    base::StrAppend(out, ",\"on\":", matching.on, "}");
  }
  out += ",\"op\":";
  AppendString(out, ToString(binary.op));
  out += ',';
  AppendChild(out, "rhs", binary.rhs);
  out += ",\"type\":\"binaryExpr\"}";
}

void AppendCall(std::string& out, const Call& call) {
  out += "{\"args\":[";
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (i > 0) out += ',';
    AppendTree(out, *call.arguments[i]);
  }
  out += "],\"func\":{\"argTypes\":[";
  for (size_t i = 0; i < call.function->arguments.size(); ++i) {
    base::StrAppend(out, i > 0 ? ",\"" : "\"", ShortType(call.function->arguments[i]), "\"");
  }
  base::StrAppend(out, "],\"name\":\"", call.function->name, "\",\"returnType\":\"", ShortType(call.function->result),
                  "\",\"variadic\":", call.function->variadic, "},\"type\":\"call\"}");
}

void AppendSelector(std::string& out, const VectorSelector& selector, const MatrixSelector* matrix) {
  out += "{\"matchers\":";
  AppendMatchers(out, selector.matchers);
  out += ",\"name\":";
  AppendString(out, selector.name);
  base::StrAppend(out, ",\"offset\":", selector.modifiers.offset_ms);
  if (matrix != nullptr) base::StrAppend(out, ",\"range\":", matrix->range_ms);
  out += ',';
  AppendStartOrEnd(out, selector.modifiers);
  out += ',';
  AppendAtTime(out, selector.modifiers);
  base::StrAppend(out, ",\"type\":\"", matrix != nullptr ? "matrixSelector" : "vectorSelector", "\"}");
}

}  // namespace

void AppendTree(std::string& out, const Expr& expr) {
  switch (expr.kind) {
    case NodeKind::kNumber:
      base::StrAppend(out, "{\"type\":\"numberLiteral\",\"val\":\"",
                      base::FloatFixed(static_cast<const NumberLiteral&>(expr).value), "\"}");
      return;
    case NodeKind::kString:
      out += "{\"type\":\"stringLiteral\",\"val\":";
      AppendString(out, static_cast<const StringLiteral&>(expr).value);
      out += '}';
      return;
    case NodeKind::kVectorSelector:
      return AppendSelector(out, static_cast<const VectorSelector&>(expr), nullptr);
    case NodeKind::kMatrixSelector: {
      const auto& matrix = static_cast<const MatrixSelector&>(expr);
      return AppendSelector(out, *matrix.vector, &matrix);
    }
    case NodeKind::kSubquery: {
      const auto& subquery = static_cast<const Subquery&>(expr);
      out += '{';
      AppendChild(out, "expr", subquery.expr);
      base::StrAppend(out, ",\"offset\":", subquery.modifiers.offset_ms, ",\"range\":", subquery.range_ms, ",");
      AppendStartOrEnd(out, subquery.modifiers);
      base::StrAppend(out, ",\"step\":", subquery.step_ms, ",");
      AppendAtTime(out, subquery.modifiers);
      out += ",\"type\":\"subquery\"}";
      return;
    }
    case NodeKind::kUnary: {
      const auto& unary = static_cast<const Unary&>(expr);
      out += '{';
      AppendChild(out, "expr", unary.expr);
      base::StrAppend(out, ",\"op\":\"", unary.negative ? "-" : "+", "\",\"type\":\"unaryExpr\"}");
      return;
    }
    case NodeKind::kParen:
      out += '{';
      AppendChild(out, "expr", static_cast<const Paren&>(expr).expr);
      out += ",\"type\":\"parenExpr\"}";
      return;
    case NodeKind::kAggregate: {
      const auto& aggregate = static_cast<const Aggregate&>(expr);
      out += '{';
      AppendChild(out, "expr", aggregate.expr);
      out += ",\"grouping\":";
      AppendStrings(out, aggregate.grouping);
      base::StrAppend(out, ",\"op\":\"", ToString(aggregate.op), "\",");
      AppendChild(out, "param", aggregate.param);
      base::StrAppend(out, ",\"type\":\"aggregation\",\"without\":", aggregate.without, "}");
      return;
    }
    case NodeKind::kBinary:
      return AppendBinary(out, static_cast<const Binary&>(expr));
    case NodeKind::kCall:
      return AppendCall(out, static_cast<const Call&>(expr));
  }
}

}  // namespace varve::api
