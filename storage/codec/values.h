#pragma once
// What the other columns need of the value column: to read it from within their own bytes.
#include <span>
#include <string>

#include "storage/base/bytes.h"
#include "storage/codec/kernels.h"

namespace varve::codec {

// Appends, as EncodeValues does.
void PutValues(std::span<const double> values, std::string& out, const Kernels& kernels = BestKernels());
// Takes exactly out.size() values. False: malformed.
bool TakeValues(base::ByteReader& reader, std::span<double> out, const Kernels& kernels = BestKernels());

}  // namespace varve::codec
