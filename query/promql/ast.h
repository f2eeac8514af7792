#pragma once
// The syntax tree of a PromQL expression, as written: no rewriting, so that it prints back to the same meaning. Nodes
// are immutable after parsing and owned by their parents.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/model/matcher.h"

namespace varve::promql {

enum class ValueType : uint8_t { kNone, kScalar, kVector, kMatrix, kString };
// "scalar", "instant vector", "range vector", "string", "none": the words of Prometheus' errors.
std::string_view ToString(ValueType type);

// Byte offsets into the query text, [begin, end).
struct PositionRange {
  int32_t begin = 0, end = 0;
};

enum class NodeKind : uint8_t {
  kNumber,
  kString,
  kVectorSelector,
  kMatrixSelector,
  kSubquery,
  kUnary,
  kBinary,
  kAggregate,
  kCall,
  kParen
};

struct Expr {
  Expr(NodeKind k) : kind(k) {}
  virtual ~Expr() = default;
  const NodeKind kind;
  PositionRange position;
  int32_t depth = 1;       // of the tree below, itself included; bounded by the parser
  ValueType type() const;  // static type of the result
};
using ExprPtr = std::unique_ptr<Expr>;

enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,
  kPow,
  kAtan2,
  kEqual,
  kNotEqual,
  kLess,
  kGreater,
  kLessEqual,
  kGreaterEqual,
  kAnd,
  kOr,
  kUnless,
  kTrimUpper,  // </
  kTrimLower   // >/
};
std::string_view ToString(BinaryOp op);
bool IsComparison(BinaryOp op);
bool IsSetOperator(BinaryOp op);

// A duration that is computed when the query runs: `step()`, `range()`, `min_of`, `max_of`, arithmetic over durations
// and numbers. Null pointers where only a literal was written.
enum class DurationOp : uint8_t {
  kLiteral,
  kStep,
  kRange,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,
  kPow,
  kNegate,
  kPlus,
  kMinOf,
  kMaxOf
};
struct DurationExpr {
  DurationOp op = DurationOp::kLiteral;
  double literal_seconds = 0;
  bool written_as_duration = false;  // "5m" as opposed to "300"
  bool parenthesised = false;
  std::unique_ptr<DurationExpr> left, right;  // unary operators use left
  PositionRange position;
};

struct NumberLiteral : Expr {
  NumberLiteral() : Expr(NodeKind::kNumber) {}
  double value = 0;
  bool written_as_duration = false;  // 1h as a number
};

struct StringLiteral : Expr {
  StringLiteral() : Expr(NodeKind::kString) {}
  std::string value;
};

enum class AtKind : uint8_t { kNone, kTimestamp, kStart, kEnd };
struct Modifiers {        // of a selector or subquery
  int64_t offset_ms = 0;  // as written (positive looks back)
  std::unique_ptr<DurationExpr> offset_expr;
  AtKind at = AtKind::kNone;
  int64_t at_ms = 0;  // for kTimestamp
};

struct VectorSelector : Expr {
  VectorSelector() : Expr(NodeKind::kVectorSelector) {}
  std::string name;                      // written before the braces or alone; "" when only in the braces
  std::vector<model::Matcher> matchers;  // with the one for __name__ if there is a name
  Modifiers modifiers;
  bool anchored = false, smoothed = false;  // extended range selectors
};

struct MatrixSelector : Expr {
  MatrixSelector() : Expr(NodeKind::kMatrixSelector) {}
  std::unique_ptr<VectorSelector> vector;  // carries the modifiers
  int64_t range_ms = 0;
  std::unique_ptr<DurationExpr> range_expr;
};

struct Subquery : Expr {
  Subquery() : Expr(NodeKind::kSubquery) {}
  ExprPtr expr;
  int64_t range_ms = 0;
  std::unique_ptr<DurationExpr> range_expr;
  int64_t step_ms = 0;  // 0: the default interval
  std::unique_ptr<DurationExpr> step_expr;
  Modifiers modifiers;
};

struct Unary : Expr {
  Unary() : Expr(NodeKind::kUnary) {}
  bool negative = true;  // '-', else '+'
  ExprPtr expr;
};

enum class Cardinality : uint8_t { kOneToOne, kManyToOne, kOneToMany, kManyToMany };
struct VectorMatching {
  Cardinality cardinality = Cardinality::kOneToOne;
  bool on = false;               // on(...), else ignoring(...)
  bool explicit_labels = false;  // on or ignoring was written
  std::vector<std::string> labels;
  std::vector<std::string> include;  // group_left(...) / group_right(...)
  std::optional<double> fill_left, fill_right;
};

struct Binary : Expr {
  Binary() : Expr(NodeKind::kBinary) {}
  BinaryOp op = BinaryOp::kAdd;
  ExprPtr lhs, rhs;
  bool return_bool = false;
  std::unique_ptr<VectorMatching> matching;  // set when both sides are vectors
  PositionRange operator_position;
};

enum class AggregateOp : uint8_t {
  kSum,
  kAvg,
  kCount,
  kMin,
  kMax,
  kGroup,
  kStddev,
  kStdvar,
  kTopK,
  kBottomK,
  kCountValues,
  kQuantile,
  kLimitK,
  kLimitRatio
};
std::string_view ToString(AggregateOp op);

struct Aggregate : Expr {
  Aggregate() : Expr(NodeKind::kAggregate) {}
  AggregateOp op = AggregateOp::kSum;
  ExprPtr expr;
  ExprPtr param;  // may be null
  bool without = false;
  std::vector<std::string> grouping;
};

struct FunctionSignature {
  std::string_view name;
  std::vector<ValueType> arguments;
  int variadic = 0;  // 0: exactly `arguments`; n>0: the last n may be left out; -1: the last may repeat or be left out
  ValueType result = ValueType::kVector;
  bool experimental = false;
};
const FunctionSignature* FindFunction(std::string_view name);  // null when there is none

struct Call : Expr {
  Call() : Expr(NodeKind::kCall) {}
  const FunctionSignature* function = nullptr;
  std::vector<ExprPtr> arguments;
};

struct Paren : Expr {
  Paren() : Expr(NodeKind::kParen) {}
  ExprPtr expr;
};

// What the server's --enable-feature flags allow. Defaults are those of a Prometheus 3.14 server.
struct Options {
  bool experimental_functions = false;
  bool extended_range_selectors = false;
  bool fill_modifiers = false;
  bool duration_expressions = true;
};

}  // namespace varve::promql
