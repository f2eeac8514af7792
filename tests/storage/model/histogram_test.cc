#include "storage/model/histogram.h"

#include <catch2/catch.hpp>
#include <functional>
#include <limits>

#include "storage/base/strings.h"
#include "storage/model/time_range.h"
#include "storage/model/write_result.h"

namespace varve::model {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Histogram Exponential() {
  Histogram h;
  h.integer = true;
  h.schema = 3;
  h.zero_threshold = 0.001;
  h.zero_count = 2;
  h.positive_spans = {{-4, 2}, {3, 1}};
  h.positive_buckets = {1, 2, 3};
  h.negative_spans = {{0, 1}};
  h.negative_buckets = {4};
  h.count = 12;
  h.sum = 18.4;
  return h;
}
Histogram Custom() {
  Histogram h;
  h.schema = kCustomBucketsSchema;
  h.custom_values = {1, 2, 5};
  h.positive_spans = {{0, 2}, {1, 1}};
  h.positive_buckets = {1, 2, 3};
  h.count = 6;
  h.sum = 20;
  h.integer = true;
  return h;
}

TEST_CASE("sound histograms pass") {
  CHECK(Validate(Exponential()).ok());
  CHECK(Validate(Custom()).ok());
  CHECK(Validate(Histogram()).ok());
  Histogram h = Exponential();
  h.sum = NormalNan();  // NaN observations are counted but in no bucket
  h.count = 15;
  CHECK(Validate(h).ok());
  h.sum = kInf;
  h.count = 12;
  CHECK(Validate(h).ok());
  h = Custom();
  h.custom_values = {};
  h.positive_spans = {{0, 1}};
  h.positive_buckets = {6};
  CHECK(Validate(h).ok());  // only the bucket to +Inf
}

TEST_CASE("a staleness marker passes whatever else it holds") {
  Histogram h;
  h.sum = StaleNan();
  h.schema = 99;
  CHECK(h.IsStale());
  CHECK(Validate(h).ok());
}

TEST_CASE("unsound histograms are refused with a stable reason") {
  struct Case {
    std::string reason;
    std::function<void(Histogram&)> spoil;
  };
  const std::vector<Case> exponential = {
      {"schema", [](Histogram& h) { h.schema = 9; }},
      {"schema", [](Histogram& h) { h.schema = -5; }},
      {"schema", [](Histogram& h) { h.schema = -52; }},
      {"negative-offset", [](Histogram& h) { h.positive_spans[1].offset = -1; }},
      {"mismatch", [](Histogram& h) { h.positive_spans[1].length = 2; }},
      {"mismatch", [](Histogram& h) { h.positive_spans.clear(); }},
      {"mismatch", [](Histogram& h) { h.negative_buckets.push_back(0); }},
      {"mismatch", [](Histogram& h) { h.positive_spans = {{0, UINT32_MAX}, {0, 4}}; }},  // the sum wraps in 32 bits
      {"negative-bucket-count", [](Histogram& h) { h.positive_buckets[0] = -1; }},
      {"negative-bucket-count", [](Histogram& h) { h.negative_buckets[0] = NormalNan(); }},
      {"negative-bucket-count", [](Histogram& h) { h.zero_count = -2; }},
      {"negative-count", [](Histogram& h) { h.count = -1; }},
      {"negative-count", [](Histogram& h) { h.count = NormalNan(); }},
      {"count-mismatch", [](Histogram& h) { h.count = 13; }},
      {"count-mismatch", [](Histogram& h) { h.sum = NormalNan(), h.count = 11; }},
      {"custom", [](Histogram& h) { h.custom_values = {1}; }},
      {"too-large", [](Histogram& h) { h.count = 0x1p53 + 2, h.positive_buckets[0] += 0x1p53; }},
  };
  for (const Case& c : exponential) {
    Histogram h = Exponential();
    c.spoil(h);
    const absl::Status status = Validate(h);
    CAPTURE(c.reason, std::string(base::Message(status)));
    CHECK(absl::IsInvalidArgument(status));
    CHECK(base::Message(status).find(c.reason) != std::string_view::npos);
  }
  const std::vector<Case> custom = {
      {"custom", [](Histogram& h) { h.custom_values = {1, 1, 2}; }},
      {"custom", [](Histogram& h) { h.custom_values = {2, 1, 3}; }},
      {"custom", [](Histogram& h) { h.custom_values = {1, 2, kInf}; }},
      {"custom", [](Histogram& h) { h.custom_values = {1, NormalNan(), 3}; }},
      {"custom", [](Histogram& h) { h.custom_values = {1}; }},  // more buckets than bounds
      {"custom", [](Histogram& h) { h.positive_spans[0].offset = -1; }},
      {"custom", [](Histogram& h) { h.positive_spans[1].offset = 2; }},
      {"custom", [](Histogram& h) { h.zero_count = 1, h.count = 7; }},
      {"custom", [](Histogram& h) { h.negative_spans = {{0, 1}}, h.negative_buckets = {1}, h.count = 7; }},
  };
  for (const Case& c : custom) {
    Histogram h = Custom();
    c.spoil(h);
    CHECK(absl::IsInvalidArgument(Validate(h)));
    CHECK(base::Message(Validate(h)).find(c.reason) != std::string_view::npos);
  }
}

TEST_CASE("identical means every bit of every field") {
  const std::vector<std::function<void(Histogram&)>> changes = {
      [](Histogram& h) { h.hint = ResetHint::kGauge; },
      [](Histogram& h) { h.integer = false; },
      [](Histogram& h) { h.schema = 2; },
      [](Histogram& h) { h.zero_threshold = 0; },
      [](Histogram& h) { h.zero_count = 3; },
      [](Histogram& h) { h.count = 13; },
      [](Histogram& h) { h.sum = -18.4; },
      [](Histogram& h) { h.positive_spans[0].offset = 7; },
      [](Histogram& h) { h.negative_spans.clear(); },
      [](Histogram& h) { h.positive_buckets[2] = 0; },
      [](Histogram& h) { h.negative_buckets = {}; },
      [](Histogram& h) { h.custom_values = {1}; },
  };
  CHECK(Identical(Exponential(), Exponential()));
  for (const auto& change : changes) {
    Histogram h = Exponential();
    change(h);
    CHECK_FALSE(Identical(h, Exponential()));
  }
  Histogram nan = Exponential(), stale = Exponential();
  nan.sum = NormalNan();
  stale.sum = StaleNan();
  CHECK_FALSE(Identical(nan, stale));
  CHECK(Identical(nan, nan));
}

TEST_CASE("time ranges are open on the left and closed on the right") {
  const TimeRange range{10, 20};
  CHECK_FALSE(range.Contains(10));
  CHECK(range.Contains(11));
  CHECK(range.Contains(20));
  CHECK_FALSE(range.Contains(21));
  CHECK(TimeRange::Closed(10, 20).Contains(10));
  CHECK(TimeRange::All().Contains(INT64_MAX));
  CHECK(TimeRange{5, 5}.empty());
  CHECK(range.Overlaps(20, 30));
  CHECK_FALSE(range.Overlaps(21, 30));
  CHECK_FALSE(range.Overlaps(0, 10));
  CHECK(range.Overlaps(0, 11));
  CHECK(TimeRange::Closed(INT64_MIN, 0).Contains(0));
}

TEST_CASE("write results add up and keep few examples") {
  WriteResult a, b;
  CHECK(a.AllStored());
  a.samples_stored = 5;
  for (int i = 0; i < 10; ++i) a.Reject(Reason::kTooOld, 2, base::StrCat("a", i));
  b.samples_stored = 7;
  b.Reject(Reason::kTooOld, 1, "b");
  b.Reject(Reason::kSeriesLimit, 4, "c");
  a.MergeFrom(b);
  CHECK_FALSE(a.AllStored());
  CHECK(a.samples_stored == 12);
  CHECK(a.SamplesRejected() == 25);
  const Rejection& old = a.rejections[static_cast<size_t>(Reason::kTooOld)];
  CHECK(old.samples == 21);
  CHECK(old.series == 11);
  CHECK(old.examples == std::vector<std::string>{"a0", "a1", "a2"});
  CHECK(a.rejections[static_cast<size_t>(Reason::kSeriesLimit)].examples == std::vector<std::string>{"c"});
  for (size_t i = 0; i < static_cast<size_t>(Reason::kCount); ++i) {
    CHECK_FALSE(ToString(static_cast<Reason>(i)).empty());
  }
}

}  // namespace
}  // namespace varve::model
