#pragma once
// Content-Encoding of request bodies.
#include <string>
#include <string_view>

#include "storage/base/status.h"

namespace varve::decode {

enum class Encoding { kIdentity, kSnappy, kZstd, kGzip };
std::string_view ToString(Encoding encoding);  // as in Content-Encoding; "" for kIdentity

// Replaces `out` by the uncompressed body; `out` keeps its capacity between calls. Snappy is the block format. Refuses
// with OutOfRange what would be larger than `bytes_max`, before that much is allocated; InvalidArgument when the bytes
// are not what `encoding` says.
absl::Status Uncompress(Encoding encoding, std::string_view body, size_t bytes_max, std::string& out);

}  // namespace varve::decode
