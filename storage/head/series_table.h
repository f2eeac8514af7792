#pragma once
// The series of a head: one cache line each, in slots, and the way from a label set's hash to its slot.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "storage/head/slab.h"
#include "storage/model/labels.h"

namespace varve::head {

inline constexpr int64_t kNoTime = INT64_MIN;

enum SeriesFlag : uint16_t {
  kLive = 1 << 0,
  kHistogramTail = 1 << 1,  // the tail's values are in the side map of histograms
  kStartTimes = 1 << 2,     // the tail has start times, in their side map
  kSide = 1 << 3,           // has a side buffer of out-of-order samples
  kStale = 1 << 4,          // the newest sample is a staleness marker
  kStaged = 1 << 5,         // the step that is being staged has samples for it
  kLastHistogram = 1 << 6,  // the newest in-order sample is a histogram
};

// Value-initialised, a free slot. Written to checkpoints as it is: FORMAT.md.
struct Series {
  model::SeriesHash hash;
  int64_t last_t = kNoTime;        // newest in-order sample; kNoTime: there was none
  uint64_t last_bits = 0;          // its value; of a histogram its sum
  uint64_t chain = 0;              // newest sealed chunk
  uint32_t column = 0;             // of the tail, while mask != 0
  uint32_t mask = 0;               // positions of the column that the tail has
  Slab::Ref buffer = Slab::kNone;  // values in mask order; none while all of them have last_bits
  uint32_t generation = 0;         // how many series had this slot before
  uint32_t arrival_s = 0;          // when it last got a sample, wall clock
  uint16_t flags = 0;
  uint8_t joined = 0;  // first position of the tail in its column
  uint8_t spare = 0;

  bool live() const { return (flags & kLive) != 0; }
  bool has(SeriesFlag f) const { return (flags & f) != 0; }
  void set(SeriesFlag f, bool on) { flags = static_cast<uint16_t>(on ? flags | f : flags & ~f); }
};
static_assert(sizeof(Series) == 64 && std::is_trivially_copyable_v<Series>);

// One thread. Slots are dense from 0; addresses of series are stable.
class SeriesTable {
 public:
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  static uint64_t IdOf(uint32_t slot, uint32_t generation) { return static_cast<uint64_t>(generation) << 32 | slot; }
  static uint32_t SlotOf(uint64_t id) { return static_cast<uint32_t>(id); }
  static uint32_t GenerationOf(uint64_t id) { return static_cast<uint32_t>(id >> 32); }

  SeriesTable();
  Series& at(uint32_t slot) { return pages_[slot >> kPageBits][slot & kPageMask]; }
  const Series& at(uint32_t slot) const { return pages_[slot >> kPageBits][slot & kPageMask]; }
  uint64_t IdAt(uint32_t slot) const { return IdOf(slot, at(slot).generation); }
  uint32_t slot_end() const { return slot_end_; }  // every slot is below
  uint32_t live() const { return live_; }

  uint32_t Find(model::SeriesHash hash) const;
  // Slots of many, kNoSlot for those that are not there; hides the cache misses of one behind the others.
  void FindMany(const model::SeriesHash* const* hashes, size_t n, uint32_t* slots) const;
  // A live series with this hash, which must not be there, in a free slot.
  uint32_t Add(model::SeriesHash hash);
  // The same in a given slot, which must be free, as generation `generation`. For restarts.
  void AddAt(uint32_t slot, uint32_t generation, model::SeriesHash hash);
  // Frees the slot; whoever comes next there is the next generation.
  void Remove(uint32_t slot);
  // For restarts: slots below `end` exist, free ones among them are found by the next Add after RebuildFree.
  void EnsureSlots(uint32_t end);
  void RebuildFree();
  void Reserve(size_t series);
  // Makes series that were copied into their slots findable.
  void Index(uint32_t slot);
  void IndexMany(std::span<const uint32_t> slots);
  void PrefetchSeries(uint32_t slot) const { __builtin_prefetch(&at(slot)); }

  size_t bytes() const;

 private:
  struct Entry {
    uint32_t fingerprint;
    uint32_t slot;  // kNoSlot: never used; kRemoved: used once
  };
  static constexpr uint32_t kRemoved = UINT32_MAX - 1;
  static constexpr uint32_t kPageBits = 10, kPageMask = (1u << kPageBits) - 1;
  static uint32_t Fingerprint(model::SeriesHash h) { return static_cast<uint32_t>(h.low); }
  void Insert(uint32_t fingerprint, uint32_t slot);
  void Rehash(size_t size);

  std::vector<std::unique_ptr<Series[]>> pages_;
  std::vector<uint32_t> free_;
  std::vector<Entry> table_;  // open addressing, linear probing; a power of two
  size_t mask_;
  size_t used_ = 0;  // entries that are not kNoSlot
  uint32_t slot_end_ = 0;
  uint32_t live_ = 0;
};

}  // namespace varve::head
