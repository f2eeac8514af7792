#include "ingest/decode/encoding.h"

#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <catch2/catch.hpp>

#include "storage/base/bytes.h"
#include "storage/base/dice.h"

namespace varve::decode {

namespace {

std::string Text(size_t size) {
  base::Dice dice(7);
  std::string out;
  while (out.size() < size)
    out += dice.OneIn(3) ? "http_requests_total" : std::string(1, static_cast<char>(dice.Next()));
  out.resize(size);
  return out;
}
std::string Compress(Encoding encoding, const std::string& text) {
  std::string out;
  switch (encoding) {
    case Encoding::kIdentity:
      return text;
    case Encoding::kSnappy:
      snappy::Compress(text.data(), text.size(), &out);
      return out;
    case Encoding::kZstd:
      out.resize(ZSTD_compressBound(text.size()));
      out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 1));
      return out;
    case Encoding::kGzip: {
      z_stream stream{};
      deflateInit2(&stream, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
      out.resize(deflateBound(&stream, text.size()) + 64);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
      stream.avail_in = static_cast<uInt>(text.size());
      stream.next_out = reinterpret_cast<Bytef*>(out.data());
      stream.avail_out = static_cast<uInt>(out.size());
      deflate(&stream, Z_FINISH);
      out.resize(stream.total_out);
      deflateEnd(&stream);
      return out;
    }
  }
  return out;
}

}  // namespace

TEST_CASE("bodies come back whole in every encoding", "[decode]") {
  std::string out = "left over";
  for (const Encoding encoding : {Encoding::kIdentity, Encoding::kSnappy, Encoding::kZstd, Encoding::kGzip}) {
    for (const size_t size : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{300'000}}) {
      CAPTURE(ToString(encoding), size);
      const std::string text = Text(size);
      REQUIRE(Uncompress(encoding, Compress(encoding, text), size, out).ok());
      REQUIRE(out == text);
    }
  }
}

TEST_CASE("bodies beyond the limit are refused before they take memory", "[decode]") {
  const std::string text(1 << 20, 'x');
  for (const Encoding encoding : {Encoding::kIdentity, Encoding::kSnappy, Encoding::kZstd, Encoding::kGzip}) {
    CAPTURE(ToString(encoding));
    std::string out;
    CHECK(Uncompress(encoding, Compress(encoding, text), text.size() - 1, out).code() == absl::StatusCode::kOutOfRange);
    CHECK(out.capacity() <= 2 * text.size());
  }
  std::string lie, out;
  base::PutVarint(lie, 30 << 20);
  lie += "abc";
  CHECK(Uncompress(Encoding::kSnappy, lie, 32 << 20, out).code() == absl::StatusCode::kInvalidArgument);
  CHECK(out.capacity() < 1000);
}

TEST_CASE("cut and garbled bodies are errors", "[decode]") {
  const std::string text = Text(5000);
  std::string out;
  for (const Encoding encoding : {Encoding::kSnappy, Encoding::kZstd, Encoding::kGzip}) {
    const std::string body = Compress(encoding, text);
    for (size_t cut = 0; cut < body.size(); cut += 97) {
      CAPTURE(ToString(encoding), cut);
      CHECK(Uncompress(encoding, body.substr(0, cut), 1 << 20, out).code() == absl::StatusCode::kInvalidArgument);
    }
    CHECK_FALSE(Uncompress(encoding, "this is not compressed at all", 1 << 20, out).ok());
  }
}

}  // namespace varve::decode
