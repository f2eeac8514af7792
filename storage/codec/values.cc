#include <algorithm>
#include <bit>
#include <cstring>

#include "storage/base/bytes.h"
#include "storage/base/check.h"
#include "storage/codec/columns.h"

namespace varve::codec {

namespace {
constexpr size_t kBlock = 128;
constexpr uint8_t kConstRaw = 0x1F, kRaw = 0xFF;

absl::Status Bad() { return absl::DataLossError("value column is malformed"); }
}  // namespace

void EncodeValues(std::span<const double> values, std::string& out) {
  VARVE_CHECK(!values.empty() && values.size() <= kColumnMax);
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    const bool constant =
        std::all_of(block.begin(), block.end(), [&](double v) { return model::SameBits(v, block[0]); });
    base::PutU8(out, constant ? kConstRaw : kRaw);
    for (const double v : constant ? block.first(1) : block) base::PutFixed(out, v);
  }
}

absl::Status DecodeValuesRange(std::string_view bytes, size_t count, size_t begin, std::span<double> out) {
  if (count > kColumnMax || begin > count || out.size() > count - begin) return Bad();
  base::ByteReader reader(bytes);
  for (size_t at = 0; at < begin + out.size(); at += kBlock) {
    const size_t n = std::min(kBlock, count - at);
    const uint8_t mode = reader.U8();
    if (!reader.ok() || (mode != kConstRaw && mode != kRaw)) return Bad();
    for (size_t i = 0; i < n; ++i) {
      static_assert(std::endian::native == std::endian::little);
      const size_t to = mode == kConstRaw ? n : i + 1;
      const double v = reader.Fixed<double>();
      for (; i < to; ++i) {
        if (at + i >= begin && at + i - begin < out.size()) out[at + i - begin] = v;
      }
      --i;
    }
  }
  if (!reader.ok() || (begin + out.size() == count && !reader.AtEnd())) return Bad();
  return absl::OkStatus();
}

absl::Status DecodeValues(std::string_view bytes, std::span<double> out) {
  return DecodeValuesRange(bytes, out.size(), 0, out);
}

}  // namespace varve::codec
