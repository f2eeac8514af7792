#include "storage/codec/values.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "storage/base/check.h"
#include "storage/codec/columns.h"
#include "storage/codec/decimal.h"
#include "storage/codec/ints.h"

namespace varve::codec {

namespace {
absl::Status Bad() { return absl::DataLossError("value column is malformed"); }

char FirstByte(Mode mode, int exponent) { return static_cast<char>(static_cast<int>(mode) << 5 | exponent); }

// One way to write a sub-block; `scratch` holds the integers.
struct BlockPlan {
  Mode mode = Mode::kRaw;
  bool bits = true;  // integers are bit patterns; else decimals
  Decimals decimals;
  IntPlan ints;
  int trailing = 0, width = 0;  // kXor
  size_t bytes = SIZE_MAX;
  IntScratch* scratch = nullptr;
};

// Two, so that a plan can be tried without losing the best one's integers.
struct Scratches {
  IntScratch a, b;
  IntScratch& Other(const BlockPlan& plan) { return plan.scratch == &a ? b : a; }
};

size_t SignedIntBytes(int64_t m) { return (static_cast<size_t>(std::bit_width(base::ZigZag(m) | 1)) + 6) / 7; }

size_t ExceptionBytes(std::span<const double> values, const Decimals& decimals) {
  if (decimals.exceptions == 0) return 0;
  size_t bytes = 2 + decimals.exceptions;  // exponent byte, count, positions
  for (size_t i = 0; i < decimals.exceptions; ++i) {
    bytes += model::IsStaleNan(values[decimals.exception_at[i]]) ? 0 : 8;
  }
  return bytes;
}

// Exceptions that a sub-block of n values may have: past an eighth, other modes are shorter anyway.
size_t ExceptionsMax(size_t n) { return std::max<size_t>(1, n / 8); }

void TryDecimals(std::span<const double> values, int e, bool exact, const Kernels& kernels, Scratches& scratches,
                 BlockPlan& best) {
  BlockPlan plan;
  plan.scratch = &scratches.Other(best);
  uint64_t* x = plan.scratch->x;
  if (!(exact && ToSmallDecimals(values, e, x, plan.decimals, kernels)) &&
      !ToDecimals(values, e, ExceptionsMax(values.size()), x, plan.decimals)) {
    return;
  }
  plan.ints = PlanInts(*plan.scratch, values.size(), false, kernels);
  plan.mode = plan.ints.mode;
  plan.bits = false;
  plan.bytes = 1 + plan.ints.bytes + ExceptionBytes(values, plan.decimals);
  if (plan.bytes < best.bytes) best = plan;
}

BlockPlan PlanConst(double value, IntScratch& scratch) {
  BlockPlan plan;
  plan.mode = plan.ints.mode = Mode::kConst;
  plan.scratch = &scratch;
  scratch.x[0] = std::bit_cast<uint64_t>(value);
  plan.bytes = 9;
  const int e = LeastExponent(value, 0);
  int64_t m = 0;
  if (e >= 0 && ToMantissa(value, e, m) && base::ZigZag(m) >> 49 == 0) {  // at most 7 bytes
    scratch.x[0] = static_cast<uint64_t>(m);
    plan.bits = false;
    plan.decimals.e = e;
    plan.bytes = 1 + SignedIntBytes(m);
  }
  return plan;
}

BlockPlan PlanBlock(std::span<const double> values, const Kernels& kernels, Scratches& scratches) {
  const size_t n = values.size();
  uint64_t any = 0;
  for (size_t i = 1; i < n; ++i) {
    any |= std::bit_cast<uint64_t>(values[i]) ^ std::bit_cast<uint64_t>(values[i - 1]);
  }
  if (any == 0) return PlanConst(values[0], scratches.a);
  BlockPlan best;
  best.bytes = 1 + n * 8;
  Exponents exponents;
  if (FindExponents(values, ExceptionsMax(n), kernels, exponents)) {
    TryDecimals(values, exponents.all, exponents.exact, kernels, scratches, best);
    if (exponents.most >= 0) TryDecimals(values, exponents.most, false, kernels, scratches, best);
  }
  // Bit patterns are worth a look only where decimals came to little.
  if (best.bits || best.bytes > 5 * n) {
    BlockPlan plan;
    plan.scratch = &scratches.Other(best);
    std::memcpy(plan.scratch->x, values.data(), n * 8);
    plan.ints = PlanInts(*plan.scratch, n, true, kernels);
    plan.mode = plan.ints.mode;
    plan.bytes = 1 + plan.ints.bytes;
    if (plan.bytes < best.bytes) best = plan;
  }
  const int trailing = std::countr_zero(any), width = 64 - std::countl_zero(any) - trailing;
  const size_t xor_bytes = 1 + 8 + 2 + PackedBytes(n - 1, width);
  if (xor_bytes < best.bytes) {
    best = BlockPlan();
    best.mode = Mode::kXor;
    best.trailing = trailing;
    best.width = width;
    best.bytes = xor_bytes;
    best.scratch = &scratches.a;
  }
  return best;
}

char* WriteExceptions(std::span<const double> values, const Decimals& decimals, char* p) {
  *p++ = static_cast<char>(decimals.exceptions);
  for (size_t i = 0; i < decimals.exceptions; ++i) {
    const uint8_t at = decimals.exception_at[i];
    *p++ = static_cast<char>(at | (model::IsStaleNan(values[at]) ? kStaleException : 0));
  }
  for (size_t i = 0; i < decimals.exceptions; ++i) {
    const double v = values[decimals.exception_at[i]];
    if (model::IsStaleNan(v)) continue;
    std::memcpy(p, &v, 8);
    p += 8;
  }
  return p;
}

char* WriteBlock(std::span<const double> values, const BlockPlan& plan, char* p) {
  const size_t n = values.size();
  if (plan.mode == Mode::kRaw) {
    *p++ = FirstByte(Mode::kRaw, kBits);
    std::memcpy(p, values.data(), n * 8);
    return p + n * 8;
  }
  IntScratch& scratch = *plan.scratch;
  if (plan.mode == Mode::kXor) {
    *p++ = FirstByte(Mode::kXor, kBits);
    *p++ = static_cast<char>(plan.trailing);
    *p++ = static_cast<char>(plan.width);
    std::memcpy(p, values.data(), 8);
    p += 8;
    for (size_t i = 0; i + 1 < n; ++i) {
      scratch.x[i] = (std::bit_cast<uint64_t>(values[i]) ^ std::bit_cast<uint64_t>(values[i + 1])) >> plan.trailing;
    }
    return PackInts(scratch.x, n - 1, 0, plan.width, p);
  }
  if (plan.bits) {
    *p++ = FirstByte(plan.mode, kBits);
    return WriteInts(plan.ints, scratch, n, true, p);
  }
  if (plan.decimals.exceptions == 0) {
    *p++ = FirstByte(plan.mode, plan.decimals.e);
    return WriteInts(plan.ints, scratch, n, false, p);
  }
  *p++ = FirstByte(plan.mode, kWithExceptions);
  *p++ = static_cast<char>(plan.decimals.e);
  return WriteExceptions(values, plan.decimals, WriteInts(plan.ints, scratch, n, false, p));
}

// A sub-block taken apart.
struct BlockView {
  Mode mode = Mode::kRaw;
  bool bits = true;
  int e = 0, trailing = 0, width = 0;
  IntView ints;
  uint64_t first = 0;
  std::string_view packed;  // kRaw, kXor
  std::string_view exception_at, exceptions;
};

bool ParseBlock(base::ByteReader& reader, size_t n, BlockView& view) {
  const uint8_t head = reader.U8();
  view.mode = static_cast<Mode>(head >> 5);
  int e = head & 31;
  if (view.mode == Mode::kRaw || view.mode == Mode::kXor) {
    if (e != kBits) return false;
    if (view.mode == Mode::kRaw) {
      view.packed = reader.Take(n * 8);
      return reader.ok();
    }
    view.trailing = reader.U8();
    view.width = reader.U8();
    if (view.width > 64 || view.trailing > 63 || view.trailing + view.width > 64) return false;
    view.first = reader.Fixed<uint64_t>();
    view.packed = reader.Take(PackedBytes(n - 1, view.width));
    return reader.ok();
  }
  const bool with_exceptions = e == kWithExceptions;
  if (with_exceptions) e = reader.U8();
  view.bits = !with_exceptions && e == kBits;
  if (!view.bits && e > kExponentMax) return false;
  view.e = e;
  if (!ParseInts(reader, view.mode, n, view.bits, view.ints)) return false;
  if (with_exceptions) {
    view.exception_at = reader.Take(reader.U8());
    size_t plain = 0;
    for (const char at : view.exception_at) {
      if ((static_cast<uint8_t>(at) & ~kStaleException) >= n) return false;
      plain += (static_cast<uint8_t>(at) & kStaleException) == 0;
    }
    view.exceptions = reader.Take(plain * 8);
  }
  return reader.ok();
}

bool ExpandBlock(const BlockView& view, size_t n, const Kernels& kernels, const char* readable_end, double* out) {
  uint64_t x[kBlock + kWritePad];
  if (view.mode == Mode::kRaw) {
    std::memcpy(out, view.packed.data(), n * 8);
    return true;
  }
  if (view.mode == Mode::kXor) {
    UnpackInts(view.packed, view.width, n - 1, kernels, readable_end, x);
    uint64_t bits = view.first;
    out[0] = std::bit_cast<double>(bits);
    for (size_t i = 1; i < n; ++i) out[i] = std::bit_cast<double>(bits ^= x[i - 1] << view.trailing);
    return true;
  }
  if (view.mode == Mode::kConst && view.exception_at.empty()) {
    const double v = view.bits ? std::bit_cast<double>(view.ints.first)
                               : static_cast<double>(static_cast<int64_t>(view.ints.first)) / kPowersOfTen[view.e];
    kernels.fill(out, n, v);
    return true;
  }
  const IntView& ints = view.ints;
  const double divisor = view.bits ? 1 : kPowersOfTen[view.e];
  if (!view.bits && ints.patches == 0 && ints.width > 0 && ints.width <= kFusedWidthMax &&
      (view.mode == Mode::kFor || view.mode == Mode::kDelta)) {
    PaddedCopy copy;
    const char* const packed = Padded(ints.packed, readable_end, copy);
    if (view.mode == Mode::kFor) {
      kernels.packed_to_double(packed, ints.width, n, ints.base, divisor, out);
    } else {
      out[0] = static_cast<double>(static_cast<int64_t>(ints.first)) / divisor;
      kernels.deltas_to_double(packed, ints.width, n - 1, ints.first, ints.base, divisor, out + 1);
    }
  } else {
    uint64_t add = 0;
    if (!ExpandInts(ints, n, view.bits, kernels, readable_end, x, add)) return false;
    if (view.bits) {
      for (size_t i = 0; i < n; ++i) out[i] = std::bit_cast<double>(x[i] + add);
      return true;
    }
    const size_t lead = std::min(LeadInts(ints), n);
    for (size_t i = 0; i < lead; ++i) out[i] = static_cast<double>(static_cast<int64_t>(x[i])) / divisor;
    kernels.to_double(x + lead, n - lead, add, divisor, out + lead);
  }
  const char* raw = view.exceptions.data();
  for (const char byte : view.exception_at) {
    const auto at = static_cast<uint8_t>(byte);
    if ((at & kStaleException) != 0) {
      out[at & ~kStaleException] = model::StaleNan();
    } else {
      std::memcpy(&out[at], raw, 8);
      raw += 8;
    }
  }
  return true;
}

}  // namespace

void PutValues(std::span<const double> values, std::string& out, const Kernels& kernels) {
  Scratches scratches;
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    const BlockPlan plan = PlanBlock(block, kernels, scratches);
    const size_t size = out.size();
    out.resize(size + plan.bytes);
    char* p = out.data() + size;
    // The plan's size is what chose the mode; were it wrong, the bytes would overrun.
    VARVE_CHECK(WriteBlock(block, plan, p) == p + plan.bytes);
  }
}

void EncodeValues(std::span<const double> values, std::string& out) {
  VARVE_CHECK(!values.empty() && values.size() <= kColumnMax);
  PutValues(values, out);
}

bool TakeValues(base::ByteReader& reader, std::span<double> out, const Kernels& kernels) {
  const char* const end = reader.position() + reader.left();
  for (size_t at = 0; at < out.size(); at += kBlock) {
    const size_t n = std::min(kBlock, out.size() - at);
    if (reader.left() > 1 && static_cast<uint8_t>(*reader.position()) <= kExponentMax) {  // the commonest: one decimal
      static_assert(static_cast<int>(Mode::kConst) == 0);
      const int e = reader.U8();
      const int64_t m = reader.Signed();
      if (!reader.ok()) return false;
      kernels.fill(out.data() + at, n, static_cast<double>(m) / kPowersOfTen[e]);
      continue;
    }
    BlockView view;
    if (!ParseBlock(reader, n, view) || !ExpandBlock(view, n, kernels, end, out.data() + at)) return false;
  }
  return true;
}

absl::Status DecodeValues(std::string_view bytes, std::span<double> out) {
  base::ByteReader reader(bytes);
  if (out.empty() || out.size() > kColumnMax || !TakeValues(reader, out) || !reader.AtEnd()) return Bad();
  return absl::OkStatus();
}

absl::Status DecodeValuesRange(std::string_view bytes, size_t count, size_t begin, std::span<double> out) {
  if (count == 0 || count > kColumnMax || begin > count || out.size() > count - begin) return Bad();
  base::ByteReader reader(bytes);
  const char* const readable_end = bytes.data() + bytes.size();
  const Kernels& kernels = BestKernels();
  const size_t end = begin + out.size();
  for (size_t at = 0; at < end; at += kBlock) {
    const size_t n = std::min(kBlock, count - at);
    BlockView view;
    if (!ParseBlock(reader, n, view)) return Bad();
    if (at + n <= begin) continue;
    if (at >= begin && at + n <= end) {
      if (!ExpandBlock(view, n, kernels, readable_end, out.data() + (at - begin))) return Bad();
      continue;
    }
    double whole[kBlock];
    if (!ExpandBlock(view, n, kernels, readable_end, whole)) return Bad();
    const size_t from = std::max(at, begin), to = std::min(at + n, end);
    std::copy(whole + (from - at), whole + (to - at), out.data() + (from - begin));
  }
  return absl::OkStatus();
}

}  // namespace varve::codec
