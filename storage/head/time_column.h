#pragma once
// Timestamps that series share. Series of one scrape have the same times, so their tails point to one column and say by
// a bit mask which of its positions they have.
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "storage/head/slab.h"

namespace varve::head {

// One thread.
class TimeColumns {
 public:
  static constexpr uint32_t kNone = 0;
  static constexpr uint32_t kPositionsMax = 32;

  struct Column {
    int64_t last = INT64_MIN;  // its newest time
    uint64_t serial = 0;       // never used twice; 0: free
    uint64_t position = 0;     // where the sealed log has its times, SealedLog::kNone: nowhere
    uint64_t next_serial = 0;
    uint32_t next = kNone;  // where the series go when it is full; valid while that one's serial is next_serial
    uint32_t refs = 0;      // series whose tail is on it
    Slab::Ref times = Slab::kNone;
    uint8_t count = 0;
    uint8_t limit = kPositionsMax;  // full when count gets there
    uint8_t recorded = 0;           // how many times the sealed log has
    bool full() const { return count >= limit; }
  };

  TimeColumns() : columns_(1) {}

  Column& at(uint32_t id) { return columns_[id]; }
  const Column& at(uint32_t id) const { return columns_[id]; }
  const int64_t* times(uint32_t id) const { return reinterpret_cast<const int64_t*>(slab_.At(columns_[id].times)); }

  // A column that begins with t.
  uint32_t Create(int64_t t, uint8_t limit = kPositionsMax);
  // t must be later than the last; the column must not be full.
  void Push(uint32_t id, int64_t t);
  // The open column whose newest time is t, if it is remembered; else a new one. New ones are full at lengths that
  // differ, and only their successors at the full length: else targets that began together would have full tails, and
  // seal them, together for ever.
  uint32_t ForTime(int64_t t);
  // The column after a full one, made when there is none.
  uint32_t Successor(uint32_t id, int64_t t);
  void Link(uint32_t id, uint32_t next) {
    columns_[id].next = next;
    columns_[id].next_serial = columns_[next].serial;
  }
  // Position of t, if the column has it.
  std::optional<uint32_t> Find(uint32_t id, int64_t t) const;

  void Ref(uint32_t id) { ++columns_[id].refs; }
  void Unref(uint32_t id) {
    if (--columns_[id].refs == 0) Free(id);
  }
  size_t size() const { return live_; }
  size_t bytes() const { return columns_.capacity() * sizeof(Column) + slab_.bytes(); }
  // The sealed log's copies may go: columns are written again before the next chunk that needs them.
  void ForgetPositions();

 private:
  void Free(uint32_t id);
  void Remember(uint32_t id);
  static size_t CacheAt(int64_t t) { return (static_cast<uint64_t>(t) * 0x9E3779B97F4A7C15u) >> 54; }
  struct Remembered {
    uint32_t id = kNone;
    uint64_t serial = 0;
  };

  std::vector<Column> columns_;
  std::vector<uint32_t> free_;
  std::array<Remembered, 1024> recent_;  // by newest time
  Slab slab_;
  uint64_t next_serial_ = 1;
  size_t live_ = 0;
};

}  // namespace varve::head
