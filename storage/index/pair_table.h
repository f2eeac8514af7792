#pragma once
// From the bytes of a label to its id. Open addressing with linear probing; an entry carries 32 bits of the hash, so
// that growing and deleting touch no text and a miss seldom does.
#include <bit>
#include <cstdint>
#include <vector>

#include "storage/index/index.h"

namespace varve::index {

class PairTable {
 public:
  static constexpr PairId kNone = UINT32_MAX;

  // `is(id)` tells whether the text of an entry is the one looked for.
  template <class Is>
  PairId Find(uint32_t hash, Is&& is) const {
    if (entries_.empty()) return kNone;
    for (size_t i = hash & mask_; entries_[i].id != kNone; i = (i + 1) & mask_) {
      if (entries_[i].hash == hash && is(entries_[i].id)) return entries_[i].id;
    }
    return kNone;
  }
  void Insert(uint32_t hash, PairId id) {  // must not be there
    if ((size_ + 1) * 8 > entries_.size() * 5) Grow();
    Place({hash, id});
    ++size_;
  }
  void Erase(uint32_t hash, PairId id) {  // must be there
    size_t hole = hash & mask_;
    while (entries_[hole].id != id) hole = (hole + 1) & mask_;
    // Pull back what probed past the hole.
    for (size_t i = (hole + 1) & mask_; entries_[i].id != kNone; i = (i + 1) & mask_) {
      const size_t home = entries_[i].hash & mask_;
      if (((i - home) & mask_) < ((i - hole) & mask_)) continue;
      entries_[hole] = entries_[i];
      hole = i;
    }
    entries_[hole] = {0, kNone};
    --size_;
  }
  size_t size() const { return size_; }
  size_t bytes() const { return entries_.capacity() * sizeof(Entry); }

 private:
  struct Entry {
    uint32_t hash;
    PairId id;
  };
  void Place(Entry entry) {
    size_t i = entry.hash & mask_;
    while (entries_[i].id != kNone) i = (i + 1) & mask_;
    entries_[i] = entry;
  }
  void Grow() {
    std::vector<Entry> old = std::move(entries_);
    entries_.assign(old.empty() ? 256 : old.size() * 2, Entry{0, kNone});
    mask_ = entries_.size() - 1;
    for (const Entry entry : old) {
      if (entry.id != kNone) Place(entry);
    }
  }

  std::vector<Entry> entries_;
  size_t mask_ = 0, size_ = 0;
};

}  // namespace varve::index
