#pragma once
#include "query/exec/operator.h"

namespace varve::exec {

OperatorPtr MakeNegate(OperatorPtr input, size_t steps, bool scalar, Context& context);
OperatorPtr MakeScalarBinary(const plan::Node& node, OperatorPtr left, OperatorPtr right);
// Exactly one side is a scalar.
OperatorPtr MakeVectorScalar(const plan::Node& node, OperatorPtr left, OperatorPtr right, const Grid& grid,
                             Context& context);
OperatorPtr MakeVectorVector(const plan::Node& node, OperatorPtr left, OperatorPtr right, const Grid& grid,
                             Context& context);
OperatorPtr MakeSetOperator(const plan::Node& node, OperatorPtr left, OperatorPtr right, const Grid& grid,
                            Context& context);

// a op b for numbers; a comparison gives 1 or 0.
double Calculate(promql::BinaryOp op, double a, double b);
// Arithmetic changes what a metric means, so its name goes.
bool DropsName(promql::BinaryOp op);

// One operand or result of an operator between vector elements.
struct Element {
  double value = 0;
  HistogramPtr histogram;  // null: a float
};
// What `a op b` gives: `keep` is the truth of a comparison; false with `valid` for other operators never.
struct ElementResult {
  Element element;
  bool keep = true;
  bool valid = true;  // false: the types do not go together; an annotation was made
};
ElementResult ApplyElement(promql::BinaryOp op, const Element& a, const Element& b, promql::PositionRange position,
                           Context& context);

inline Element At(const Column& column, size_t i) {
  return column.kinds[i] == kHistogram ? Element{0, column.histograms[i]} : Element{column.values[i], nullptr};
}
inline void Set(Column& column, size_t i, Element element) {
  if (element.histogram != nullptr) {
    column.SetHistogram(i, std::move(element.histogram));
  } else {
    column.SetFloat(i, element.value);
  }
}

}  // namespace varve::exec
