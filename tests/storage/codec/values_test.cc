#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "storage/codec/columns.h"
#include "storage/codec/decimal.h"
#include "storage/codec/ints.h"
#include "storage/codec/kernels.h"
#include "storage/codec/values.h"
#include "tests/storage/codec/shapes.h"

namespace varve::codec {
namespace {

bool Same(std::span<const double> a, std::span<const double> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), model::SameBits);
}

std::string Encoded(std::span<const double> values) {
  std::string bytes;
  EncodeValues(values, bytes);
  return bytes;
}

TEST_CASE("every shape of every size comes back bit for bit") {
  for (size_t shape = 0; shape < ShapeNames().size(); ++shape) {
    for (size_t n = 1; n <= 300; ++n) {
      const std::vector<double> in = MakeShape(shape, n, n);
      const std::string bytes = Encoded(in);
      INFO(ShapeNames()[shape] << " of " << n);
      std::string plain_bytes;
      PutValues(in, plain_bytes, PlainKernels());
      REQUIRE(bytes == plain_bytes);
      REQUIRE(bytes.size() <= 8 * n + (n + 127) / 128);
      std::vector<double> out(n);
      REQUIRE(DecodeValues(bytes, out).ok());
      REQUIRE(Same(in, out));
      base::ByteReader reader(bytes);
      std::vector<double> plain(n);
      REQUIRE(TakeValues(reader, plain, PlainKernels()));
      REQUIRE(Same(in, plain));
      REQUIRE(reader.AtEnd());
    }
  }
}

TEST_CASE("a full column and its ranges") {
  base::Dice dice(4);
  for (size_t shape = 0; shape < ShapeNames().size(); ++shape) {
    const std::vector<double> in = MakeShape(shape, kColumnMax - dice.Below(200), 9);
    const std::string bytes = Encoded(in);
    std::vector<double> out(in.size());
    REQUIRE(DecodeValues(bytes, out).ok());
    REQUIRE(Same(in, out));
    for (int i = 0; i < 30; ++i) {
      const size_t begin = dice.Below(in.size() + 1), length = dice.Below(in.size() - begin + 1);
      std::vector<double> part(length);
      REQUIRE(DecodeValuesRange(bytes, in.size(), begin, part).ok());
      REQUIRE(Same(std::span(in).subspan(begin, length), part));
    }
  }
}

TEST_CASE("common shapes take few bytes") {
  const auto size_of = [](std::string_view name, size_t n) {
    const auto& names = ShapeNames();
    const auto shape = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    return Encoded(MakeShape(shape, n, 3)).size();
  };
  CHECK(size_of("zero", 32) == 2);
  CHECK(size_of("constant", 32) <= 5);
  CHECK(size_of("constant-third", 32) <= 9);
  CHECK(size_of("steady counter", 128) <= 7);
  CHECK(size_of("gauge", 128) <= 128);
  CHECK(size_of("decimal1", 128) <= 165);
  CHECK(size_of("stale end", 128) <= 15);
  CHECK(size_of("sparse", 128) <= 30);
  CHECK(size_of("float32", 128) <= 128 * 4);
}

TEST_CASE("a counter of 32 samples takes about a byte each") {
  base::Dice dice(8);
  std::vector<double> v;
  double at = 123456;
  for (int i = 0; i < 32; ++i) v.push_back(at += static_cast<double>(50 + dice.Below(40)));
  CHECK(Encoded(v).size() <= 36);
}

TEST_CASE("one outlier does not widen a sub-block") {
  std::vector<double> v(128);
  base::Dice dice(5);
  for (double& x : v) x = static_cast<double>(dice.Below(8));
  const size_t without = Encoded(v).size();
  v[77] = 1e12;
  CHECK(Encoded(v).size() <= without + 10);
  v[77] = -1e12;
  CHECK(Encoded(v).size() <= without + 14);
  v[77] = 1.0 / 3;
  CHECK(Encoded(v).size() <= without + 12);
}

TEST_CASE("a reset costs a counter a few bytes") {
  std::vector<double> v(128);
  base::Dice dice(6);
  double at = 1e9;
  for (size_t i = 0; i < v.size(); ++i) v[i] = at = (i == 60 ? 0 : at) + static_cast<double>(100 + dice.Below(16));
  const std::string bytes = Encoded(v);
  CHECK(bytes.size() <= 128 * 4 / 8 + 30);
}

TEST_CASE("decimals are found with their least exponent") {
  CHECK(LeastExponent(0, 0) == 0);
  CHECK(LeastExponent(-17, 0) == 0);
  CHECK(LeastExponent(0.5, 0) == 1);
  CHECK(LeastExponent(0.1, 0) == 1);
  CHECK(LeastExponent(1234.567, 0) == 3);
  CHECK(LeastExponent(1e-22, 0) == 22);
  CHECK(LeastExponent(0.25, 5) == 5);
  CHECK(LeastExponent(9007199254740993.0 * 512, 0) == 0);
  CHECK(LeastExponent(1.0 / 3, 0) == 16);  // 0.3333333333333333
  CHECK(LeastExponent(4.0 / 3, 0) == -1);
  CHECK(LeastExponent(-0.0, 0) == -1);
  CHECK(LeastExponent(std::numeric_limits<double>::infinity(), 0) == -1);
  CHECK(LeastExponent(std::numeric_limits<double>::quiet_NaN(), 0) == -1);
  CHECK(LeastExponent(5e-324, 0) == -1);
  CHECK(LeastExponent(1e300, 0) == -1);
  base::Dice dice(7);
  for (int i = 0; i < 20'000; ++i) {
    const int e = static_cast<int>(dice.Below(23));
    const auto m = static_cast<int64_t>(dice.Next() >> (11 + dice.Below(53)));
    const double v = static_cast<double>(m) / kPowersOfTen[e];
    const int least = LeastExponent(v, 0);
    INFO(m << " / 10^" << e);
    REQUIRE(least >= 0);
    REQUIRE(least <= e);
    int64_t back = 0;
    REQUIRE(ToMantissa(v, least, back));
    REQUIRE(model::SameBits(static_cast<double>(back) / kPowersOfTen[least], v));
  }
}

TEST_CASE("both kernels agree on any bits") {
  base::Dice dice(10);
  std::string packed(64 * 128 / 8 + kReadPad, '\0');
  for (char& c : packed) c = static_cast<char>(dice.Next());
  for (int width = 1; width <= 64; ++width) {
    for (size_t n : {size_t{1}, size_t{7}, size_t{8}, size_t{100}, size_t{128}}) {
      uint64_t a[kBlock + kWritePad] = {}, b[kBlock + kWritePad] = {};
      PlainKernels().unpack(packed.data(), width, n, a);
      BestKernels().unpack(packed.data(), width, n, b);
      REQUIRE(std::equal(a, a + n, b));
      const uint64_t carry = dice.Next(), step = dice.Next();
      double c[kBlock], d[kBlock];
      for (const double divisor : {1.0, 1e3, 1e22}) {
        PlainKernels().to_double(a, n, carry, divisor, c);
        BestKernels().to_double(b, n, carry, divisor, d);
        REQUIRE(Same({c, n}, {d, n}));
        if (width > kFusedWidthMax) continue;
        PlainKernels().packed_to_double(packed.data(), width, n, step, divisor, c);
        BestKernels().packed_to_double(packed.data(), width, n, step, divisor, d);
        REQUIRE(Same({c, n}, {d, n}));
        PlainKernels().deltas_to_double(packed.data(), width, n, carry, step, divisor, c);
        BestKernels().deltas_to_double(packed.data(), width, n, carry, step, divisor, d);
        REQUIRE(Same({c, n}, {d, n}));
      }
      PlainKernels().prefix_sum(a, n, carry, step);
      BestKernels().prefix_sum(b, n, carry, step);
      REQUIRE(std::equal(a, a + n, b));
    }
  }
}

TEST_CASE("packing any width comes back") {
  base::Dice dice(11);
  for (int width = 0; width <= 64; ++width) {
    for (size_t n = 1; n <= kBlock; n += 3) {
      uint64_t in[kBlock], out[kBlock + kWritePad];
      for (size_t i = 0; i < n; ++i) in[i] = width == 0 ? 0 : dice.Next() >> (64 - width);
      std::string bytes(PackedBytes(n, width), '\0');
      char* p = bytes.data();
      REQUIRE(PackInts(in, n, 0, width, p) == p + bytes.size());
      for (const Kernels* kernels : {&PlainKernels(), &BestKernels()}) {
        UnpackInts(bytes, width, n, *kernels, p + bytes.size(), out);
        REQUIRE(std::equal(in, in + n, out));
      }
    }
  }
}

TEST_CASE("cut or bent value bytes are data loss or values") {
  base::Dice dice(12);
  for (size_t shape = 0; shape < ShapeNames().size(); ++shape) {
    const std::vector<double> in = MakeShape(shape, 200, 1);
    const std::string bytes = Encoded(in);
    std::vector<double> out(in.size()), plain(in.size());
    for (size_t cut = 0; cut < bytes.size(); ++cut) {
      const std::string part = bytes.substr(0, cut);
      REQUIRE(DecodeValues(part, out).code() == absl::StatusCode::kDataLoss);
    }
    REQUIRE_FALSE(DecodeValues(bytes + '\0', out).ok());
    for (int i = 0; i < 2000; ++i) {
      std::string bent = bytes;
      bent[dice.Below(std::min<size_t>(bent.size(), 24))] ^= static_cast<char>(1 + dice.Below(255));
      base::ByteReader a(bent), b(bent);
      const bool ok = TakeValues(a, out);
      REQUIRE(TakeValues(b, plain, PlainKernels()) == ok);
      if (ok) REQUIRE(Same(out, plain));
    }
  }
}

}  // namespace
}  // namespace varve::codec
