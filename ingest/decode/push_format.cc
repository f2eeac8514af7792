#include "ingest/decode/push_format.h"

#include "storage/base/strings.h"

namespace varve::decode {

namespace {

std::string_view Unquote(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') return text.substr(1, text.size() - 2);
  return text;
}

}  // namespace

absl::StatusOr<PushFormat> ParsePushFormat(std::string_view content_type, std::string_view content_encoding) {
  PushFormat format;
  const std::vector<std::string_view> parts = base::StrSplit(content_type, ';');
  const std::string media = base::AsciiLower(base::StrTrim(parts[0]));
  // Senders of before 1.0 may leave the type out.
  if (!media.empty() && media != "application/x-protobuf") {
    return absl::UnimplementedError(
        base::StrCat("Content-Type is ", base::QuoteGo(content_type),
                     ", want application/x-protobuf, with ;proto=prometheus.WriteRequest or "
                     ";proto=io.prometheus.write.v2.Request"));
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t equals = parts[i].find('=');
    if (equals == std::string_view::npos || base::AsciiLower(base::StrTrim(parts[i].substr(0, equals))) != "proto")
      continue;
    const std::string_view message = Unquote(base::StrTrim(parts[i].substr(equals + 1)));
    if (message == "prometheus.WriteRequest") {
      format.version = 1;
    } else if (message == "io.prometheus.write.v2.Request") {
      format.version = 2;
    } else {
      return absl::UnimplementedError(base::StrCat("Content-Type names the message ", base::QuoteGo(message),
                                                   ", want prometheus.WriteRequest or io.prometheus.write.v2.Request"));
    }
  }
  const std::string encoding = base::AsciiLower(base::StrTrim(content_encoding));
  if (encoding.empty() || encoding == "snappy")
    format.encoding = Encoding::kSnappy;
  else if (encoding == "zstd")
    format.encoding = Encoding::kZstd;
  else if (encoding == "gzip")
    format.encoding = Encoding::kGzip;
  else if (encoding == "identity")
    format.encoding = Encoding::kIdentity;
  else
    return absl::UnimplementedError(
        base::StrCat("Content-Encoding is ", base::QuoteGo(content_encoding), ", want snappy, zstd, gzip or identity"));
  return format;
}

}  // namespace varve::decode
