// Syntax tree to plan: durations and `@` become numbers, parentheses and unary plus go.
#include <cmath>

#include "query/plan/plan.h"
#include "storage/base/check.h"
#include "storage/base/strings.h"

namespace varve::plan {
namespace {

using promql::ValueType;

class Lowering {
 public:
  explicit Lowering(const Bounds& bounds) : bounds_(bounds) {}

  absl::StatusOr<NodePtr> Run(const promql::Expr& expr) {
    switch (expr.kind) {
      case promql::NodeKind::kNumber: {
        NodePtr node = Make(NodeKind::kNumber, expr);
        node->number = static_cast<const promql::NumberLiteral&>(expr).value;
        return node;
      }
      case promql::NodeKind::kString: {
        NodePtr node = Make(NodeKind::kString, expr);
        node->text = static_cast<const promql::StringLiteral&>(expr).value;
        return node;
      }
      case promql::NodeKind::kParen:
        return Run(*static_cast<const promql::Paren&>(expr).expr);
      case promql::NodeKind::kUnary: {
        const auto& unary = static_cast<const promql::Unary&>(expr);
        if (!unary.negative) return Run(*unary.expr);
        NodePtr node = Make(NodeKind::kNegate, expr);
        RETURN_IF_ERROR(AddChild(*node, *unary.expr));
        return node;
      }
      case promql::NodeKind::kVectorSelector: {
        NodePtr node = Make(NodeKind::kSelector, expr);
        RETURN_IF_ERROR(FillSelector(static_cast<const promql::VectorSelector&>(expr), *node));
        return node;
      }
      case promql::NodeKind::kMatrixSelector: {
        const auto& matrix = static_cast<const promql::MatrixSelector&>(expr);
        NodePtr node = Make(NodeKind::kRangeSelector, expr);
        RETURN_IF_ERROR(FillSelector(*matrix.vector, *node));
        ASSIGN_OR_RETURN(node->range_ms, Positive(matrix.range_ms, matrix.range_expr.get()));
        return node;
      }
      case promql::NodeKind::kSubquery: {
        const auto& subquery = static_cast<const promql::Subquery&>(expr);
        NodePtr node = Make(NodeKind::kSubquery, expr);
        ASSIGN_OR_RETURN(node->range_ms, Positive(subquery.range_ms, subquery.range_expr.get()));
        if (subquery.step_ms == 0 && subquery.step_expr == nullptr) {
          node->subquery_step_ms = bounds_.subquery_step_ms;
        } else {
          ASSIGN_OR_RETURN(node->subquery_step_ms, Positive(subquery.step_ms, subquery.step_expr.get()));
        }
        RETURN_IF_ERROR(FillModifiers(subquery.modifiers, *node));
        RETURN_IF_ERROR(AddChild(*node, *subquery.expr));
        return node;
      }
      case promql::NodeKind::kBinary: {
        const auto& binary = static_cast<const promql::Binary&>(expr);
        NodePtr node = Make(NodeKind::kBinary, expr);
        node->binary = &binary;
        RETURN_IF_ERROR(AddChild(*node, *binary.lhs));
        RETURN_IF_ERROR(AddChild(*node, *binary.rhs));
        return node;
      }
      case promql::NodeKind::kAggregate: {
        const auto& aggregate = static_cast<const promql::Aggregate&>(expr);
        NodePtr node = Make(NodeKind::kAggregate, expr);
        node->aggregate = &aggregate;
        RETURN_IF_ERROR(AddChild(*node, *aggregate.expr));
        if (aggregate.param != nullptr) RETURN_IF_ERROR(AddChild(*node, *aggregate.param));
        return node;
      }
      case promql::NodeKind::kCall: {
        const auto& call = static_cast<const promql::Call&>(expr);
        if (NodePtr number = QueryConstant(call); number != nullptr) return number;
        NodePtr node = Make(NodeKind::kCall, expr);
        node->function = call.function;
        for (const promql::ExprPtr& argument : call.arguments) RETURN_IF_ERROR(AddChild(*node, *argument));
        return node;
      }
    }
    return absl::InternalError("unknown expression");
  }

 private:
  static NodePtr Make(NodeKind kind, const promql::Expr& expr) {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->type = expr.type();
    node->position = expr.position;
    return node;
  }

  absl::Status AddChild(Node& node, const promql::Expr& expr) {
    ASSIGN_OR_RETURN(NodePtr child, Run(expr));
    node.children.push_back(std::move(child));
    return absl::OkStatus();
  }

  // start(), end(), range() and step() are numbers once the query is known.
  NodePtr QueryConstant(const promql::Call& call) const {
    const std::string_view name = call.function->name;
    double value = 0;
    if (name == "start") {
      value = static_cast<double>(bounds_.start_ms) / 1000;
    } else if (name == "end") {
      value = static_cast<double>(bounds_.end_ms) / 1000;
    } else if (name == "range") {
      value = static_cast<double>(bounds_.end_ms - bounds_.start_ms) / 1000;
    } else if (name == "step") {
      value = static_cast<double>(bounds_.step_ms) / 1000;
    } else {
      return nullptr;
    }
    NodePtr node = Make(NodeKind::kNumber, call);
    node->number = value;
    return node;
  }

  absl::StatusOr<int64_t> Positive(int64_t literal_ms, const promql::DurationExpr* expr) const {
    int64_t ms = literal_ms;
    if (expr != nullptr) {
      ASSIGN_OR_RETURN(ms, EvaluateDuration(*expr, bounds_));
    }
    if (ms <= 0) return absl::InvalidArgumentError("duration must be greater than 0");
    return ms;
  }

  absl::Status FillModifiers(const promql::Modifiers& modifiers, Node& node) const {
    node.offset_ms = modifiers.offset_ms;
    if (modifiers.offset_expr != nullptr) {
      ASSIGN_OR_RETURN(node.offset_ms, EvaluateDuration(*modifiers.offset_expr, bounds_));
    }
    switch (modifiers.at) {
      case promql::AtKind::kNone:
        break;
      case promql::AtKind::kTimestamp:
        node.at_ms = modifiers.at_ms;
        break;
      case promql::AtKind::kStart:
        node.at_ms = bounds_.start_ms;
        break;
      case promql::AtKind::kEnd:
        node.at_ms = bounds_.end_ms;
        break;
    }
    return absl::OkStatus();
  }

  absl::Status FillSelector(const promql::VectorSelector& selector, Node& node) const {
    node.matchers = selector.matchers;
    node.anchored = selector.anchored;
    node.smoothed = selector.smoothed;
    return FillModifiers(selector.modifiers, node);
  }

  const Bounds& bounds_;
};

}  // namespace

absl::StatusOr<NodePtr> Lower(const promql::Expr& expr, const Bounds& bounds) { return Lowering(bounds).Run(expr); }

absl::StatusOr<NodePtr> Build(const promql::Expr& expr, const Bounds& bounds) {
  ASSIGN_OR_RETURN(NodePtr root, Lower(expr, bounds));
  FoldConstants(root);
  MarkHistogramCounts(*root);
  MarkStepInvariant(root);
  return root;
}

}  // namespace varve::plan
