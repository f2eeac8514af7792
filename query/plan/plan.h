#pragma once
// The logical plan: a PromQL expression with everything decided that does not depend on data. Durations are numbers,
// `@ start()` is a time, parentheses are gone, constants are folded, and parts that have the same value at every step
// are marked by a kStepInvariant node above them.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "query/promql/ast.h"
#include "storage/base/status.h"

namespace varve::plan {

enum class NodeKind : uint8_t {
  kNumber,         // number
  kString,         // text
  kSelector,       // matchers, offset_ms, at_ms
  kRangeSelector,  // as kSelector, with range_ms, anchored, smoothed
  kSubquery,       // children[0] on the grid of subquery_step_ms; range_ms, offset_ms, at_ms
  kNegate,         // -children[0]
  kBinary,         // children[0] op children[1]; `binary` has the matching
  kAggregate,      // children[0], parameter in children[1] if there is one; `aggregate` has the grouping
  kCall,           // `function` over children
  kStepInvariant,  // children[0], evaluated at the first step and repeated
};

// Borrows from the syntax tree that it was made of, which must outlive it.
struct Node {
  NodeKind kind = NodeKind::kNumber;
  promql::ValueType type = promql::ValueType::kNone;
  promql::PositionRange position;  // in the query's text
  std::vector<std::unique_ptr<Node>> children;

  double number = 0;
  std::string text;
  std::vector<model::Matcher> matchers;
  int64_t offset_ms = 0;         // positive looks back
  std::optional<int64_t> at_ms;  // evaluated at this time, whatever the step's
  int64_t range_ms = 0, subquery_step_ms = 0;
  bool anchored = false, smoothed = false;
  bool counts_only = false;  // of native histograms only count and sum matter
  const promql::Binary* binary = nullptr;
  const promql::Aggregate* aggregate = nullptr;
  const promql::FunctionSignature* function = nullptr;
};
using NodePtr = std::unique_ptr<Node>;

struct Bounds {  // of the query
  int64_t start_ms = 0, end_ms = 0, step_ms = 0;
  int64_t subquery_step_ms = 60'000;  // of subqueries that do not say
};

// All passes. InvalidArgument when a computed duration is not legal where it stands.
absl::StatusOr<NodePtr> Build(const promql::Expr& expr, const Bounds& bounds);

// Passes, in this order.
absl::StatusOr<NodePtr> Lower(const promql::Expr& expr, const Bounds& bounds);
void FoldConstants(NodePtr& node);
void MarkHistogramCounts(Node& root);
void MarkStepInvariant(NodePtr& root);

// Milliseconds, rounded towards zero.
absl::StatusOr<int64_t> EvaluateDuration(const promql::DurationExpr& expr, const Bounds& bounds);

// An indented tree, one node a line.
std::string Explain(const Node& node);

}  // namespace varve::plan
