#include <algorithm>

#include "storage/base/bytes.h"
#include "storage/base/check.h"
#include "storage/codec/columns.h"
#include "storage/codec/ints.h"

namespace varve::codec {

namespace {
absl::Status Bad() { return absl::DataLossError("time column is malformed"); }
uint64_t Step(int64_t from, int64_t to) { return static_cast<uint64_t>(to) - static_cast<uint64_t>(from); }
}  // namespace

void EncodeTimes(std::span<const int64_t> times, std::string& out) {
  const size_t n = times.size();
  VARVE_CHECK(n > 0 && n <= kColumnMax);
  uint64_t different = 0;
  for (size_t i = 1; i < n; ++i) {
    VARVE_CHECK(times[i - 1] < times[i]);
    different |= Step(times[i - 1], times[i]) ^ Step(times[0], times[1]);
  }
  base::PutVarint(out, n << 1 | (different == 0 ? 1 : 0));
  base::PutSigned(out, times[0]);
  if (n == 1) return;
  if (different == 0) return base::PutVarint(out, Step(times[0], times[1]));
  IntScratch scratch;
  for (size_t begin = 1; begin < n; begin += kBlock) {
    const size_t count = std::min(kBlock, n - begin);
    for (size_t i = 0; i < count; ++i) scratch.x[i] = Step(times[begin + i - 1], times[begin + i]);
    const IntPlan plan = PlanInts(scratch, count, false, BestKernels());
    base::PutU8(out, static_cast<uint8_t>(static_cast<int>(plan.mode) << 5));
    const size_t size = out.size();
    out.resize(size + plan.bytes);
    char* p = out.data() + size;
    VARVE_CHECK(WriteInts(plan, scratch, count, false, p) == p + plan.bytes);
  }
}

absl::Status DecodeTimes(std::string_view bytes, std::vector<int64_t>& out) {
  base::ByteReader reader(bytes);
  const uint64_t head = reader.Varint();
  const uint64_t n = head >> 1;
  const auto first = static_cast<uint64_t>(reader.Signed());
  if (!reader.ok() || n == 0 || n > kColumnMax) return Bad();
  uint64_t x[kColumnMax + kWritePad];
  x[0] = first;
  const Kernels& kernels = BestKernels();
  if ((head & 1) != 0) {
    const uint64_t step = n == 1 ? 0 : reader.Varint();
    for (size_t i = 1; i < n; ++i) x[i] = first + i * step;
  } else {
    const char* const end = bytes.data() + bytes.size();
    for (size_t begin = 1; begin < n; begin += kBlock) {
      const size_t count = std::min<size_t>(kBlock, n - begin);
      const uint8_t mode = reader.U8();
      IntView view;
      uint64_t add = 0;
      if ((mode & 31) != 0 || !ParseInts(reader, static_cast<Mode>(mode >> 5), count, false, view) ||
          !ExpandInts(view, count, false, kernels, end, x + begin, add)) {
        return Bad();
      }
      kernels.prefix_sum(x + begin, count, x[begin - 1], add);
    }
  }
  if (!reader.ok() || !reader.AtEnd()) return Bad();
  bool ascending = true;
  for (size_t i = 1; i < n; ++i) ascending &= static_cast<int64_t>(x[i - 1]) < static_cast<int64_t>(x[i]);
  if (!ascending) return Bad();
  out.insert(out.end(), x, x + n);
  return absl::OkStatus();
}

}  // namespace varve::codec
