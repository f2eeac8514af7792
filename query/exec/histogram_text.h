#pragma once
#include <string>

#include "storage/model/histogram.h"

namespace varve::exec {

// As count_values labels it: {count:3, sum:4.5, [-1,-0.5):1, [-0.001,0.001]:0, (0.5,1]:2}.
std::string HistogramText(const model::Histogram& h);

}  // namespace varve::exec
