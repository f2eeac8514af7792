// Whatever the bytes, a decoder answers with values or with DataLoss; it neither overruns nor asks for much memory.
#include <catch2/catch.hpp>

#include "storage/base/bytes.h"
#include "storage/base/dice.h"
#include "storage/codec/columns.h"

namespace varve::codec {
namespace {

TEST_CASE("bent time columns are data loss or ascending times") {
  base::Dice dice(1);
  std::vector<int64_t> in, out;
  int64_t t = 1'700'000'000'000;
  for (int i = 0; i < 300; ++i) in.push_back(t += 15'000 + dice.Between(-5, 5));
  std::string bytes;
  EncodeTimes(in, bytes);
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    out.clear();
    REQUIRE(absl::IsDataLoss(DecodeTimes(bytes.substr(0, cut), out)));
    REQUIRE(out.empty());
  }
  REQUIRE(absl::IsDataLoss(DecodeTimes(bytes + '\0', out)));
  for (int i = 0; i < 20'000; ++i) {
    std::string bent = bytes;
    bent[dice.Below(i % 2 ? 16 : bent.size())] ^= static_cast<char>(1 + dice.Below(255));
    out.clear();
    if (!DecodeTimes(bent, out).ok()) continue;
    for (size_t k = 1; k < out.size(); ++k) REQUIRE(out[k - 1] < out[k]);
  }
}

TEST_CASE("times are appended") {
  std::vector<int64_t> out = {7};
  std::string bytes;
  EncodeTimes(std::vector<int64_t>{1, 2, 4}, bytes);
  REQUIRE(DecodeTimes(bytes, out).ok());
  CHECK(out == std::vector<int64_t>{7, 1, 2, 4});
}

TEST_CASE("bent start times are data loss or start times") {
  base::Dice dice(2);
  std::vector<int64_t> times, starts;
  for (int i = 0; i < 60; ++i) {
    times.push_back(1000 * i);
    starts.push_back(i < 20 ? 0 : i < 40 ? 17 : times.back() - 10);
  }
  std::string bytes;
  EncodeStartTimes(starts, times, bytes);
  std::vector<int64_t> out(times.size());
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    REQUIRE(absl::IsDataLoss(DecodeStartTimes(bytes.substr(0, cut), times, out)));
  }
  REQUIRE(absl::IsDataLoss(DecodeStartTimes(bytes + '\0', times, out)));
  for (int i = 0; i < 2000; ++i) {
    std::string bent = bytes;
    bent[dice.Below(bent.size())] ^= static_cast<char>(1 + dice.Below(255));
    const absl::Status status = DecodeStartTimes(bent, times, out);
    REQUIRE((status.ok() || absl::IsDataLoss(status)));
  }
}

TEST_CASE("bent histograms are data loss or histograms") {
  base::Dice dice(3);
  std::vector<std::shared_ptr<const model::Histogram>> in, out;
  for (int i = 0; i < 12; ++i) {
    model::Histogram h;
    h.schema = i < 6 ? 2 : model::kCustomBucketsSchema;
    h.positive_spans = {{0, 3}, {2, 1}};
    h.positive_buckets = {1.0 * i, 2, 0.1, 3};
    if (i < 6) h.negative_spans = {{1, 1}}, h.negative_buckets = {static_cast<double>(i * i)};
    if (i >= 6) h.custom_values = {1, 2, 3, 4, 5};
    h.count = 99;
    in.push_back(std::make_shared<model::Histogram>(h));
  }
  std::string bytes, one;
  EncodeHistograms(in, bytes);
  EncodeHistogram(*in[0], one);
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    REQUIRE(absl::IsDataLoss(DecodeHistograms(bytes.substr(0, cut), in.size(), out)));
    REQUIRE(out.empty());
  }
  for (size_t cut = 0; cut < one.size(); ++cut) REQUIRE_FALSE(DecodeHistogram(one.substr(0, cut)).ok());
  REQUIRE_FALSE(DecodeHistogram(one + '\0').ok());
  REQUIRE(absl::IsDataLoss(DecodeHistograms(bytes, in.size() - 1, out)));
  REQUIRE(absl::IsDataLoss(DecodeHistograms(bytes, in.size() + 1, out)));
  for (int i = 0; i < 20'000; ++i) {
    std::string bent = bytes, bent_one = one;
    for (std::string* each : {&bent, &bent_one}) {
      (*each)[dice.Below(each->size())] ^= static_cast<char>(1 + dice.Below(255));
    }
    out.clear();
    const absl::Status status = DecodeHistograms(bent, in.size(), out);
    REQUIRE((status.ok() || absl::IsDataLoss(status)));
    const auto single = DecodeHistogram(bent_one);
    REQUIRE((single.ok() || absl::IsDataLoss(single.status())));
  }
}

TEST_CASE("a few bytes cannot ask for much memory") {
  std::string bytes;
  base::PutU8(bytes, 1);                    // version
  base::PutVarint(bytes, kColumnMax << 2);  // hints
  base::PutVarint(bytes, kColumnMax);       // one run
  base::PutU8(bytes, 16);
  base::PutSigned(bytes, 0);
  base::PutVarint(bytes, 1);
  base::PutSigned(bytes, 0);
  base::PutVarint(bytes, 100'000);  // a span
  base::PutVarint(bytes, 100'000);  // that many buckets
  bytes += std::string(4000, '\0');
  std::vector<std::shared_ptr<const model::Histogram>> out;
  CHECK(absl::IsDataLoss(DecodeHistograms(bytes, kColumnMax, out)));
}

TEST_CASE("histograms with very many buckets round-trip") {
  model::Histogram h;
  h.positive_spans = {{0, 10'000}};
  for (int i = 0; i < 10'000; ++i) h.positive_buckets.push_back(i % 17);
  h.count = 1e6;
  std::vector<std::shared_ptr<const model::Histogram>> in(40, std::make_shared<model::Histogram>(h)), out;
  std::string bytes;
  EncodeHistograms(in, bytes);
  REQUIRE(DecodeHistograms(bytes, in.size(), out).ok());
  for (const auto& each : out) REQUIRE(model::Identical(*each, h));
  bytes.clear();
  EncodeHistogram(h, bytes);
  REQUIRE(model::Identical(*DecodeHistogram(bytes), h));
}

}  // namespace
}  // namespace varve::codec
