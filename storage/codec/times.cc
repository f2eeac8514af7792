#include "storage/base/bytes.h"
#include "storage/base/check.h"
#include "storage/codec/columns.h"

namespace varve::codec {

namespace {
absl::Status Bad() { return absl::DataLossError("time column is malformed"); }
}  // namespace

void EncodeTimes(std::span<const int64_t> times, std::string& out) {
  VARVE_CHECK(!times.empty() && times.size() <= kColumnMax);
  base::PutVarint(out, times.size());
  base::PutSigned(out, times[0]);
  for (size_t i = 1; i < times.size(); ++i) {
    VARVE_CHECK(times[i - 1] < times[i]);
    base::PutVarint(out, static_cast<uint64_t>(times[i]) - static_cast<uint64_t>(times[i - 1]));
  }
}

absl::Status DecodeTimes(std::string_view bytes, std::vector<int64_t>& out) {
  base::ByteReader reader(bytes);
  const uint64_t count = reader.Varint();
  if (count == 0 || count > kColumnMax || count > bytes.size()) return Bad();
  const size_t before = out.size();
  out.push_back(reader.Signed());
  for (uint64_t i = 1; i < count; ++i) {
    const auto t = static_cast<int64_t>(static_cast<uint64_t>(out.back()) + reader.Varint());
    if (!reader.ok() || t <= out.back()) {
      out.resize(before);
      return Bad();
    }
    out.push_back(t);
  }
  if (!reader.ok() || !reader.AtEnd()) {
    out.resize(before);
    return Bad();
  }
  return absl::OkStatus();
}

}  // namespace varve::codec
