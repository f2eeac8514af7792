#include "ingest/decode/encoding.h"

#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

#include "storage/base/strings.h"

namespace varve::decode {

namespace {

absl::Status TooLarge(Encoding encoding, size_t seen, size_t bytes_max) {
  return absl::OutOfRangeError(base::StrCat("the body (", ToString(encoding), ") holds ", seen,
                                            " bytes or more uncompressed, the limit is ", bytes_max));
}
absl::Status Corrupt(Encoding encoding, size_t body_bytes, std::string_view why) {
  return absl::InvalidArgumentError(
      base::StrCat("the body of ", body_bytes, " bytes is not valid ", ToString(encoding), ": ", why));
}

absl::Status FromSnappy(std::string_view body, size_t bytes_max, std::string& out) {
  size_t size = 0;
  if (!snappy::GetUncompressedLength(body.data(), body.size(), &size)) {
    return Corrupt(Encoding::kSnappy, body.size(), "no length in front");
  }
  if (size > bytes_max) return TooLarge(Encoding::kSnappy, size, bytes_max);
  // The densest snappy element makes 64 bytes of 3, so a length far beyond that is a lie; do not allocate for it.
  if (size / 64 > body.size()) return Corrupt(Encoding::kSnappy, body.size(), "impossible length");
  out.resize(size);
  if (!snappy::RawUncompress(body.data(), body.size(), out.data())) {
    return Corrupt(Encoding::kSnappy, body.size(), "corrupt data");
  }
  return absl::OkStatus();
}

// Grows `out` step by step, so that a small body that claims to be huge never gets the memory.
size_t NextSize(size_t have, size_t first, size_t bytes_max) {
  return std::min(bytes_max + 1, std::max(have * 2, std::max<size_t>(first, 4096)));
}

absl::Status FromZstd(std::string_view body, size_t bytes_max, std::string& out) {
  const std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(), ZSTD_freeDStream);
  ZSTD_DCtx_setParameter(stream.get(), ZSTD_d_windowLogMax, 25);
  ZSTD_inBuffer in{body.data(), body.size(), 0};
  size_t used = 0;
  size_t left = 1;  // 0 at the end of a frame
  while (in.pos < in.size || left != 0) {
    if (used == out.size() || out.size() < 4096) out.resize(NextSize(used, body.size() * 4, bytes_max));
    ZSTD_outBuffer buffer{out.data(), out.size(), used};
    const size_t in_before = in.pos;
    left = ZSTD_decompressStream(stream.get(), &buffer, &in);
    if (ZSTD_isError(left)) return Corrupt(Encoding::kZstd, body.size(), ZSTD_getErrorName(left));
    const bool stuck = buffer.pos == used && in.pos == in_before;
    used = buffer.pos;
    if (used > bytes_max) return TooLarge(Encoding::kZstd, used, bytes_max);
    if (stuck && left != 0) return Corrupt(Encoding::kZstd, body.size(), "cut short");
  }
  out.resize(used);
  return absl::OkStatus();
}

absl::Status FromGzip(std::string_view body, size_t bytes_max, std::string& out) {
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) return absl::InternalError("zlib does not start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
  stream.avail_in = static_cast<uInt>(std::min<size_t>(body.size(), UINT32_MAX));
  size_t used = 0;
  while (true) {
    if (used == out.size() || out.size() < 4096) out.resize(NextSize(used, body.size() * 4, bytes_max));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + used);
    const size_t room = std::min<size_t>(out.size() - used, UINT32_MAX);
    stream.avail_out = static_cast<uInt>(room);
    const int code = inflate(&stream, Z_NO_FLUSH);
    used += room - stream.avail_out;
    if (used > bytes_max) return TooLarge(Encoding::kGzip, used, bytes_max);
    if (code == Z_STREAM_END) {
      if (stream.avail_in == 0) break;
      if (inflateReset(&stream) != Z_OK) return absl::InternalError("zlib does not reset");  // the next member
      continue;
    }
    if (code == Z_BUF_ERROR || (code == Z_OK && stream.avail_in == 0 && stream.avail_out > 0)) {
      return Corrupt(Encoding::kGzip, body.size(), "cut short");
    }
    if (code != Z_OK) return Corrupt(Encoding::kGzip, body.size(), stream.msg != nullptr ? stream.msg : "corrupt data");
  }
  out.resize(used);
  return absl::OkStatus();
}

}  // namespace

std::string_view ToString(Encoding encoding) {
  switch (encoding) {
    case Encoding::kIdentity:
      return "";
    case Encoding::kSnappy:
      return "snappy";
    case Encoding::kZstd:
      return "zstd";
    case Encoding::kGzip:
      return "gzip";
  }
  return "";
}

absl::Status Uncompress(Encoding encoding, std::string_view body, size_t bytes_max, std::string& out) {
  switch (encoding) {
    case Encoding::kIdentity:
      if (body.size() > bytes_max) return TooLarge(encoding, body.size(), bytes_max);
      out.assign(body);
      return absl::OkStatus();
    case Encoding::kSnappy:
      return FromSnappy(body, bytes_max, out);
    case Encoding::kZstd:
      return FromZstd(body, bytes_max, out);
    case Encoding::kGzip:
      return FromGzip(body, bytes_max, out);
  }
  return absl::InternalError("no such encoding");
}

}  // namespace varve::decode
