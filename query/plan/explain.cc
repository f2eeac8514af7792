#include "query/plan/plan.h"
#include "storage/base/strings.h"

namespace varve::plan {
namespace {

void Selector(const Node& node, std::string& out) {
  out += '{';
  for (size_t i = 0; i < node.matchers.size(); ++i) {
    base::StrAppend(out, i == 0 ? "" : ",", node.matchers[i].ToString());
  }
  out += '}';
}

void Window(const Node& node, std::string& out) {
  if (node.range_ms != 0) base::StrAppend(out, " range=", node.range_ms, "ms");
  if (node.subquery_step_ms != 0) base::StrAppend(out, " step=", node.subquery_step_ms, "ms");
  if (node.offset_ms != 0) base::StrAppend(out, " offset=", node.offset_ms, "ms");
  if (node.at_ms.has_value()) base::StrAppend(out, " at=", *node.at_ms, "ms");
  if (node.anchored) out += " anchored";
  if (node.smoothed) out += " smoothed";
}

void Line(const Node& node, std::string& out) {
  switch (node.kind) {
    case NodeKind::kNumber:
      base::StrAppend(out, "number ", node.number);
      return;
    case NodeKind::kString:
      base::StrAppend(out, "string ", base::QuoteGo(node.text));
      return;
    case NodeKind::kSelector:
      out += "select ";
      Selector(node, out);
      return Window(node, out);
    case NodeKind::kRangeSelector:
      out += "select range ";
      Selector(node, out);
      return Window(node, out);
    case NodeKind::kSubquery:
      out += "subquery";
      return Window(node, out);
    case NodeKind::kNegate:
      out += "negate";
      return;
    case NodeKind::kBinary: {
      base::StrAppend(out, "binary ", promql::ToString(node.binary->op), node.binary->return_bool ? " bool" : "");
      if (const promql::VectorMatching* matching = node.binary->matching.get(); matching != nullptr) {
        base::StrAppend(out, matching->on ? " on (" : " ignoring (", base::StrJoin(matching->labels, ","), ")");
      }
      return;
    }
    case NodeKind::kAggregate:
      base::StrAppend(out, "aggregate ", promql::ToString(node.aggregate->op),
                      node.aggregate->without ? " without (" : " by (", base::StrJoin(node.aggregate->grouping, ","),
                      ")");
      return;
    case NodeKind::kCall:
      base::StrAppend(out, "call ", node.function->name);
      return;
    case NodeKind::kStepInvariant:
      out += "once";
      return;
  }
}

void Walk(const Node& node, int depth, std::string& out) {
  out.append(static_cast<size_t>(depth) * 2, ' ');
  Line(node, out);
  out += '\n';
  for (const NodePtr& child : node.children) Walk(*child, depth + 1, out);
}

}  // namespace

std::string Explain(const Node& node) {
  std::string out;
  Walk(node, 0, out);
  return out;
}

}  // namespace varve::plan
