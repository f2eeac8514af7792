#pragma once
// Sub-blocks of up to 128 integers modulo 2^64: which mode is shortest, its bytes, and the way back. The first byte
// (mode and exponent) belongs to the caller. FORMAT.md has the layouts.
#include <cstdint>
#include <string_view>

#include "storage/base/bytes.h"
#include "storage/codec/format.h"
#include "storage/codec/kernels.h"

namespace varve::codec {

// How a run of integers packs: (x - base) in `width` bits, and for `patches` of them `high` bits more.
struct Packing {
  uint64_t base = 0;
  int width = 0;
  int patches = 0;
  int high = 0;
  size_t bytes = 0;  // width byte, patch header, packed bits; without base
};

struct IntPlan {
  Mode mode = Mode::kConst;
  Packing packing;
  int changes = 0;  // sparse
  size_t bytes = 0;
};

// Room for one sub-block: integers, their deltas, deltas of deltas.
struct IntScratch {
  uint64_t x[kBlock + kWritePad], d[kBlock + kWritePad], dd[kBlock + kWritePad];
};

// The shortest plan for s.x[0, n). `bits`: they are bit patterns of doubles.
IntPlan PlanInts(IntScratch& s, size_t n, bool bits, const Kernels& kernels);
// Writes exactly plan.bytes at `p`.
char* WriteInts(const IntPlan& plan, const IntScratch& s, size_t n, bool bits, char* p);

// A sub-block of integers taken apart, not expanded yet: enough to skip it.
struct IntView {
  Mode mode = Mode::kConst;
  int width = 0, patches = 0, high = 0, changes = 0;
  uint64_t first = 0, step = 0, base = 0;
  std::string_view packed, positions, highs;
};

// False: malformed. kXor and kRaw are not for here.
bool ParseInts(base::ByteReader& reader, Mode mode, size_t n, bool bits, IntView& view);
// How many of the first integers do not come out of packed bits. Whoever goes on over x does well to take these apart
// from the rest, so that wide loads meet wide stores.
inline size_t LeadInts(const IntView& view) { return view.mode == Mode::kDelta ? 1 : view.mode == Mode::kDod ? 2 : 0; }
// x needs room for n + kWritePad. The integers are x[i] + `add`. False: malformed.
bool ExpandInts(const IntView& view, size_t n, bool bits, const Kernels& kernels, const char* readable_end, uint64_t* x,
                uint64_t& add);

// Bytes that n integers of `width` bits take.
inline size_t PackedBytes(size_t n, int width) { return (n * static_cast<size_t>(width) + 7) / 8; }
char* PackInts(const uint64_t* x, size_t n, uint64_t base, int width, char* p);
// Where `packed` can be read with kReadPad bytes to spare: in place, or in `copy`.
using PaddedCopy = char[kBlock * 8 + kReadPad];
const char* Padded(std::string_view packed, const char* readable_end, PaddedCopy& copy);
// Unpacks n integers; `readable_end` ends what may be read beyond the packed bytes.
void UnpackInts(std::string_view packed, int width, size_t n, const Kernels& kernels, const char* readable_end,
                uint64_t* out);

}  // namespace varve::codec
