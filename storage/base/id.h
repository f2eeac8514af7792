#pragma once
// Integers that do not compile in each other's place.
#include <compare>
#include <cstdint>
#include <utility>

namespace varve::base {

template <class Tag, class Int = uint32_t>
struct Id {
  Int value = 0;
  constexpr Id() = default;
  constexpr explicit Id(Int v) : value(v) {}
  auto operator<=>(const Id&) const = default;
  template <class H>
  friend H AbslHashValue(H h, Id id) {
    return H::combine(std::move(h), id.value);
  }
};

}  // namespace varve::base
