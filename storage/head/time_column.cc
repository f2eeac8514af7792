#include "storage/head/time_column.h"

#include <algorithm>

#include "storage/base/check.h"

namespace varve::head {

namespace {
constexpr uint32_t kFirstLimitMin = 8;
}

uint32_t TimeColumns::Create(int64_t t, uint8_t limit) {
  uint32_t id;
  if (!free_.empty()) {
    id = free_.back();
    free_.pop_back();
  } else {
    id = static_cast<uint32_t>(columns_.size());
    columns_.emplace_back();
  }
  Column& c = columns_[id];
  c = Column();
  c.serial = next_serial_++;
  c.times = slab_.Allocate(4);
  c.count = 1;
  c.limit = limit;
  c.last = t;
  *slab_.At(c.times) = static_cast<uint64_t>(t);
  ++live_;
  Remember(id);
  return id;
}

void TimeColumns::Push(uint32_t id, int64_t t) {
  Column& c = columns_[id];
  VARVE_CHECK(!c.full() && t > c.last);
  if (c.count == Slab::Words(c.times)) c.times = slab_.Grow(c.times, c.count);
  slab_.At(c.times)[c.count++] = static_cast<uint64_t>(t);
  c.last = t;
  Remember(id);
}

void TimeColumns::Remember(uint32_t id) { recent_[CacheAt(columns_[id].last)] = {id, columns_[id].serial}; }

uint32_t TimeColumns::ForTime(int64_t t) {
  const Remembered& r = recent_[CacheAt(t)];
  if (r.id != kNone) {
    const Column& c = columns_[r.id];
    if (c.serial == r.serial && c.last == t && !c.full()) return r.id;
  }
  return Create(t, static_cast<uint8_t>(kFirstLimitMin + next_serial_ * 11 % (kPositionsMax - kFirstLimitMin + 1)));
}

uint32_t TimeColumns::Successor(uint32_t id, int64_t t) {
  const Column& c = columns_[id];
  if (c.next != kNone && columns_[c.next].serial == c.next_serial) return c.next;
  const uint32_t next = Create(t);
  Link(id, next);
  return next;
}

std::optional<uint32_t> TimeColumns::Find(uint32_t id, int64_t t) const {
  const int64_t* begin = times(id);
  const int64_t* end = begin + columns_[id].count;
  const int64_t* at = std::lower_bound(begin, end, t);
  if (at == end || *at != t) return std::nullopt;
  return static_cast<uint32_t>(at - begin);
}

void TimeColumns::ForgetPositions() {
  for (Column& c : columns_) {
    c.position = 0;
    c.recorded = 0;
  }
}

void TimeColumns::Free(uint32_t id) {
  Column& c = columns_[id];
  slab_.Free(c.times);
  c = Column();
  free_.push_back(id);
  --live_;
}

}  // namespace varve::head
