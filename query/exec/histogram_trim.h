#pragma once
#include "query/exec/column.h"

namespace varve::exec {

// `h </ bound` (upper) keeps what is at most `bound`, `h >/ bound` what is above it; a bucket that contains the bound
// is divided by interpolation. The sum is estimated from the buckets that are left.
HistogramPtr TrimHistogram(const HistogramPtr& h, double bound, bool upper);

}  // namespace varve::exec
