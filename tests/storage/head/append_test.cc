#include <catch2/catch.hpp>

#include "tests/storage/head/world.h"

namespace varve::test {
namespace {

using model::Reason;

const model::Labels kA = model::Labels::Of({{"__name__", "cpu"}, {"host", "a"}});
const model::Labels kB = model::Labels::Of({{"__name__", "cpu"}, {"host", "b"}});

uint64_t Refused(const model::WriteResult& r, Reason reason) {
  return r.rejections[static_cast<size_t>(reason)].samples;
}
std::string Example(const model::WriteResult& r, Reason reason) {
  const auto& examples = r.rejections[static_cast<size_t>(reason)].examples;
  return examples.empty() ? "" : examples[0];
}

TEST_CASE("samples come back in order of time and labels", "[head]") {
  World w;
  w.Append(kB, 1000, 1);
  w.Append(kA, 1000, 2);
  w.Append(kA, 2000, 3);
  const auto s = w.Select();
  CHECK(Dump(*s) == "cpu{host=\"a\"} 1000:2 2000:3\ncpu{host=\"b\"} 1000:1\n");
  CHECK(s->hash(0) == model::HashLabels(kA.bytes(), kSeed));
}

TEST_CASE("a late sample is accepted inside the window and refused outside", "[head]") {
  World w;
  w.limits.out_of_order_window_ms = 60'000;
  w.Append(kA, 100'000, 1);
  model::WriteResult late = w.Append(kA, 40'000, 2);
  CHECK(late.samples_stored == 1);
  CHECK(late.out_of_order == 1);
  const model::WriteResult old = w.Append(kA, 39'999, 3);
  CHECK(old.samples_stored == 0);
  CHECK(Refused(old, Reason::kTooOld) == 1);
  CHECK(Example(old, Reason::kTooOld) ==
        "cpu{host=\"a\"}: sample 3 at 39999 is 1m1ms older than the newest at 100000; limit out_of_order_window=1m");
  CHECK(Dump(*w.Select()) == "cpu{host=\"a\"} 40000:2 100000:1\n");
}

TEST_CASE("the same value again is a duplicate and another one is refused", "[head]") {
  World w;
  w.Append(kA, 1000, 1);
  w.Append(kA, 2000, 2);
  w.Append(kA, 1500, 9);
  for (const auto& [t, v] : {std::pair{1000, 1.0}, {2000, 2.0}, {1500, 9.0}}) {
    const model::WriteResult same = w.Append(kA, t, v);
    CHECK(same.samples_stored == 1);
    CHECK(same.duplicates == 1);
    CHECK(same.AllStored());
    const model::WriteResult other = w.Append(kA, t, v + 1);
    CHECK(other.samples_stored == 0);
    CHECK(Refused(other, Reason::kDuplicateTimestamp) == 1);
  }
  const int writes = w.log_writes;
  w.Append(kA, 1000, 1);
  CHECK(w.log_writes == writes);  // what is there is not logged again
  CHECK(Refused(w.Append(kA, 1000, -1), Reason::kDuplicateTimestamp) == 1);
}

TEST_CASE("duplicates are found in sealed chunks", "[head]") {
  World w;
  for (int i = 0; i < 200; ++i) w.Append(kA, 1000 * i, i);
  w.Append(kA, 500, 7);
  CHECK(w.head->stats().chunks_sealed_total > 0);
  CHECK(w.Append(kA, 3000, 3).duplicates == 1);
  CHECK(w.Append(kA, 500, 7).duplicates == 1);
  CHECK(Refused(w.Append(kA, 3000, 4), Reason::kDuplicateTimestamp) == 1);
}

TEST_CASE("zero and negative zero are two values", "[head]") {
  World w;
  w.Append(kA, 1000, 0.0);
  CHECK(Refused(w.Append(kA, 1000, -0.0), Reason::kDuplicateTimestamp) == 1);
}

TEST_CASE("time has limits", "[head]") {
  World w;
  w.limits.future_max_ms = 600'000;
  CHECK(w.Append(kA, w.now_ms + 600'000, 1).samples_stored == 1);
  const model::WriteResult future = w.Append(kB, w.now_ms + 600'001, 1);
  CHECK(Refused(future, Reason::kTooFarInFuture) == 1);
  CHECK(Example(future, Reason::kTooFarInFuture) ==
        "cpu{host=\"b\"}: sample 1 at 1000600001 is 10m1ms ahead of the server's clock at 1000000000; limit "
        "future_max=10m");
  CHECK(Refused(w.Append(kB, INT64_MAX, 1), Reason::kTimestampOutOfRange) == 1);
  CHECK(Refused(w.Append(kB, INT64_MIN, 1), Reason::kTimestampOutOfRange) == 1);
  CHECK(Refused(w.Append(kA, INT64_MIN, 1), Reason::kTimestampOutOfRange) == 1);
  CHECK(w.head->active_series() == 1);  // a series with nothing to store is not made
  CHECK(w.Append(kB, -100'000'000'000'000, 1).samples_stored == 1);
}

TEST_CASE("a label set that occurs twice sees its first occurrence", "[head]") {
  World w;
  Request request;
  request.Series(kA).Float(1000, 1).Float(2000, 2);
  request.Series(kB).Float(1000, 5);
  request.Series(kA).Float(2000, 2).Float(3000, 3).Float(2000, 4).Float(1500, 6);
  const model::WriteResult r = w.Append(request);
  CHECK(r.samples_stored == 6);
  CHECK(r.duplicates == 1);
  CHECK(r.out_of_order == 1);
  CHECK(r.series_created == 2);
  CHECK(Refused(r, Reason::kDuplicateTimestamp) == 1);
  CHECK(Dump(*w.Select()) == "cpu{host=\"a\"} 1000:1 1500:6 2000:2 3000:3\ncpu{host=\"b\"} 1000:5\n");
}

TEST_CASE("a new label set twice in one request is one series", "[head]") {
  World w;
  Request request;
  request.Series(kA).Float(1000, 1);
  request.Series(kA).Float(1000, 1);
  request.Series(kA).Float(2000, 2);
  const model::WriteResult r = w.Append(request);
  CHECK(r.series_created == 1);
  CHECK(r.duplicates == 1);
  CHECK(w.head->active_series() == 1);
}

TEST_CASE("labels in any order are one series and bad ones are refused", "[head]") {
  World w;
  w.Append(kA, 1000, 1);
  const auto label = [](std::string_view name, std::string_view value) {
    std::string inner, out;
    inner += '\x0A';
    base::PutBytes(inner, name);
    inner += '\x12';
    base::PutBytes(inner, value);
    out += '\x0A';
    base::PutBytes(out, inner);
    return out;
  };
  const std::string swapped = label("host", "a") + label("__name__", "cpu") + label("empty", "");
  const std::string twice = label("__name__", "cpu") + label("host", "a") + label("host", "b");
  const std::string broken = label("__name__", "cpu").substr(0, 6);
  Request request;
  request.Wire(swapped).Float(2000, 2);
  request.Wire(twice).Float(2000, 2);
  request.Wire(broken).Float(2000, 2).Float(3000, 2);
  const model::WriteResult r = w.Append(request);
  CHECK(r.samples_stored == 1);
  CHECK(r.series_created == 0);
  CHECK(Refused(r, Reason::kDuplicateLabelName) == 1);
  CHECK(Refused(r, Reason::kMalformedLabels) == 2);
  CHECK(Dump(*w.Select()) == "cpu{host=\"a\"} 1000:1 2000:2\n");
}

TEST_CASE("the gate keeps new series out and old ones flowing", "[head]") {
  World w;
  w.gate.series_max = 1;
  w.Append(kA, 1000, 1);
  Request request;
  request.Series(kB).Float(2000, 1).Float(3000, 1);
  request.Series(kA).Float(2000, 2);
  const model::WriteResult r = w.Append(request);
  CHECK(r.samples_stored == 1);
  CHECK(Refused(r, Reason::kSeriesLimit) == 2);
  CHECK(w.head->active_series() == 1);
}

TEST_CASE("a failed log write leaves nothing behind", "[head]") {
  World w;
  w.Append(kA, 1000, 1);
  Request request;
  request.Series(kA).Float(2000, 2);
  request.Series(kB).Float(2000, 3).Hist(2500, {}).Example({model::Labels::Of({{"trace_id", "x"}}), 1, 2000});
  w.log_failures = 1;
  model::WriteResult r;
  CHECK(absl::IsResourceExhausted(w.TryAppend(request, r)));
  CHECK(r.samples_stored == 0);
  CHECK(r.histograms_stored == 0);
  CHECK(r.series_created == 0);
  CHECK(Dump(*w.Select()) == "cpu{host=\"a\"} 1000:1\n");
  CHECK(w.head->LabelValues("host", {})->size() == 1);
  CHECK(w.head->stats().exemplars == 0);
  r = w.Append(request);  // the sender tries again
  CHECK(r.samples_stored == 2);
  CHECK(r.series_created == 1);
  CHECK(r.duplicates == 0);
  w.Restart();
  CHECK(Dump(*w.Select()) == "cpu{host=\"a\"} 1000:1 2000:2\ncpu{host=\"b\"} 2000:3 2500:h0/unknown\n");
}

TEST_CASE("a staleness marker takes the shape of its series", "[head]") {
  World w;
  Request request;
  model::Histogram h;
  h.count = 4;
  request.Series(kA).Hist(1000, h);
  w.Append(request);
  CHECK(w.Append(kA, 2000, model::StaleNan()).histograms_stored == 1);
  CHECK(w.Append(kA, 2000, model::StaleNan()).duplicates == 1);
  w.Append(kB, 1000, 1);
  w.Append(kB, 2000, model::StaleNan());
  const std::string want = "cpu{host=\"a\"} 1000:h4/unknown 2000:hstale/unknown\ncpu{host=\"b\"} 1000:1 2000:stale\n";
  CHECK(Dump(*w.Select()) == want);
  w.Restart();
  CHECK(Dump(*w.Select()) == want);
}

TEST_CASE("hints tell runs of a counter", "[head][histogram]") {
  World w;
  const auto at = [&](int64_t t, double count, model::ResetHint hint = model::ResetHint::kUnknown, int32_t schema = 0) {
    model::Histogram h;
    h.hint = hint;
    h.schema = schema;
    h.count = count;
    h.zero_count = count;
    h.sum = 1;
    Request request;
    request.Series(kA).Hist(t, h);
    CHECK(w.Append(request).histograms_stored == 1);
  };
  at(1000, 5);
  at(2000, 6);
  at(3000, 2);  // less: a reset
  at(4000, 3);
  at(5000, 4, model::ResetHint::kReset);  // declared
  at(6000, 4);
  at(7000, 5, model::ResetHint::kUnknown, 1);  // another layout
  at(8000, 6, model::ResetHint::kUnknown, 1);
  at(9000, 6, model::ResetHint::kGauge, 1);
  at(10000, 7, model::ResetHint::kUnknown, 1);  // after a gauge
  w.Append(kA, 11000, 1);                       // a float between
  at(12000, 8, model::ResetHint::kUnknown, 1);
  at(13000, 9, model::ResetHint::kUnknown, 1);
  const std::string want =
      "cpu{host=\"a\"} 1000:h5/unknown 2000:h6/not_reset 3000:h2/unknown 4000:h3/not_reset 5000:h4/unknown "
      "6000:h4/not_reset 7000:h5/unknown 8000:h6/not_reset 9000:h6/gauge 10000:h7/unknown 11000:1 12000:h8/unknown "
      "13000:h9/not_reset\n";
  CHECK(Dump(*w.Select()) == want);
  w.TakeCheckpoint();
  w.Restart();
  CHECK(Dump(*w.Select()) == want);
  size_t cursor = 0;
  w.head->SealOlderThan(INT64_MAX, 100, &cursor);
  CHECK(Dump(*w.Select()) == want);
}

TEST_CASE("exemplars are kept in order and repeated ones are not", "[head][exemplar]") {
  World w;
  w.limits.exemplars_max = 3;
  const auto send = [&](int64_t t, double v, const std::string& trace) {
    Request request;
    request.Series(kA).Float(t, v).Example({model::Labels::Of({{"trace_id", trace}}), v, t});
    return w.Append(request);
  };
  CHECK(send(1000, 1, "a").exemplars_stored == 1);
  CHECK(send(2000, 2, "b").exemplars_stored == 1);
  CHECK(send(2000, 2, "b").exemplars_stored == 1);
  const model::WriteResult old = send(1000, 1, "c");
  CHECK(old.exemplars_stored == 0);
  CHECK(old.rejections[static_cast<size_t>(Reason::kInvalidExemplar)].series == 1);
  CHECK(send(3000, 3, std::string(200, 'x')).exemplars_stored == 0);
  CHECK(send(4000, 4, std::string(120, 'y')).exemplars_stored == 1);
  CHECK(send(5000, 5, "e").exemplars_stored == 1);
  const auto check = [&] {
    model::SelectRequest request;
    request.matchers = {model::Matcher::Equal("host", "a")};
    const auto got = w.head->Exemplars(request);
    REQUIRE(got.ok());
    REQUIRE(got->size() == 1);
    REQUIRE((*got)[0].exemplars.size() == 3);  // the oldest made room
    CHECK((*got)[0].exemplars[0].t_ms == 2000);
    CHECK((*got)[0].exemplars[2].labels.Get("trace_id") == "e");
  };
  check();
  w.Restart();  // the log does not say how many to keep, so more may be there until the next request
  w.TakeCheckpoint();
  w.Restart();
  model::SelectRequest request;
  CHECK((*w.head->Exemplars(request))[0].exemplars.back().value == 5);
}

TEST_CASE("the last metadata of a metric wins", "[head][metadata]") {
  World w;
  model::WriteResult r;
  const std::vector<model::Metadata> first = {{"cpu", model::MetricType::kGauge, "Old.", ""},
                                              {"mem", model::MetricType::kGauge, "Memory.", "bytes"}};
  const std::vector<model::Metadata> second = {{"cpu", model::MetricType::kCounter, "New.", "seconds"}};
  REQUIRE(w.head->AppendMetadata(first, w.log, r).ok());
  REQUIRE(w.head->AppendMetadata(second, w.log, r).ok());
  const int writes = w.log_writes;
  REQUIRE(w.head->AppendMetadata(second, w.log, r).ok());
  CHECK(w.log_writes == writes);
  CHECK(r.metadata_stored == 4);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(w.head->MetadataFor("").size() == 2);
    CHECK(w.head->MetadataFor("cpu")[0].help == "New.");
    CHECK(w.head->MetadataFor("cpu")[0].type == model::MetricType::kCounter);
    CHECK(w.head->MetadataFor("none").empty());
    if (i == 1) w.TakeCheckpoint();
    w.Restart();
  }
}

}  // namespace
}  // namespace varve::test
