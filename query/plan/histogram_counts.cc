// Marks the selectors whose native histograms are only asked for count, sum or average. Prometheus reads those without
// their buckets and therefore finds counter resets while it reads, which gives other reset hints than storage has;
// where hints are compared, this shows.
#include "query/plan/plan.h"

namespace varve::plan {
namespace {

void Visit(Node& node, bool counts_only) {
  if (node.kind == NodeKind::kSelector || node.kind == NodeKind::kRangeSelector) node.counts_only = counts_only;
  if (node.kind == NodeKind::kCall) {
    const std::string_view name = node.function->name;
    if (name == "histogram_count" || name == "histogram_sum" || name == "histogram_avg") {
      counts_only = true;
    } else if (name.starts_with("histogram_")) {
      counts_only = false;
    }
  } else if (node.kind == NodeKind::kBinary &&
             (node.binary->op == promql::BinaryOp::kTrimUpper || node.binary->op == promql::BinaryOp::kTrimLower)) {
    counts_only = false;
  }
  for (const NodePtr& child : node.children) Visit(*child, counts_only);
}

}  // namespace

void MarkHistogramCounts(Node& root) { Visit(root, false); }

}  // namespace varve::plan
