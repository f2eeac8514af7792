#pragma once
// What a write request says about itself.
#include <string_view>

#include "ingest/decode/encoding.h"
#include "storage/base/status.h"

namespace varve::decode {

struct PushFormat {
  int version = 1;  // of remote write
  Encoding encoding = Encoding::kSnappy;
};
// Reads Content-Type and Content-Encoding. The error is Unimplemented, and its message the text of a 415 answer.
//   application/x-protobuf                                              1
//   application/x-protobuf;proto=prometheus.WriteRequest                1
//   application/x-protobuf;proto=io.prometheus.write.v2.Request         2
// Encodings: snappy, zstd, gzip, identity; none means snappy, since 0.1.0 senders may leave it out.
absl::StatusOr<PushFormat> ParsePushFormat(std::string_view content_type, std::string_view content_encoding);

}  // namespace varve::decode
