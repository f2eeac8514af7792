#include "storage/codec/columns.h"

#include <catch2/catch.hpp>
#include <limits>

#include "storage/base/dice.h"

namespace varve::codec {
namespace {

void CheckValues(const std::vector<double>& in) {
  std::string bytes;
  EncodeValues(in, bytes);
  std::vector<double> out(in.size());
  const absl::Status status = DecodeValues(bytes, out);
  REQUIRE(status.ok());
  for (size_t i = 0; i < in.size(); ++i) {
    INFO(i << " of " << in.size());
    REQUIRE(std::bit_cast<uint64_t>(out[i]) == std::bit_cast<uint64_t>(in[i]));
  }
}

TEST_CASE("values of every size round-trip") {
  base::Dice dice(1);
  for (size_t size = 1; size <= 300; ++size) {
    std::vector<double> constant(size, 42), random(size);
    for (double& v : random) v = std::bit_cast<double>(dice.Next());
    CheckValues(constant);
    CheckValues(random);
  }
}

TEST_CASE("times of every size round-trip") {
  base::Dice dice(2);
  for (size_t size = 1; size <= 300; ++size) {
    std::vector<int64_t> in, out;
    int64_t t = 1'700'000'000'000;
    for (size_t i = 0; i < size; ++i) in.push_back(t += 1000 + dice.Between(-3, 3));
    std::string bytes;
    EncodeTimes(in, bytes);
    REQUIRE(DecodeTimes(bytes, out).ok());
    REQUIRE(out == in);
  }
}

TEST_CASE("start times round-trip in all their habits") {
  std::vector<int64_t> times, starts;
  for (int i = 0; i < 200; ++i) {
    times.push_back(1'000'000 + i * 1000);
    starts.push_back(i < 50 ? 0 : i < 100 ? 999'999 : i < 150 ? times.back() - 1000 : times[i - 1]);
  }
  std::string bytes;
  EncodeStartTimes(starts, times, bytes);
  CHECK(bytes.size() < 30);
  std::vector<int64_t> out(times.size());
  REQUIRE(DecodeStartTimes(bytes, times, out).ok());
  CHECK(out == starts);
}

TEST_CASE("histograms round-trip alone and in a column") {
  base::Dice dice(3);
  std::vector<std::shared_ptr<const model::Histogram>> in, out;
  for (int i = 0; i < 100; ++i) {
    model::Histogram h;
    h.hint = static_cast<model::ResetHint>(dice.Below(4));
    h.integer = i % 3 != 0;
    h.schema = i < 50 ? 3 : 2;
    h.zero_threshold = 0x1p-128;
    h.zero_count = i > 70 ? i : 0;
    h.count = 100 + i;
    h.sum = i == 99 ? model::StaleNan() : 0.1 * i;
    h.positive_spans = {{-3, 2}, {1, 3}};
    h.positive_buckets = {1.0 * i, 2, 3, 4.5, 5};
    if (i > 80) h.negative_spans = {{0, 1}}, h.negative_buckets = {7};
    std::string bytes;
    EncodeHistogram(h, bytes);
    const auto back = DecodeHistogram(bytes);
    REQUIRE(back.ok());
    REQUIRE(model::Identical(*back, h));
    in.push_back(std::make_shared<model::Histogram>(h));
  }
  std::string bytes;
  EncodeHistograms(in, bytes);
  REQUIRE(DecodeHistograms(bytes, in.size(), out).ok());
  REQUIRE(out.size() == in.size());
  for (size_t i = 0; i < in.size(); ++i) REQUIRE(model::Identical(*in[i], *out[i]));
}

}  // namespace
}  // namespace varve::codec
