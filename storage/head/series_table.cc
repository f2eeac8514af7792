#include "storage/head/series_table.h"

#include <algorithm>
#include <bit>

#include "storage/base/check.h"

namespace varve::head {

SeriesTable::SeriesTable() : table_(16, Entry{0, kNoSlot}), mask_(15) {}

uint32_t SeriesTable::Find(model::SeriesHash hash) const {
  const uint32_t fingerprint = Fingerprint(hash);
  for (size_t i = fingerprint & mask_;; i = (i + 1) & mask_) {
    const Entry& e = table_[i];
    if (e.slot == kNoSlot) return kNoSlot;
    if (e.fingerprint == fingerprint && e.slot != kRemoved && at(e.slot).hash == hash) return e.slot;
  }
}

void SeriesTable::FindMany(const model::SeriesHash* const* hashes, size_t n, uint32_t* slots) const {
  for (size_t i = 0; i < n; ++i) __builtin_prefetch(&table_[Fingerprint(*hashes[i]) & mask_]);
  for (size_t i = 0; i < n; ++i) {  // the likely slot: the first with this fingerprint
    const uint32_t fingerprint = Fingerprint(*hashes[i]);
    size_t at_entry = fingerprint & mask_;
    while (table_[at_entry].slot != kNoSlot &&
           (table_[at_entry].fingerprint != fingerprint || table_[at_entry].slot == kRemoved)) {
      at_entry = (at_entry + 1) & mask_;
    }
    slots[i] = table_[at_entry].slot;
    if (slots[i] != kNoSlot) __builtin_prefetch(&at(slots[i]));
  }
  for (size_t i = 0; i < n; ++i) {
    if (slots[i] != kNoSlot && at(slots[i]).hash != *hashes[i]) slots[i] = Find(*hashes[i]);
  }
}

uint32_t SeriesTable::Add(model::SeriesHash hash) {
  uint32_t slot;
  if (!free_.empty()) {
    slot = free_.back();
    free_.pop_back();
  } else {
    slot = slot_end_;
    EnsureSlots(slot + 1);
  }
  AddAt(slot, at(slot).generation, hash);
  return slot;
}

void SeriesTable::AddAt(uint32_t slot, uint32_t generation, model::SeriesHash hash) {
  EnsureSlots(slot + 1);
  Series& s = at(slot);
  VARVE_CHECK(!s.live());
  s = Series();
  s.hash = hash;
  s.generation = generation;
  s.flags = kLive;
  Index(slot);
}

void SeriesTable::Index(uint32_t slot) {
  if ((used_ + 1) * 4 > table_.size() * 3) Rehash(static_cast<size_t>(live_) + 1);
  Insert(Fingerprint(at(slot).hash), slot);
  ++live_;
}

void SeriesTable::IndexMany(std::span<const uint32_t> slots) {
  Reserve(live_ + slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    if (i + 16 < slots.size()) __builtin_prefetch(&table_[Fingerprint(at(slots[i + 16]).hash) & mask_], 1);
    Index(slots[i]);
  }
}

void SeriesTable::Insert(uint32_t fingerprint, uint32_t slot) {
  size_t i = fingerprint & mask_;
  while (table_[i].slot != kNoSlot && table_[i].slot != kRemoved) i = (i + 1) & mask_;
  if (table_[i].slot == kNoSlot) ++used_;
  table_[i] = {fingerprint, slot};
}

void SeriesTable::Rehash(size_t series) {
  // At most half full after growing. The fingerprint is all that is needed, so series are not touched.
  const size_t size = std::bit_ceil(std::max<size_t>(16, series * 2));
  std::vector<Entry> old(size, Entry{0, kNoSlot});
  old.swap(table_);
  mask_ = size - 1;
  used_ = 0;
  for (const Entry& e : old) {
    if (e.slot < kRemoved) Insert(e.fingerprint, e.slot);
  }
}

void SeriesTable::Reserve(size_t series) {
  if (series * 4 > table_.size() * 3) Rehash(series);
}

void SeriesTable::Remove(uint32_t slot) {
  Series& s = at(slot);
  VARVE_CHECK(s.live());
  size_t i = Fingerprint(s.hash) & mask_;
  while (table_[i].slot != slot) i = (i + 1) & mask_;
  table_[i].slot = kRemoved;
  const uint32_t generation = s.generation + 1;
  s = Series();
  s.generation = generation;
  free_.push_back(slot);
  --live_;
}

void SeriesTable::EnsureSlots(uint32_t end) {
  while (pages_.size() << kPageBits < end) pages_.push_back(std::make_unique<Series[]>(size_t{1} << kPageBits));
  slot_end_ = std::max(slot_end_, end);
}

void SeriesTable::RebuildFree() {
  free_.clear();
  for (uint32_t slot = slot_end_; slot-- > 0;) {  // the lowest is taken first
    if (!at(slot).live()) free_.push_back(slot);
  }
}

size_t SeriesTable::bytes() const {
  return pages_.size() * (sizeof(Series) << kPageBits) + table_.capacity() * sizeof(Entry) + free_.capacity() * 4;
}

}  // namespace varve::head
