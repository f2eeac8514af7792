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
    const uint32_t i = (ref & kIndexMask) - 1;
    return classes_[ref >> 30].pages[i >> kPageBits].words.get() +
           (static_cast<size_t>(i & kPageMask) << (2 + (ref >> 30)));
  }
  const uint64_t* At(Ref ref) const { return const_cast<Slab*>(this)->At(ref); }

  Ref Allocate(uint32_t words) {  // at least `words`, at most kWordsMax
    const uint32_t k = words <= 4 ? 0 : words <= 8 ? 1 : words <= 16 ? 2 : 3;
    Class& c = classes_[k];
    if (c.with_room.empty()) AddPage(k);
    const uint32_t number = c.with_room.back();
    Page& page = c.pages[number];
    uint32_t within;
    if (page.free != 0) {
      within = page.free - 1;
      page.free = static_cast<uint32_t>(page.words[static_cast<size_t>(within) << (2 + k)]);
    } else {
      within = page.fresh++;
    }
    if (++page.live == kPageSize) c.with_room.pop_back();
    used_words_ += 4u << k;
    return k << 30 | ((number << kPageBits | within) + 1);
  }
  void Free(Ref ref) {
    const uint32_t k = ref >> 30;
    Class& c = classes_[k];
    const uint32_t i = (ref & kIndexMask) - 1;
    const uint32_t number = i >> kPageBits;
    Page& page = c.pages[number];
    page.words[static_cast<size_t>(i & kPageMask) << (2 + k)] = page.free;
    page.free = (i & kPageMask) + 1;
    used_words_ -= Words(ref);
    if (page.live-- == kPageSize) c.with_room.push_back(number);
    if (page.live == 0) DropPage(k, number);
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
  static constexpr uint32_t kPageBits = 8, kPageSize = 1u << kPageBits, kPageMask = kPageSize - 1,
                            kIndexMask = (1u << 30) - 1;
  // Series of one target fill and empty their tails together, so arrays that were taken one after the other are given
  // back together, and whole pages with them.
  struct Page {
    std::unique_ptr<uint64_t[]> words;  // null: no memory
    uint32_t free = 0;                  // first free array + 1; each holds the next in its first word
    uint32_t fresh = 0;                 // arrays from here on were never used
    uint32_t live = 0;
  };
  struct Class {
    std::vector<Page> pages;
    std::vector<uint32_t> with_room;  // pages with memory and room
    std::vector<uint32_t> without_memory;
  };

  void AddPage(uint32_t k) {
    Class& c = classes_[k];
    if (c.without_memory.empty()) {
      VARVE_CHECK(c.pages.size() < kIndexMask >> kPageBits);
      c.without_memory.push_back(static_cast<uint32_t>(c.pages.size()));
      c.pages.emplace_back();
    }
    const uint32_t number = c.without_memory.back();
    c.without_memory.pop_back();
    c.pages[number] = Page();
    c.pages[number].words = std::make_unique_for_overwrite<uint64_t[]>(size_t{4} << (k + kPageBits));
    held_words_ += size_t{4} << (k + kPageBits);
    c.with_room.push_back(number);
  }
  void DropPage(uint32_t k, uint32_t number) {
    Class& c = classes_[k];
    if (c.with_room.size() == 1) return;  // somebody will want it soon
    // Mostly it is among the last that got room.
    for (size_t i = c.with_room.size(); i-- > 0;) {
      if (c.with_room[i] != number) continue;
      c.with_room.erase(c.with_room.begin() + static_cast<ptrdiff_t>(i));
      break;
    }
    c.pages[number] = Page();
    c.without_memory.push_back(number);
    held_words_ -= size_t{4} << (k + kPageBits);
  }

  std::array<Class, 4> classes_;
  size_t held_words_ = 0, used_words_ = 0;
};

}  // namespace varve::head
