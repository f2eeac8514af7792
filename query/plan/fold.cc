// Arithmetic between literals is done once, here.
#include <cmath>

#include "query/plan/plan.h"

namespace varve::plan {
namespace {

double Apply(promql::BinaryOp op, double a, double b) {
  using promql::BinaryOp;
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      return a / b;
    default:
      return 0;
  }
}

// Only operators whose result does not depend on a mathematical library, so that folding never changes a bit.
bool IsFoldable(promql::BinaryOp op) {
  return op == promql::BinaryOp::kAdd || op == promql::BinaryOp::kSub || op == promql::BinaryOp::kMul ||
         op == promql::BinaryOp::kDiv;
}

}  // namespace

void FoldConstants(NodePtr& node) {
  for (NodePtr& child : node->children) FoldConstants(child);
  double value = 0;
  if (node->kind == NodeKind::kNegate && node->children[0]->kind == NodeKind::kNumber) {
    value = -node->children[0]->number;
  } else if (node->kind == NodeKind::kBinary && IsFoldable(node->binary->op) &&
             node->children[0]->kind == NodeKind::kNumber && node->children[1]->kind == NodeKind::kNumber) {
    value = Apply(node->binary->op, node->children[0]->number, node->children[1]->number);
  } else {
    return;
  }
  auto number = std::make_unique<Node>();
  number->kind = NodeKind::kNumber;
  number->type = promql::ValueType::kScalar;
  number->position = node->position;
  number->number = value;
  node = std::move(number);
}

}  // namespace varve::plan
