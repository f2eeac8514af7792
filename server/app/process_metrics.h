#pragma once
#include "storage/base/clock.h"
#include "storage/base/metrics.h"

namespace varve::app {

// Memory, CPU time, files, threads and start time of this process, read from /proc when the page is asked for.
void AddProcessMetrics(const base::Clock& clock, base::Registry& registry);

}  // namespace varve::app
