#include "query/engine/assemble.h"

#include <algorithm>

#include "query/exec/labels.h"
#include "query/exec/matrix.h"
#include "query/exec/operator.h"
#include "query/exec/repeat.h"
#include "storage/base/check.h"
#include "storage/base/strings.h"

namespace varve::engine {
namespace {

using promql::ValueType;

void AppendColumn(const exec::Column& column, const exec::Grid& grid, ResultSeries& out) {
  size_t floats = 0;
  for (const uint8_t kind : column.kinds) floats += kind == exec::kFloat ? 1 : 0;
  out.points.reserve(floats);
  for (size_t i = 0; i < column.size(); ++i) {
    if (column.kinds[i] == exec::kFloat) {
      out.points.push_back({grid.At(i), column.values[i]});
    } else if (column.kinds[i] == exec::kHistogram) {
      out.histograms.push_back({grid.At(i), column.histograms[i]});
    }
  }
}

// Names that were to go at the very end go now.
class FinalNames : public exec::Operator {
 public:
  explicit FinalNames(exec::OperatorPtr input) : input_(std::move(input)) {}
  absl::Status Open() override {
    RETURN_IF_ERROR(input_->Open());
    series_ = input_->TakeSeries();
    bool any = false;
    for (exec::SeriesInfo& one : series_) {
      any |= one.drop_name;
      if (one.drop_name) one.labels = exec::WithoutName(one.labels);
      one.drop_name = false;
    }
    distinct_ = input_->distinct() && !any;
    return absl::OkStatus();
  }
  absl::Status Next(exec::Column& out) override { return input_->Next(out); }

 private:
  exec::OperatorPtr input_;
};

absl::Status AssembleColumns(const plan::Node& root, const Query& query, const exec::Grid& grid, exec::Context& context,
                             Result& result) {
  exec::Holding holding(context);
  if (grid.steps > exec::kStepsMax) return absl::ResourceExhaustedError("query has too many steps");
  RETURN_IF_ERROR(holding.Grow(grid.steps * (sizeof(double) + 1)));
  ASSIGN_OR_RETURN(exec::OperatorPtr op, BuildOperator(root, grid, context));
  if (root.type == ValueType::kVector && context.flags().delayed_name_removal) {
    op = exec::MakeMerge(std::make_unique<FinalNames>(std::move(op)), grid.steps, false, context);
  }
  RETURN_IF_ERROR(op->Open());
  exec::Column column;
  if (root.type == ValueType::kScalar && query.instant()) {
    RETURN_IF_ERROR(op->Next(column));
    result.type = ValueType::kScalar;
    result.scalar = column.values[0];
    result.t_ms = query.start_ms;
    return absl::OkStatus();
  }
  result.type = query.instant() ? ValueType::kVector : ValueType::kMatrix;
  std::vector<exec::SeriesInfo> series = op->TakeSeries();
  for (exec::SeriesInfo& one : series) {
    RETURN_IF_ERROR(context.Tick());
    RETURN_IF_ERROR(op->Next(column));
    ResultSeries out;
    AppendColumn(column, grid, out);
    const size_t points = out.points.size() + out.histograms.size();
    if (points == 0) continue;
    RETURN_IF_ERROR(holding.Grow(points * sizeof(Point) + one.labels.bytes().size() + sizeof(ResultSeries), points));
    out.labels = std::move(one.labels);
    result.series.push_back(std::move(out));
  }
  if (!query.instant()) {
    std::sort(result.series.begin(), result.series.end(),
              [](const ResultSeries& a, const ResultSeries& b) { return a.labels < b.labels; });
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Assemble(const plan::Node& root, const Query& query, const exec::Grid& grid, exec::Context& context,
                      Result& result) {
  switch (root.type) {
    case ValueType::kString: {
      VARVE_CHECK(root.kind == plan::NodeKind::kString);
      result.type = ValueType::kString;
      result.string = root.text;
      result.t_ms = query.start_ms;
      return absl::OkStatus();
    }
    case ValueType::kMatrix: {
      result.type = ValueType::kMatrix;
      exec::Holding holding(context);
      ASSIGN_OR_RETURN(std::vector<exec::MatrixSeries> matrix, exec::ReadMatrix(root, grid, context, holding));
      for (exec::MatrixSeries& one : matrix) {
        ResultSeries out;
        out.labels = std::move(one.labels);
        for (const auto& [t_ms, value] : one.floats) out.points.push_back({t_ms, value});
        for (auto& [t_ms, histogram] : one.histograms) out.histograms.push_back({t_ms, std::move(histogram)});
        result.series.push_back(std::move(out));
      }
      return absl::OkStatus();
    }
    default:
      return AssembleColumns(root, query, grid, context, result);
  }
}

}  // namespace varve::engine
