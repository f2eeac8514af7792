#include "storage/base/bytes.h"

#include <catch2/catch.hpp>
#include <limits>

#include "storage/base/crc32c.h"
#include "storage/base/dice.h"

namespace varve::base {
namespace {

TEST_CASE("integers of every kind come back") {
  std::string out;
  PutU8(out, 200);
  PutFixed<uint16_t>(out, 65535);
  PutFixed<uint32_t>(out, 0xDEADBEEF);
  PutFixed<double>(out, -0.5);
  PutSigned(out, std::numeric_limits<int64_t>::min());
  PutSigned(out, -1);
  PutBytes(out, "text");
  PutBytes(out, "");
  ByteReader in(out);
  CHECK(in.U8() == 200);
  CHECK(in.Fixed<uint16_t>() == 65535);
  CHECK(in.Fixed<uint32_t>() == 0xDEADBEEF);
  CHECK(in.Fixed<double>() == -0.5);
  CHECK(in.Signed() == std::numeric_limits<int64_t>::min());
  CHECK(in.Signed() == -1);
  CHECK(in.Bytes() == "text");
  CHECK(in.Bytes().empty());
  CHECK(in.ok());
  CHECK(in.AtEnd());
}

TEST_CASE("varints of every length come back and are minimal") {
  for (int bit = 0; bit < 64; ++bit) {
    for (const int64_t off : {-1, 0, 1}) {
      const uint64_t v = (uint64_t{1} << bit) + static_cast<uint64_t>(off);
      std::string out;
      PutVarint(out, v);
      size_t expected = 1;
      for (uint64_t rest = v >> 7; rest != 0; rest >>= 7) ++expected;
      CHECK(out.size() == expected);
      ByteReader in(out);
      CHECK(in.Varint() == v);
      CHECK(in.AtEnd());
      CHECK(in.ok());
    }
  }
}

TEST_CASE("varints beyond 64 bits or cut short are bad") {
  for (const std::string& bytes : {std::string(), std::string("\x80"), std::string(9, '\xFF'), std::string(10, '\xFF'),
                                   std::string(9, '\xFF') + '\x02', std::string(11, '\x80') + '\x01'}) {
    ByteReader in(bytes);
    CHECK(in.Varint() == 0);
    CHECK_FALSE(in.ok());
    CHECK(in.AtEnd());
  }
  ByteReader max(std::string_view("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"));
  CHECK(max.Varint() == std::numeric_limits<uint64_t>::max());
  CHECK(max.ok());
}

TEST_CASE("a reader that ran over its end stays bad and gives zeros") {
  const std::string bytes =
      "\x05"
      "abc";
  ByteReader in(bytes);
  CHECK(in.Bytes().empty());
  CHECK_FALSE(in.ok());
  CHECK(in.U8() == 0);
  CHECK(in.Fixed<uint64_t>() == 0);
  CHECK(in.Take(0).empty());
  CHECK(in.left() == 0);
  ByteReader huge(std::string_view("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01xyz"));
  CHECK(huge.Bytes().empty());
  CHECK_FALSE(huge.ok());
}

TEST_CASE("zigzag keeps small numbers small") {
  CHECK(ZigZag(0) == 0);
  CHECK(ZigZag(-1) == 1);
  CHECK(ZigZag(1) == 2);
  for (const int64_t v :
       {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), int64_t{0}, int64_t{-77}}) {
    CHECK(UnZigZag(ZigZag(v)) == v);
  }
}

// RFC 3720, appendix B.4.
TEST_CASE("crc32c gives the standard's numbers") {
  CHECK(Crc32c(std::string(32, '\0')) == 0x8A9136AAu);
  CHECK(Crc32c(std::string(32, '\xFF')) == 0x62A8AB43u);
  std::string up, down;
  for (int i = 0; i < 32; ++i) up.push_back(static_cast<char>(i)), down.push_back(static_cast<char>(31 - i));
  CHECK(Crc32c(up) == 0x46DD794Eu);
  CHECK(Crc32c(down) == 0x113FDB5Cu);
  CHECK(Crc32c("123456789") == 0xE3069283u);
  CHECK(Crc32c("") == 0);
}

uint32_t BitByBit(std::string_view bytes, uint32_t crc) {
  crc = ~crc;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0);
  }
  return ~crc;
}

TEST_CASE("crc32c of any length and cut is that of the definition") {
  Dice dice(5);
  std::string bytes(20'000, '\0');
  for (char& c : bytes) c = static_cast<char>(dice.Next());
  for (int i = 0; i < 400; ++i) {
    const size_t begin = dice.Below(100);
    const size_t size = dice.OneIn(2) ? dice.Below(2000) : dice.Below(bytes.size() - begin);
    const std::string_view part = std::string_view(bytes).substr(begin, size);
    const uint32_t expected = BitByBit(part, 0);
    CHECK(Crc32c(part) == expected);
    const size_t cut = dice.Below(size + 1);
    CHECK(Crc32c(part.substr(cut), Crc32c(part.substr(0, cut))) == expected);
  }
}

}  // namespace
}  // namespace varve::base
