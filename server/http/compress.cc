#include "server/http/compress.h"

#include <zlib.h>

#include "storage/base/strings.h"

namespace varve::http {

bool AcceptsGzip(std::string_view accept_encoding) {
  bool any = false;
  for (const std::string_view item : base::StrSplit(accept_encoding, ',')) {
    const std::vector<std::string_view> parts = base::StrSplit(item, ';');
    const std::string coding = base::AsciiLower(base::StrTrim(parts[0]));
    double weight = 1;
    for (size_t i = 1; i < parts.size(); ++i) {
      const std::string_view parameter = base::StrTrim(parts[i]);
      if (parameter.starts_with("q=") || parameter.starts_with("Q=")) {
        weight = base::ParseDouble(parameter.substr(2)).value_or(0);
      }
    }
    if (coding == "gzip" || coding == "x-gzip") return weight > 0;
    if (coding == "*") any = weight > 0;
  }
  return any;
}

bool IsCompressible(std::string_view content_type) {
  return content_type.starts_with("text/") || content_type.starts_with("application/json") ||
         content_type.starts_with("application/openmetrics-text") || content_type.starts_with("application/yaml") ||
         content_type.starts_with("application/javascript");
}

std::string Gzip(std::string_view bytes) {
  z_stream stream{};
  constexpr int kGzipWrapper = 16;
  if (deflateInit2(&stream, 1, Z_DEFLATED, MAX_WBITS + kGzipWrapper, 8, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  std::string out;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  size_t left = bytes.size();
  int result = Z_OK;
  out.resize(bytes.size() / 4 + 1024);
  size_t written = 0;
  // zlib counts in 32 bits, so large inputs and outputs go through in pieces.
  while (result == Z_OK) {
    const size_t in = std::min<size_t>(left, 1u << 30);
    if (written == out.size()) out.resize(out.size() * 2);
    const size_t room = std::min<size_t>(out.size() - written, 1u << 30);
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    result = deflate(&stream, in == left ? Z_FINISH : Z_NO_FLUSH);
    left -= in - stream.avail_in;
    written += room - stream.avail_out;
    if (result == Z_BUF_ERROR) result = Z_OK;  // only out of room
  }
  deflateEnd(&stream);
  if (result != Z_STREAM_END) return {};
  out.resize(written);
  return out;
}

}  // namespace varve::http
