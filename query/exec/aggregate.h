#pragma once
#include "query/exec/operator.h"

namespace varve::exec {

// One per family. `parameter` is null where the operator takes none.
OperatorPtr MakeAggregate(const plan::Node& node, OperatorPtr input, const Grid& grid,
                          Context& context);  // sum, avg, ...
OperatorPtr MakeSelectK(const plan::Node& node, OperatorPtr input, OperatorPtr parameter, const Grid& grid,
                        Context& context);  // topk, bottomk, limitk, limit_ratio
OperatorPtr MakeQuantile(const plan::Node& node, OperatorPtr input, OperatorPtr parameter, const Grid& grid,
                         Context& context);
OperatorPtr MakeCountValues(const plan::Node& node, OperatorPtr input, const std::string& label, const Grid& grid,
                            Context& context);

// Which group a series belongs to, numbered in order of appearance.
struct Grouping {
  std::vector<uint32_t> group_of;  // per series
  std::vector<SeriesInfo> groups;
};
Grouping GroupSeries(const std::vector<SeriesInfo>& series, const promql::Aggregate& aggregate);

}  // namespace varve::exec
