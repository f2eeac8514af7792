#include "storage/codec/ints.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "storage/base/check.h"

namespace varve::codec {

namespace {
using base::UnZigZag;
using base::ZigZag;

int Width(uint64_t v) { return static_cast<int>(std::bit_width(v)); }
size_t VarintBytes(uint64_t v) { return v == 0 ? 1 : (static_cast<size_t>(Width(v)) + 6) / 7; }
size_t SignedBytes(uint64_t v) { return VarintBytes(ZigZag(static_cast<int64_t>(v))); }
size_t FirstBytes(uint64_t v, bool bits) { return bits ? 8 : SignedBytes(v); }

char* WriteVarint(uint64_t v, char* p) {
  while (v >= 0x80) {
    *p++ = static_cast<char>(v | 0x80);
    v >>= 7;
  }
  *p++ = static_cast<char>(v);
  return p;
}
char* WriteSigned(uint64_t v, char* p) { return WriteVarint(ZigZag(static_cast<int64_t>(v)), p); }
char* WriteFirst(uint64_t v, bool bits, char* p) {
  if (!bits) return WriteSigned(v, p);
  std::memcpy(p, &v, 8);
  return p + 8;
}

size_t PackingBytes(size_t n, int width, int patches, int high) {
  const auto k = static_cast<size_t>(patches);
  return 1 + PackedBytes(n, width) + (k == 0 ? 0 : 2 + PackedBytes(k, 7) + PackedBytes(k, high));
}

// The smallest range without patches.
Packing Unpatched(const uint64_t* x, size_t n, const Kernels& kernels) {
  int64_t low = 0, high = 0;
  kernels.extremes(reinterpret_cast<const int64_t*>(x), n, low, high);
  const int width = Width(static_cast<uint64_t>(high) - static_cast<uint64_t>(low));
  return {static_cast<uint64_t>(low), width, 0, 0, PackingBytes(n, width, 0, 0)};
}

// The best width for `base`, counting what exceeds each width.
void TryBase(const uint64_t* x, size_t n, uint64_t base, Packing& best) {
  // Two tables, so that equal widths in a row wait less for each other.
  uint8_t even[65] = {}, odd[65] = {};
  size_t i = 0;
  for (; i + 2 <= n; i += 2) {
    ++even[Width(x[i] - base)];
    ++odd[Width(x[i + 1] - base)];
  }
  if (i < n) ++even[Width(x[i] - base)];
  int widest = 64;
  while (widest > 0 && even[widest] + odd[widest] == 0) --widest;
  const size_t base_bytes = SignedBytes(base);
  size_t above = 0;
  for (int width = widest; width >= 0; --width) {
    const size_t bytes = PackingBytes(n, width, static_cast<int>(above), widest - width);
    if (bytes + base_bytes < best.bytes + SignedBytes(best.base)) {
      best = {base, width, static_cast<int>(above), widest - width, bytes};
    }
    above += static_cast<size_t>(even[width] + odd[width]);
    if (above * 4 > n) break;
  }
}

// Looks whether patches make `best`, which has none, shorter.
void TryPatches(const uint64_t* x, size_t n, const Kernels& kernels, Packing& best) {
  const int width = best.width;
  if (width <= 2 || n < 8) return;
  const uint64_t base = best.base;
  if (width > 62) return TryBase(x, n, base, best);
  // One pass tells whether patches may pay: j bits less for all, against 7 + j for each that is wider, and their
  // header.
  const uint64_t half = uint64_t{1} << (width - 1);
  const uint64_t limits[4] = {half, half / 2, half / 4, half / 2 + half / 4};
  size_t counts[4];
  kernels.count_from(x, n, base, limits, counts);
  const auto pays = [n](size_t patches, size_t bits) { return n * bits > patches * (7 + bits) + 24; };
  if (pays(counts[0], 1) || pays(counts[1], 2) || pays(counts[2], 3)) TryBase(x, n, base, best);
  // Nearly all far up: the lowest are outliers, as a counter's reset is one delta far below all others. The base goes
  // above the lowest one, which then wraps and becomes a patch itself.
  if ((n - counts[1]) * 8 < n) {
    int64_t low = std::numeric_limits<int64_t>::max(), second = low;
    for (size_t i = 0; i < n; ++i) {
      const auto v = static_cast<int64_t>(x[i]);
      if (v < low) {
        second = low;
        low = v;
      } else if (v != low && v < second) {
        second = v;
      }
    }
    TryBase(x, n, static_cast<uint64_t>(second), best);
  }
}

char* WritePacking(const Packing& packing, const uint64_t* x, size_t n, char* p) {
  if (packing.patches > 0) {
    uint64_t positions[kBlock], highs[kBlock];
    size_t k = 0;
    for (size_t i = 0; i < n; ++i) {
      const uint64_t distance = x[i] - packing.base;
      if (Width(distance) <= packing.width) continue;
      positions[k] = i;
      highs[k++] = distance >> packing.width;
    }
    p = PackInts(x, n, packing.base, packing.width, p);
    p = PackInts(positions, k, 0, 7, p);
    return PackInts(highs, k, 0, packing.high, p);
  }
  return PackInts(x, n, packing.base, packing.width, p);
}

char* WritePackingHead(const Packing& packing, char* p) {
  *p++ = static_cast<char>(packing.width | (packing.patches > 0 ? kPatched : 0));
  if (packing.patches > 0) {
    *p++ = static_cast<char>(packing.patches);
    *p++ = static_cast<char>(packing.high);
  }
  return p;
}

uint64_t Change(uint64_t before, uint64_t after, bool bits) {
  return bits ? before ^ after : ZigZag(static_cast<int64_t>(after - before));
}

// Positions are listed while that is shorter than a bitmap.
bool ListsPositions(size_t changes, size_t n) { return changes * 7 < n - 1; }
size_t PositionBytes(size_t changes, size_t n) {
  return ListsPositions(changes, n) ? PackedBytes(changes, 7) : PackedBytes(n - 1, 1);
}
}  // namespace

char* PackInts(const uint64_t* x, size_t n, uint64_t base, int width, char* p) {
  if (width == 0) return p;
  const auto w = static_cast<size_t>(width);
  const uint64_t mask = w == 64 ? ~uint64_t{0} : (uint64_t{1} << w) - 1;
  uint64_t word = 0;
  size_t used = 0;
  for (size_t i = 0; i < n; ++i) {
    const uint64_t v = (x[i] - base) & mask;
    word |= v << used;
    used += w;
    if (used >= 64) {
      std::memcpy(p, &word, 8);
      p += 8;
      used -= 64;
      word = used == 0 ? 0 : v >> (w - used);
    }
  }
  std::memcpy(p, &word, (used + 7) / 8);
  return p + (used + 7) / 8;
}

const char* Padded(std::string_view packed, const char* readable_end, PaddedCopy& copy) {
  if (static_cast<size_t>(readable_end - packed.data()) >= packed.size() + kReadPad) return packed.data();
  std::memcpy(copy, packed.data(), packed.size());
  std::memset(copy + packed.size(), 0, kReadPad);
  return copy;
}

void UnpackInts(std::string_view packed, int width, size_t n, const Kernels& kernels, const char* readable_end,
                uint64_t* out) {
  if (width == 0) {
    std::fill_n(out, n, 0);
    return;
  }
  PaddedCopy copy;
  kernels.unpack(Padded(packed, readable_end, copy), width, n, out);
}

IntPlan PlanInts(IntScratch& s, size_t n, bool bits, const Kernels& kernels) {
  const uint64_t* x = s.x;
  const size_t first = FirstBytes(x[0], bits);
  IntPlan best;
  uint64_t changed = 0;
  const size_t changes = kernels.deltas(x, n, s.d);
  if (changes == 0) {
    best.bytes = first;
    return best;
  }
  if (kernels.deltas(s.d, n - 1, s.dd) == 0) {
    best.mode = Mode::kLinear;
    best.bytes = first + SignedBytes(s.d[0]);
    return best;
  }
  const auto consider = [&best](Mode mode, const Packing& packing, size_t bytes) {
    if (best.bytes != 0 && best.bytes <= bytes) return;
    best.mode = mode;
    best.packing = packing;
    best.bytes = bytes;
  };
  Packing plain = Unpatched(x, n, kernels), delta = Unpatched(s.d, n - 1, kernels);
  // Outliers of values are outliers of deltas, so where values are much wider, patching them does not catch up.
  if (plain.width <= delta.width + 2) TryPatches(x, n, kernels, plain);
  consider(Mode::kFor, plain, plain.bytes + FirstBytes(plain.base, bits));
  const int delta_width = delta.width;
  TryPatches(s.d, n - 1, kernels, delta);
  consider(Mode::kDelta, delta, delta.bytes + first + SignedBytes(delta.base));
  // Second differences pay when first ones drift; an outlier there is two here.
  if (delta.width > 1) {
    Packing dod = Unpatched(s.dd, n - 2, kernels);
    if (dod.width < delta_width) {
      TryPatches(s.dd, n - 2, kernels, dod);
      consider(Mode::kDod, dod, dod.bytes + first + SignedBytes(s.d[0]) + SignedBytes(dod.base));
    }
  }
  if (changes * 2 <= n) {
    for (size_t i = 0; i + 1 < n; ++i) changed |= Change(x[i], x[i + 1], bits);
    const size_t bytes = first + 2 + PositionBytes(changes, n) + PackedBytes(changes, Width(changed));
    if (bytes < best.bytes) {
      consider(Mode::kSparse, {0, Width(changed), 0, 0, 0}, bytes);
      best.changes = static_cast<int>(changes);
    }
  }
  return best;
}

char* WriteInts(const IntPlan& plan, const IntScratch& s, size_t n, bool bits, char* p) {
  switch (plan.mode) {
    case Mode::kConst:
      return WriteFirst(s.x[0], bits, p);
    case Mode::kLinear:
      return WriteSigned(s.d[0], WriteFirst(s.x[0], bits, p));
    case Mode::kFor:
      p = WriteFirst(plan.packing.base, bits, WritePackingHead(plan.packing, p));
      return WritePacking(plan.packing, s.x, n, p);
    case Mode::kDelta:
      p = WriteFirst(s.x[0], bits, WritePackingHead(plan.packing, p));
      return WritePacking(plan.packing, s.d, n - 1, WriteSigned(plan.packing.base, p));
    case Mode::kDod:
      p = WriteFirst(s.x[0], bits, WritePackingHead(plan.packing, p));
      p = WriteSigned(plan.packing.base, WriteSigned(s.d[0], p));
      return WritePacking(plan.packing, s.dd, n - 2, p);
    case Mode::kSparse: {
      *p++ = static_cast<char>(plan.packing.width);
      *p++ = static_cast<char>(plan.changes);
      p = WriteFirst(s.x[0], bits, p);
      uint64_t positions[kBlock], map[kBlock], values[kBlock];
      size_t k = 0;
      for (size_t i = 0; i + 1 < n; ++i) {
        map[i] = s.x[i] != s.x[i + 1];
        if (map[i] == 0) continue;
        positions[k] = i;
        values[k++] = Change(s.x[i], s.x[i + 1], bits);
      }
      p = ListsPositions(k, n) ? PackInts(positions, k, 0, 7, p) : PackInts(map, n - 1, 0, 1, p);
      return PackInts(values, k, 0, plan.packing.width, p);
    }
    case Mode::kXor:
    case Mode::kRaw:
      break;
  }
  VARVE_CHECK_MSG(false, "not a mode of integers");
}

bool ParseInts(base::ByteReader& reader, Mode mode, size_t n, bool bits, IntView& view) {
  const auto first = [&] { return bits ? reader.Fixed<uint64_t>() : static_cast<uint64_t>(reader.Signed()); };
  view.mode = mode;
  if (mode == Mode::kConst || mode == Mode::kLinear) {
    view.first = first();
    if (mode == Mode::kLinear) view.step = static_cast<uint64_t>(reader.Signed());
    return reader.ok();
  }
  const uint8_t head = reader.U8();
  view.width = head & ~kPatched;
  if (view.width > 64) return false;
  if (mode == Mode::kSparse) {
    view.changes = reader.U8();
    const auto k = static_cast<size_t>(view.changes);
    if (head > 64 || k == 0 || k > n - 1) return false;
    view.first = first();
    view.positions = reader.Take(PositionBytes(k, n));
    view.packed = reader.Take(PackedBytes(k, view.width));
    return reader.ok();
  }
  if ((head & kPatched) != 0) {
    view.patches = reader.U8();
    view.high = reader.U8();
    if (view.patches == 0 || view.high == 0 || view.high + view.width > 64) return false;
  }
  view.first = first();
  size_t count = n;
  if (mode == Mode::kFor) {
    view.base = view.first;
  } else if (mode == Mode::kDelta) {
    view.base = static_cast<uint64_t>(reader.Signed());
    count = n - 1;
  } else if (mode == Mode::kDod) {
    if (n < 2) return false;
    view.step = static_cast<uint64_t>(reader.Signed());
    view.base = static_cast<uint64_t>(reader.Signed());
    count = n - 2;
  } else {
    return false;
  }
  const auto k = static_cast<size_t>(view.patches);
  if (k > count) return false;
  view.packed = reader.Take(PackedBytes(count, view.width));
  view.positions = reader.Take(PackedBytes(k, 7));
  view.highs = reader.Take(PackedBytes(k, view.high));
  return reader.ok();
}

bool ExpandInts(const IntView& view, size_t n, bool bits, const Kernels& kernels, const char* readable_end, uint64_t* x,
                uint64_t& add) {
  add = 0;
  if (view.mode == Mode::kConst) {
    std::fill_n(x, n, view.first);
    return true;
  }
  if (view.mode == Mode::kLinear) {
    for (size_t i = 0; i < n; ++i) x[i] = view.first + i * view.step;
    return true;
  }
  if (view.mode == Mode::kSparse) {
    uint64_t at[kBlock + kWritePad], changes[kBlock + kWritePad];
    auto k = static_cast<size_t>(view.changes);
    UnpackInts(view.packed, view.width, k, kernels, readable_end, changes);
    if (ListsPositions(k, n)) {
      UnpackInts(view.positions, 7, k, kernels, readable_end, at);
    } else {
      uint64_t map[kBlock + kWritePad];
      UnpackInts(view.positions, 1, n - 1, kernels, readable_end, map);
      size_t found = 0;
      for (size_t i = 0; i + 1 < n; ++i) {
        if (map[i] != 0) at[found++] = i;
      }
      if (found != k) return false;
    }
    uint64_t value = view.first;
    size_t begin = 0;
    for (size_t i = 0; i < k; ++i) {
      const size_t end = at[i] + 1;
      if (end <= begin || end >= n) return false;
      std::fill(x + begin, x + end, value);
      value = bits ? value ^ changes[i] : value + static_cast<uint64_t>(UnZigZag(changes[i]));
      begin = end;
    }
    std::fill(x + begin, x + n, value);
    return true;
  }
  const size_t skip = view.mode == Mode::kFor ? 0 : view.mode == Mode::kDelta ? 1 : 2;
  const size_t count = n - skip;
  UnpackInts(view.packed, view.width, count, kernels, readable_end, x + skip);
  if (view.patches > 0) {
    uint64_t at[kBlock + kWritePad], highs[kBlock + kWritePad];
    const auto k = static_cast<size_t>(view.patches);
    UnpackInts(view.positions, 7, k, kernels, readable_end, at);
    UnpackInts(view.highs, view.high, k, kernels, readable_end, highs);
    for (size_t i = 0; i < k; ++i) {
      if (at[i] >= count) return false;
      x[at[i] + skip] += highs[i] << view.width;
    }
  }
  if (view.mode == Mode::kFor) {
    add = view.base;
  } else if (view.mode == Mode::kDelta) {
    x[0] = view.first;
    kernels.prefix_sum(x + 1, count, view.first, view.base);
  } else {
    x[0] = view.first;
    x[1] = view.first + view.step;
    kernels.prefix_sum(x + 2, count, view.step, view.base);
    kernels.prefix_sum(x + 2, count, x[1], 0);
  }
  return true;
}

}  // namespace varve::codec
