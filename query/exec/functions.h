#pragma once
// Functions over instant vectors and scalars; each Make... is called with the call and builds its own inputs.
#include "query/exec/operator.h"

namespace varve::exec {

absl::StatusOr<OperatorPtr> MakeMathFunction(const CallArguments& call);       // null when the name is not one
absl::StatusOr<OperatorPtr> MakeTimeFunction(const CallArguments& call);       // likewise
absl::StatusOr<OperatorPtr> MakeLabelFunction(const CallArguments& call);      // likewise: label_replace, label_join
absl::StatusOr<OperatorPtr> MakeSortFunction(const CallArguments& call);       // likewise
absl::StatusOr<OperatorPtr> MakeHistogramFunction(const CallArguments& call);  // likewise
absl::StatusOr<OperatorPtr> MakeAbsent(const CallArguments& call);             // absent, absent_over_time
absl::StatusOr<OperatorPtr> MakeInfo(const CallArguments& call);

}  // namespace varve::exec
