#include "ingest/decode/push_format.h"

#include <catch2/catch.hpp>

namespace varve::decode {

TEST_CASE("content types choose the version", "[decode]") {
  const auto version = [](std::string_view type) {
    const auto format = ParsePushFormat(type, "snappy");
    return format.ok() ? format->version : 0;
  };
  CHECK(version("application/x-protobuf") == 1);
  CHECK(version("") == 1);
  CHECK(version("Application/X-Protobuf; charset=utf-8") == 1);
  CHECK(version("application/x-protobuf;proto=prometheus.WriteRequest") == 1);
  CHECK(version("application/x-protobuf; proto=\"io.prometheus.write.v2.Request\"") == 2);
  CHECK(version("application/x-protobuf ; Proto = io.prometheus.write.v2.Request") == 2);
  CHECK(version("application/x-protobuf;proto=io.prometheus.write.v3.Request") == 0);
  CHECK(version("application/json") == 0);
  CHECK(version("text/plain") == 0);
}

TEST_CASE("content encodings are known or a 415", "[decode]") {
  CHECK(ParsePushFormat("", "")->encoding == Encoding::kSnappy);
  CHECK(ParsePushFormat("", "Snappy")->encoding == Encoding::kSnappy);
  CHECK(ParsePushFormat("", "zstd")->encoding == Encoding::kZstd);
  CHECK(ParsePushFormat("", "gzip")->encoding == Encoding::kGzip);
  CHECK(ParsePushFormat("", "identity")->encoding == Encoding::kIdentity);
  const auto bad = ParsePushFormat("", "br");
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.status().code() == absl::StatusCode::kUnimplemented);
  CHECK(std::string(base::Message(bad.status())).find("want snappy, zstd, gzip or identity") != std::string::npos);
}

}  // namespace varve::decode
