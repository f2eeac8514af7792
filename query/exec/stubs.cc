#include "query/exec/functions.h"
#include "query/exec/histogram_text.h"
#include "query/exec/histogram_trim.h"
namespace varve::exec {
std::string HistogramText(const model::Histogram&) { return ""; }
HistogramPtr TrimHistogram(const HistogramPtr& h, double, bool) { return h; }
absl::StatusOr<OperatorPtr> MakeHistogramFunction(const CallArguments&) { return OperatorPtr(); }
absl::StatusOr<OperatorPtr> MakeInfo(const CallArguments& call) { return call.Build(0); }
}  // namespace varve::exec
