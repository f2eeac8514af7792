#pragma once
// A set of series numbers. Debian's CRoaring (0.2.66) has its class in the global namespace.
#include <roaring/roaring.hh>

namespace varve::index {

using Bitmap = ::Roaring;

}  // namespace varve::index
