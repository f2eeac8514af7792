#pragma once
#include <compare>
#include <cstdint>
#include <string>

#include "storage/base/strings.h"

namespace varve::wal {

// A place in a log. Ordered as the records were written; segments count from 1, so that Position() is before
// everything. A state that was captured at `Writer::position()` contains exactly the records whose `begin` is before
// it.
struct Position {
  uint64_t segment = 0;
  uint64_t offset = 0;  // bytes from the start of the segment's file
  auto operator<=>(const Position&) const = default;
  std::string ToString() const { return base::StrCat(segment, ":", offset); }
};

}  // namespace varve::wal
