#pragma once
#include "query/exec/operator.h"

namespace varve::exec {

// `input` has one step; its values are given at every step of `steps`.
OperatorPtr MakeRepeat(OperatorPtr input, size_t steps);

// Series that have become equal are one, as long as no step has two of them; else an execution error. With `strict`,
// two that both have any value at all are an error. Passes everything through when no two series are equal.
OperatorPtr MakeMerge(OperatorPtr input, size_t steps, bool strict, Context& context);

OperatorPtr MakeScalar(double value, size_t steps);
// One series without labels, with the given values.
OperatorPtr MakeScalar(std::vector<double> values);

inline constexpr std::string_view kSameLabelset = "vector contains metrics with the same labelset";

}  // namespace varve::exec
