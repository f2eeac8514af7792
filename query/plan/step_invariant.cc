// Finds the largest parts of the plan that have the same value at every step, because every selector below is pinned by
// `@`, and puts a kStepInvariant node above each.
#include <algorithm>
#include <array>
#include <string_view>

#include "query/plan/plan.h"

namespace varve::plan {
namespace {

// These read the time of the step itself.
bool DependsOnStep(const Node& node) {
  static constexpr std::array<std::string_view, 11> kClocked = {
      "days_in_month", "day_of_month", "day_of_week", "day_of_year",    "hour",     "minute",
      "month",         "year",         "time",        "predict_linear", "timestamp"};
  return std::find(kClocked.begin(), kClocked.end(), node.function->name) != kClocked.end();
}

void Wrap(NodePtr& node) {
  if (node->kind == NodeKind::kNumber || node->kind == NodeKind::kString || node->kind == NodeKind::kRangeSelector ||
      node->kind == NodeKind::kSubquery || node->kind == NodeKind::kStepInvariant) {
    return;  // cheap already, or a range, which repeats its own window
  }
  auto wrapper = std::make_unique<Node>();
  wrapper->kind = NodeKind::kStepInvariant;
  wrapper->type = node->type;
  wrapper->position = node->position;
  wrapper->children.push_back(std::move(node));
  node = std::move(wrapper);
}

// True when `node` has one value for all steps; then the caller decides where to wrap. Otherwise what is invariant
// below has been wrapped.
bool Visit(NodePtr& node) {
  switch (node->kind) {
    case NodeKind::kNumber:
    case NodeKind::kString:
      return true;
    case NodeKind::kSelector:
    case NodeKind::kRangeSelector:
      return node->at_ms.has_value();
    case NodeKind::kSubquery:
      // The inner expression runs on a grid of its own.
      if (Visit(node->children[0])) Wrap(node->children[0]);
      return node->at_ms.has_value();
    case NodeKind::kStepInvariant:
      return true;
    default:
      break;
  }
  std::vector<bool> invariant;
  for (NodePtr& child : node->children) invariant.push_back(Visit(child));
  const bool all = std::all_of(invariant.begin(), invariant.end(), [](bool b) { return b; });
  if (all && !(node->kind == NodeKind::kCall && DependsOnStep(*node))) return true;
  for (size_t i = 0; i < invariant.size(); ++i) {
    if (invariant[i]) Wrap(node->children[i]);
  }
  return false;
}

}  // namespace

void MarkStepInvariant(NodePtr& root) {
  if (Visit(root)) Wrap(root);
}

}  // namespace varve::plan
