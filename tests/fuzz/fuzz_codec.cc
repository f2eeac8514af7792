// Any bytes are values or DataLoss for every column, and what decodes encodes to something that decodes to the same.
// The first byte picks the column.
#include <algorithm>
#include <cstdint>

#include "storage/base/check.h"
#include "storage/codec/columns.h"
#include "storage/codec/values.h"

namespace varve::codec {
namespace {

void Values(std::string_view bytes, size_t count) {
  std::vector<double> out(count), plain(count);
  const bool ok = DecodeValues(bytes, out).ok();
  base::ByteReader reader(bytes);
  VARVE_CHECK((TakeValues(reader, plain, PlainKernels()) && reader.AtEnd()) == ok);
  if (!ok) return;
  VARVE_CHECK(std::equal(out.begin(), out.end(), plain.begin(), model::SameBits));
  std::string again, again_plain;
  EncodeValues(out, again);
  PutValues(out, again_plain, PlainKernels());
  VARVE_CHECK(again == again_plain);
  VARVE_CHECK(DecodeValues(again, plain).ok());
  VARVE_CHECK(std::equal(out.begin(), out.end(), plain.begin(), model::SameBits));
  std::vector<double> part(count / 3);
  VARVE_CHECK(DecodeValuesRange(again, count, count / 2, part).ok());
  VARVE_CHECK(std::equal(part.begin(), part.end(), out.begin() + static_cast<ptrdiff_t>(count / 2), model::SameBits));
}

// The bytes are the doubles themselves.
void RawValues(std::string_view bytes) {
  std::vector<double> in(std::min(bytes.size() / 8, kColumnMax));
  if (in.empty()) return;
  std::memcpy(in.data(), bytes.data(), in.size() * 8);
  std::string encoded;
  EncodeValues(in, encoded);
  std::vector<double> out(in.size());
  VARVE_CHECK(DecodeValues(encoded, out).ok());
  VARVE_CHECK(std::equal(in.begin(), in.end(), out.begin(), model::SameBits));
}

void Times(std::string_view bytes) {
  std::vector<int64_t> out, again;
  if (!DecodeTimes(bytes, out).ok()) return;
  std::string encoded;
  EncodeTimes(out, encoded);
  VARVE_CHECK(DecodeTimes(encoded, again).ok() && again == out);
}

void StartTimes(std::string_view bytes, size_t count) {
  std::vector<int64_t> times(count), out(count), again(count);
  for (size_t i = 0; i < count; ++i) times[i] = static_cast<int64_t>(i) * 1000;
  if (!DecodeStartTimes(bytes, times, out).ok()) return;
  std::string encoded;
  EncodeStartTimes(out, times, encoded);
  VARVE_CHECK(DecodeStartTimes(encoded, times, again).ok() && again == out);
}

void Histograms(std::string_view bytes, size_t count) {
  std::vector<std::shared_ptr<const model::Histogram>> out, again;
  if (!DecodeHistograms(bytes, count, out).ok()) return;
  std::string encoded;
  EncodeHistograms(out, encoded);
  VARVE_CHECK(DecodeHistograms(encoded, count, again).ok());
  for (size_t i = 0; i < count; ++i) VARVE_CHECK(model::Identical(*out[i], *again[i]));
}

void OneHistogram(std::string_view bytes) {
  const auto h = DecodeHistogram(bytes);
  if (!h.ok()) return;
  std::string encoded;
  EncodeHistogram(*h, encoded);
  const auto again = DecodeHistogram(encoded);
  VARVE_CHECK(again.ok() && model::Identical(*h, *again));
}

}  // namespace
}  // namespace varve::codec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 3, size - 3);
  const size_t count = 1 + (data[1] | size_t{data[2]} << 8) % varve::codec::kColumnMax;
  switch (data[0] % 6) {
    case 0:
      varve::codec::Values(bytes, count);
      break;
    case 1:
      varve::codec::RawValues(bytes);
      break;
    case 2:
      varve::codec::Times(bytes);
      break;
    case 3:
      varve::codec::StartTimes(bytes, count);
      break;
    case 4:
      varve::codec::Histograms(bytes, count);
      break;
    default:
      varve::codec::OneHistogram(bytes);
  }
  return 0;
}
