#pragma once
// Small arrays of 64-bit words in four sizes, named by 32 bits: what tails and time columns keep their numbers in. An
// allocator per array would cost as much as the arrays.
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "storage/base/check.h"

namespace varve::head {

// One thread. Addresses are stable until freed.
class Slab {
 public:
  using Ref = uint32_t;  // class in the upper two bits, index + 1 in the others
  static constexpr Ref kNone = 0;
  static constexpr uint32_t kWordsMax = 32;

  static uint32_t Words(Ref ref) { return 4u << (ref >> 30); }
  uint64_t* At(Ref ref) {
    const Class& c = classes_[ref >> 30];
    const uint32_t i = (ref & kIndexMask) - 1;
    return c.pages[i >> kPageBits].get() + (static_cast<size_t>(i & kPageMask) << (2 + (ref >> 30)));
  }
  const uint64_t* At(Ref ref) const { return const_cast<Slab*>(this)->At(ref); }

  Ref Allocate(uint32_t words) {  // at least `words`, at most kWordsMax
    const uint32_t k = words <= 4 ? 0 : words <= 8 ? 1 : words <= 16 ? 2 : 3;
    Class& c = classes_[k];
    if (c.free != 0) {
      const Ref ref = k << 30 | c.free;
      c.free = static_cast<uint32_t>(*At(ref));
      used_words_ += Words(ref);
      return ref;
    }
    if ((c.count & kPageMask) == 0) {
      c.pages.push_back(std::make_unique_for_overwrite<uint64_t[]>(size_t{4} << (k + kPageBits)));
      held_words_ += size_t{4} << (k + kPageBits);
    }
    VARVE_CHECK(c.count < kIndexMask);
    const Ref ref = k << 30 | ++c.count;
    used_words_ += Words(ref);
    return ref;
  }
  void Free(Ref ref) {
    Class& c = classes_[ref >> 30];
    used_words_ -= Words(ref);
    *At(ref) = c.free;
    c.free = ref & kIndexMask;
  }
  // A bigger array with the first `words` words of `ref`, which is freed.
  Ref Grow(Ref ref, uint32_t words) {
    const Ref bigger = Allocate(words + 1);
    const uint64_t* from = At(ref);
    uint64_t* to = At(bigger);
    for (uint32_t i = 0; i < words; ++i) to[i] = from[i];
    Free(ref);
    return bigger;
  }
  size_t bytes() const { return held_words_ * 8; }
  size_t used_bytes() const { return used_words_ * 8; }

 private:
  static constexpr uint32_t kPageBits = 10, kPageMask = (1u << kPageBits) - 1, kIndexMask = (1u << 30) - 1;
  struct Class {
    std::vector<std::unique_ptr<uint64_t[]>> pages;
    uint32_t count = 0;  // arrays ever handed out
    uint32_t free = 0;   // first of the free ones (index + 1); each holds the next in its first word
  };
  std::array<Class, 4> classes_;
  size_t held_words_ = 0, used_words_ = 0;
};

}  // namespace varve::head
