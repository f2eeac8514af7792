// Compressed bodies: the first byte chooses the encoding. Whatever comes, the result stays within the limit.
#include <cstdint>

#include "ingest/decode/encoding.h"
#include "storage/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using varve::decode::Encoding;
  if (size == 0) return 0;
  constexpr size_t kMax = 1 << 20;
  constexpr Encoding kEncodings[] = {Encoding::kSnappy, Encoding::kZstd, Encoding::kGzip, Encoding::kIdentity};
  std::string out;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  const absl::Status status = varve::decode::Uncompress(kEncodings[data[0] & 3], body, kMax, out);
  VARVE_CHECK(out.size() <= kMax + 1);
  VARVE_CHECK(status.ok() || absl::IsInvalidArgument(status) || absl::IsOutOfRange(status));
  return 0;
}
