#pragma once
// A physical operator. First it says which series it has, then it streams their columns in that order. An operator is
// used once, by one consumer, on the query's thread.
#include <memory>
#include <string_view>
#include <vector>

#include "query/exec/column.h"
#include "query/exec/context.h"
#include "query/plan/plan.h"
#include "storage/base/status.h"
#include "storage/model/labels.h"

namespace varve::exec {

struct SeriesInfo {
  model::Labels labels;
  // With delayed name removal: __name__, __type__ and __unit__ are still there and go at the very end. Never set
  // otherwise.
  bool drop_name = false;
};

class Operator {
 public:
  virtual ~Operator() = default;
  // Once, before anything else. Afterwards series() is complete. A scalar is one series without labels and with a float
  // at every step.
  virtual absl::Status Open() = 0;
  const std::vector<SeriesInfo>& series() const { return series_; }
  std::vector<SeriesInfo> TakeSeries() { return std::move(series_); }  // once
  // True when it is known that no two series are equal. False says nothing.
  bool distinct() const { return distinct_; }
  // The column of the next series; called at most series().size() times. `out` is overwritten.
  virtual absl::Status Next(Column& out) = 0;

 protected:
  std::vector<SeriesInfo> series_;
  bool distinct_ = false;
};
using OperatorPtr = std::unique_ptr<Operator>;

// An operator tree over the grid. `context` must outlive it.
absl::StatusOr<OperatorPtr> BuildOperator(const plan::Node& node, const Grid& grid, Context& context);

// All remaining columns, charged to `holding`.
absl::StatusOr<std::vector<Column>> Drain(Operator& input, size_t series, size_t steps, Holding& holding,
                                          Context& context);

// The column of a scalar operator, not yet opened.
absl::StatusOr<std::vector<double>> ReadScalar(Operator& input);

// How a call is written down for the operators that implement functions.
struct CallArguments {
  const plan::Node& node;
  Grid grid;
  Context& context;
  std::string_view name() const { return node.function->name; }
  const plan::Node& argument(size_t i) const { return *node.children[i]; }
  promql::PositionRange position(size_t i) const { return node.children[i]->position; }
  size_t count() const { return node.children.size(); }
  // The operator of argument i.
  absl::StatusOr<OperatorPtr> Build(size_t i) const { return BuildOperator(*node.children[i], grid, context); }
  const std::string& Text(size_t i) const;  // of a string argument
};

}  // namespace varve::exec
