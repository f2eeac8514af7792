// Start timestamps come in four habits, each a run: unknown, one absolute time (when a counter was created), a fixed
// distance before the sample, and the time of the sample before (delta temporality).
#include "storage/base/bytes.h"
#include "storage/base/check.h"
#include "storage/codec/columns.h"

namespace varve::codec {

namespace {
enum Kind : uint64_t { kUnknown = 0, kAbsolute = 1, kDistance = 2, kPrevious = 3 };

int64_t Minus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

absl::Status Bad() { return absl::DataLossError("start time column is malformed"); }
}  // namespace

void EncodeStartTimes(std::span<const int64_t> start_times, std::span<const int64_t> times, std::string& out) {
  VARVE_CHECK(start_times.size() == times.size() && times.size() <= kColumnMax);
  for (size_t at = 0; at < times.size();) {
    const int64_t start = start_times[at], distance = Minus(times[at], start);
    size_t same = at + 1, distant = at + 1, previous = at;
    while (same < times.size() && start_times[same] == start) ++same;
    while (distant < times.size() && Minus(times[distant], start_times[distant]) == distance) ++distant;
    while (previous > 0 && previous < times.size() && start_times[previous] == times[previous - 1]) ++previous;
    const Kind kind = previous > same && previous >= distant ? kPrevious
                      : distant > same                       ? kDistance
                      : start == 0                           ? kUnknown
                                                             : kAbsolute;
    const size_t end = kind == kPrevious ? previous : kind == kDistance ? distant : same;
    base::PutVarint(out, (end - at) << 2 | kind);
    if (kind == kAbsolute || kind == kDistance) base::PutSigned(out, distance);
    at = end;
  }
}

absl::Status DecodeStartTimes(std::string_view bytes, std::span<const int64_t> times, std::span<int64_t> out) {
  if (out.size() != times.size()) return absl::DataLossError("start time column has another size than its times");
  base::ByteReader reader(bytes);
  for (size_t at = 0; at < times.size();) {
    const uint64_t head = reader.Varint();
    const uint64_t length = head >> 2;
    const Kind kind = static_cast<Kind>(head & 3);
    const int64_t distance = kind == kAbsolute || kind == kDistance ? reader.Signed() : 0;
    if (!reader.ok() || length == 0 || length > times.size() - at || (kind == kPrevious && at == 0)) return Bad();
    const int64_t absolute = kind == kUnknown ? 0 : Minus(times[at], distance);
    for (const size_t end = at + length; at < end; ++at) {
      out[at] = kind == kDistance ? Minus(times[at], distance) : kind == kPrevious ? times[at - 1] : absolute;
    }
  }
  return reader.AtEnd() ? absl::OkStatus() : Bad();
}

}  // namespace varve::codec
