// From the logical plan to operators: the only place that knows all of them.
#include "query/exec/aggregate.h"
#include "query/exec/binary.h"
#include "query/exec/functions.h"
#include "query/exec/range_kernels.h"
#include "query/exec/range_source.h"
#include "query/exec/repeat.h"
#include "query/exec/selector.h"
#include "storage/base/check.h"
#include "storage/base/strings.h"

namespace varve::exec {
namespace {

using plan::NodeKind;

absl::Status CheckExtension(const plan::Node& range, std::string_view function) {
  const auto refuse = [&](std::string_view modifier, std::string_view allowed) {
    return ExecutionError(
        base::StrCat(modifier, " modifier can only be used with: ", allowed, " - not with ", function));
  };
  const bool rate = function == "rate" || function == "increase" || function == "delta";
  if (range.anchored && !rate && function != "changes" && function != "resets") {
    return refuse("anchored", "changes, delta, increase, rate, resets");
  }
  if (range.smoothed && !rate) return refuse("smoothed", "delta, increase, rate");
  return absl::OkStatus();
}

absl::StatusOr<OperatorPtr> BuildRangeCall(const CallArguments& call, const RangeFunction& function) {
  std::unique_ptr<RangeSource> source;
  std::vector<OperatorPtr> parameters;
  for (size_t i = 0; i < call.count(); ++i) {
    const plan::Node& argument = call.argument(i);
    if (argument.type != promql::ValueType::kMatrix) {
      ASSIGN_OR_RETURN(OperatorPtr parameter, call.Build(i));
      parameters.push_back(std::move(parameter));
      continue;
    }
    RETURN_IF_ERROR(CheckExtension(argument, function.name));
    const int64_t before = argument.anchored || argument.smoothed ? call.context.lookback_ms() : 0;
    const int64_t after = argument.smoothed ? call.context.lookback_ms() : 0;
    ASSIGN_OR_RETURN(source, MakeRangeSource(argument, call.grid, call.context, before, after));
  }
  OperatorPtr result = MakeRangeFunction(call, function, std::move(source), std::move(parameters));
  return MakeMerge(std::move(result), call.grid.steps, true, call.context);
}

absl::StatusOr<OperatorPtr> BuildCall(const CallArguments& call) {
  if (call.name() == "absent" || call.name() == "absent_over_time") return MakeAbsent(call);
  if (const RangeFunction* function = FindRangeFunction(call.name()); function != nullptr) {
    return BuildRangeCall(call, *function);
  }
  OperatorPtr result;
  if (call.name() == "info") {
    ASSIGN_OR_RETURN(result, MakeInfo(call));
    return MakeMerge(std::move(result), call.grid.steps, false, call.context);
  }
  for (const auto make :
       {MakeMathFunction, MakeTimeFunction, MakeLabelFunction, MakeSortFunction, MakeHistogramFunction}) {
    ASSIGN_OR_RETURN(result, make(call));
    if (result != nullptr) break;
  }
  if (result == nullptr) return absl::InternalError(base::StrCat("no operator for function ", call.name()));
  if (call.node.type == promql::ValueType::kScalar) return result;
  return MakeMerge(std::move(result), call.grid.steps, false, call.context);
}

absl::StatusOr<OperatorPtr> BuildBinary(const plan::Node& node, const Grid& grid, Context& context) {
  ASSIGN_OR_RETURN(OperatorPtr left, BuildOperator(*node.children[0], grid, context));
  ASSIGN_OR_RETURN(OperatorPtr right, BuildOperator(*node.children[1], grid, context));
  const bool left_scalar = node.children[0]->type == promql::ValueType::kScalar;
  const bool right_scalar = node.children[1]->type == promql::ValueType::kScalar;
  if (left_scalar && right_scalar) return MakeScalarBinary(node, std::move(left), std::move(right));
  OperatorPtr result;
  if (left_scalar || right_scalar) {
    result = MakeVectorScalar(node, std::move(left), std::move(right), grid, context);
  } else if (promql::IsSetOperator(node.binary->op)) {
    result = MakeSetOperator(node, std::move(left), std::move(right), grid, context);
  } else {
    result = MakeVectorVector(node, std::move(left), std::move(right), grid, context);
  }
  return MakeMerge(std::move(result), grid.steps, false, context);
}

absl::StatusOr<OperatorPtr> BuildAggregate(const plan::Node& node, const Grid& grid, Context& context) {
  using promql::AggregateOp;
  ASSIGN_OR_RETURN(OperatorPtr input, BuildOperator(*node.children[0], grid, context));
  const AggregateOp op = node.aggregate->op;
  if (op == AggregateOp::kCountValues) {
    return MakeCountValues(node, std::move(input), node.children[1]->text, grid, context);
  }
  OperatorPtr parameter;
  if (node.children.size() > 1) {
    ASSIGN_OR_RETURN(parameter, BuildOperator(*node.children[1], grid, context));
  }
  switch (op) {
    case AggregateOp::kTopK:
    case AggregateOp::kBottomK:
    case AggregateOp::kLimitK:
    case AggregateOp::kLimitRatio:
      return MakeSelectK(node, std::move(input), std::move(parameter), grid, context);
    case AggregateOp::kQuantile:
      return MakeQuantile(node, std::move(input), std::move(parameter), grid, context);
    default:
      return MakeAggregate(node, std::move(input), grid, context);
  }
}

}  // namespace

const std::string& CallArguments::Text(size_t i) const {
  const plan::Node* argument = node.children[i].get();
  VARVE_CHECK(argument->kind == NodeKind::kString);
  return argument->text;
}

absl::StatusOr<OperatorPtr> BuildOperator(const plan::Node& node, const Grid& grid, Context& context) {
  switch (node.kind) {
    case NodeKind::kNumber:
      return MakeScalar(node.number, grid.steps);
    case NodeKind::kSelector:
      return MakeSelector(node, grid, context);
    case NodeKind::kNegate: {
      ASSIGN_OR_RETURN(OperatorPtr input, BuildOperator(*node.children[0], grid, context));
      const bool scalar = node.type == promql::ValueType::kScalar;
      OperatorPtr negate = MakeNegate(std::move(input), grid.steps, scalar, context);
      return scalar ? std::move(negate) : MakeMerge(std::move(negate), grid.steps, true, context);
    }
    case NodeKind::kBinary:
      return BuildBinary(node, grid, context);
    case NodeKind::kAggregate:
      return BuildAggregate(node, grid, context);
    case NodeKind::kCall:
      return BuildCall({node, grid, context});
    case NodeKind::kStepInvariant: {
      if (grid.steps == 1) return BuildOperator(*node.children[0], grid, context);
      ASSIGN_OR_RETURN(OperatorPtr once,
                       BuildOperator(*node.children[0], Grid{grid.start_ms, grid.step_ms, 1}, context));
      return MakeRepeat(std::move(once), grid.steps);
    }
    case NodeKind::kString:
    case NodeKind::kRangeSelector:
    case NodeKind::kSubquery:
      break;
  }
  return absl::InternalError("a range or a string stands where a vector or a scalar is expected");
}

}  // namespace varve::exec
