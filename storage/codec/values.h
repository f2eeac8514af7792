#pragma once
// What the other columns need of the value column: to read it from within their own bytes.
#include <span>

#include "storage/base/bytes.h"
#include "storage/codec/kernels.h"

namespace varve::codec {

// Takes exactly out.size() values. False: malformed.
bool TakeValues(base::ByteReader& reader, std::span<double> out, const Kernels& kernels = BestKernels());

}  // namespace varve::codec
