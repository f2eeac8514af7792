// The bytes of version 1. If one of these fails, data on disks can no longer be read: make a new version instead.
#include <catch2/catch.hpp>
#include <limits>

#include "storage/codec/columns.h"

namespace varve::codec {
namespace {

std::string Hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += kDigits[static_cast<uint8_t>(c) >> 4];
    out += kDigits[c & 15];
  }
  return out;
}

std::string Values(const std::vector<double>& values) {
  std::string bytes;
  EncodeValues(values, bytes);
  std::vector<double> back(values.size());
  REQUIRE(DecodeValues(bytes, back).ok());
  return Hex(bytes);
}

TEST_CASE("golden values") {
  CHECK(Values({0}) == "0000");
  CHECK(Values({1.5, 1.5, 1.5}) == "011e");
  CHECK(Values({1.0 / 7, 1.0 / 7}) == "1f922449922449c23f");
  CHECK(Values({100, 110, 120, 130}) == "20c80114");
  CHECK(Values({3, 1, 4, 1, 5, 9, 2, 6}) == "40040202038451");
  CHECK(Values({1000, 1003, 1004, 1009, 1011, 1018, 1020}) == "6003d00f0202e300");
  CHECK(Values({0, 1, 3, 6, 10, 15, 21, 28, 36, 44, 53}) == "80010002007f01");
  CHECK(Values({21.5, 21.4, 21.4, 21.7, 22.25}) == "8205cc211314803e");
  std::vector<double> sparse(40, 7);
  for (size_t i = 17; i < 40; ++i) sparse[i] = 12;
  CHECK(Values(sparse) == "a004010e100a");
  std::vector<double> outlier = {1, 2, 3, 2, 1, 3, 1, 2, 1, 2, 3, 2, 1, 3, 1, 2, 1, 2, 3, 2, 1, 3, 1, 2};
  outlier[5] = 1e9;
  CHECK(Values(outlier) == "4082011c02644c64486448057fb2e60e");
  std::vector<double> stale(10, 4);
  stale[9] = model::StaleNan();
  CHECK(Values(stale) == "1700080189");
  stale[8] = -0.0;
  CHECK(Values(stale) == "bf40020000000000001040800100000000000010c0020000000000f0ff");
  CHECK(Values({static_cast<double>(1.1f), static_cast<double>(2.3f), static_cast<double>(1.7f)}) ==
        "df1d22000000a09999f13ffeff9fffa7aa2aff0f");
  CHECK(Values({0x1.23456789abcdep-1000, -0x1.fedcba9876543p+999}) == "ffdebc9a7856347201436587a9cbed6ffe");
}

TEST_CASE("golden times") {
  const auto times = [](const std::vector<int64_t>& in) {
    std::string bytes;
    EncodeTimes(in, bytes);
    std::vector<int64_t> back;
    REQUIRE(DecodeTimes(bytes, back).ok());
    REQUIRE(back == in);
    return Hex(bytes);
  };
  CHECK(times({1'700'000'000'000}) == "0380a0abfef962");
  CHECK(times({1'700'000'000'000, 1'700'000'015'000, 1'700'000'030'000}) == "0780a0abfef9629875");
  CHECK(times({-5, 0, 7, 11, 19, 24}) == "0c094003081918");
  CHECK(times({std::numeric_limits<int64_t>::min(), 0, std::numeric_limits<int64_t>::max()}) ==
        "06ffffffffffffffffff0120ffffffffffffffffff0101");
}

TEST_CASE("golden start times") {
  const std::vector<int64_t> times = {1000, 2000, 3000, 4000, 5000, 6000}, starts = {0, 0, 2500, 2500, 4000, 5000};
  std::string bytes;
  EncodeStartTimes(starts, times, bytes);
  CHECK(Hex(bytes) == "0809e8070b");
}

TEST_CASE("golden histograms") {
  model::Histogram h;
  h.hint = model::ResetHint::kNotReset;
  h.integer = true;
  h.schema = 3;
  h.zero_threshold = 0x1p-128;
  h.zero_count = 2;
  h.count = 12;
  h.sum = 18.5;
  h.positive_spans = {{-2, 2}, {3, 1}};
  h.positive_buckets = {1, 4, 5};
  std::string bytes;
  EncodeHistogram(h, bytes);
  CHECK(Hex(bytes) == "061306020302060103001801f20200044003021801");
  model::Histogram custom;
  custom.schema = model::kCustomBucketsSchema;
  custom.custom_values = {0.5, 1, 2.5};
  custom.count = custom.sum = 3;
  custom.positive_spans = {{1, 1}};
  custom.positive_buckets = {3};
  model::Histogram later = h;
  later.count += 1;
  later.positive_buckets[2] += 1;
  std::vector<std::shared_ptr<const model::Histogram>> column;
  for (const model::Histogram& each : {h, later, custom}) column.push_back(std::make_shared<model::Histogram>(each));
  bytes.clear();
  EncodeHistograms(column, bytes);
  CHECK(Hex(bytes) ==
        "010a0402130602030206010320180201f202000400020008200a020108690000010201010341050aa050000600060006");
}

}  // namespace
}  // namespace varve::codec
