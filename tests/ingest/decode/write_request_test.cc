#include "ingest/decode/write_request.h"

#include <google/protobuf/stubs/logging.h>

#include <catch2/catch.hpp>

#include "proto/prom_write_v1.pb.h"
#include "proto/prom_write_v2.pb.h"
#include "storage/base/bytes.h"
#include "storage/base/strings.h"
#include "tests/ingest/decode/make_request.h"

namespace varve::decode {

namespace {

namespace v2 = io::prometheus::write::v2;
constexpr uint64_t kSeed = 0x5EED;

std::string Error(const absl::Status& status) { return std::string(base::Message(status)); }

prometheus::TimeSeries* AddSeries(prometheus::WriteRequest& request,
                                  std::vector<std::pair<std::string, std::string>> labels) {
  auto* series = request.add_timeseries();
  for (const auto& [name, value] : labels) {
    auto* label = series->add_labels();
    label->set_name(name);
    label->set_value(value);
  }
  return series;
}
void AddSample(prometheus::TimeSeries* series, double value, int64_t t_ms) {
  auto* sample = series->add_samples();
  sample->set_value(value);
  sample->set_timestamp(t_ms);
}
v2::TimeSeries* AddSeries(v2::Request& request, std::initializer_list<uint32_t> refs, double value, int64_t t_ms) {
  auto* series = request.add_timeseries();
  for (const uint32_t ref : refs) series->add_labels_refs(ref);
  auto* sample = series->add_samples();
  sample->set_value(value);
  sample->set_timestamp(t_ms);
  return series;
}
v2::Request WithSymbols(std::initializer_list<std::string_view> symbols) {
  v2::Request request;
  for (const std::string_view symbol : symbols) request.add_symbols(std::string(symbol));
  return request;
}
const model::Rejection& Refused(const model::WriteBatch& batch, model::Reason reason) {
  return batch.refused.rejections[static_cast<size_t>(reason)];
}

}  // namespace

TEST_CASE("1.0 labels stay the bytes of the sender", "[decode]") {
  prometheus::WriteRequest request;
  AddSample(AddSeries(request, {{"__name__", "up"}, {"job", "node"}}), 1, 1000);
  const std::string message = request.SerializeAsString();
  model::WriteBatch batch;
  REQUIRE(DecodeWriteV1(message, kSeed, batch).ok());
  REQUIRE(batch.series.size() == 1);
  CHECK(batch.series[0].labels == model::Labels::Of({{"__name__", "up"}, {"job", "node"}}).bytes());
  CHECK(batch.series[0].labels.data() > message.data());
  CHECK(batch.series[0].labels.data() < message.data() + message.size());
  CHECK(batch.series[0].hash == model::HashLabels(batch.series[0].labels, kSeed));
  CHECK(batch.bodies.empty());
}

TEST_CASE("1.0 labels with something between them are gathered", "[decode]") {
  prometheus::WriteRequest request;
  AddSample(AddSeries(request, {{"__name__", "up"}, {"job", "node"}}), 1, 1000);
  const prometheus::TimeSeries& series = request.timeseries(0);
  std::string inside, message;
  base::PutU8(inside, 0x0A), base::PutBytes(inside, series.labels(0).SerializeAsString());
  base::PutU8(inside, 0x12), base::PutBytes(inside, series.samples(0).SerializeAsString());
  base::PutU8(inside, 0x8A), base::PutU8(inside, 0x00);  // the label tag in two bytes
  base::PutBytes(inside, series.labels(1).SerializeAsString());
  base::PutU8(message, 0x0A), base::PutBytes(message, inside);
  model::WriteBatch batch;
  REQUIRE(DecodeWriteV1(message, kSeed, batch).ok());
  REQUIRE(batch.series.size() == 1);
  CHECK(batch.series[0].labels == model::Labels::Of({{"__name__", "up"}, {"job", "node"}}).bytes());
  CHECK(batch.series[0].float_count == 1);
}

TEST_CASE("staleness markers and missing fields keep their bits", "[decode]") {
  prometheus::WriteRequest request;
  auto* series = AddSeries(request, {{"__name__", "up"}});
  AddSample(series, model::StaleNan(), 1000);
  AddSample(series, 0, 0);
  AddSample(series, -0.0, -5);
  model::WriteBatch batch;
  const std::string message = request.SerializeAsString();
  REQUIRE(DecodeWriteV1(message, kSeed, batch).ok());
  REQUIRE(batch.values.size() == 3);
  CHECK(model::IsStaleNan(batch.values[0]));
  CHECK(model::SameBits(batch.values[1], 0.0));
  CHECK(model::SameBits(batch.values[2], -0.0));
  CHECK(batch.timestamps == std::vector<int64_t>{1000, 0, -5});
}

TEST_CASE("2.0 labels are sorted and empty values dropped", "[decode]") {
  v2::Request request = WithSymbols({"", "__name__", "up", "zone", "a", "job", "node"});
  AddSeries(request, {3, 4, 5, 6, 1, 2}, 1, 1000);
  AddSeries(request, {1, 2, 3, 0}, 2, 1000);
  const std::string message = request.SerializeAsString();
  model::WriteBatch batch;
  REQUIRE(DecodeWriteV2(message, kSeed, batch).ok());
  REQUIRE(batch.series.size() == 2);
  CHECK(batch.series[0].labels == model::Labels::Of({{"__name__", "up"}, {"job", "node"}, {"zone", "a"}}).bytes());
  CHECK(batch.series[1].labels == model::Labels::Of({{"__name__", "up"}}).bytes());
  CHECK(batch.start_timestamps.empty());
}

TEST_CASE("2.0 bad series are left out and named and the rest is kept", "[decode]") {
  v2::Request request = WithSymbols({"", "__name__", "up", "job", "node"});
  AddSeries(request, {1, 2}, 1, 1000);
  AddSeries(request, {1, 99}, 2, 1000);
  AddSeries(request, {1, 2, 3}, 3, 1000);
  AddSeries(request, {1, 2, 1, 4}, 4, 1000);
  AddSeries(request, {0, 2}, 5, 1000);
  AddSeries(request, {1, 4}, 6, 1000)->clear_samples();
  AddSeries(request, {1, 4}, 7, 1000);
  const std::string message = request.SerializeAsString();
  model::WriteBatch batch;
  REQUIRE(DecodeWriteV2(message, kSeed, batch).ok());
  CHECK(batch.values == std::vector<double>{1, 7});
  REQUIRE(batch.series.size() == 2);
  CHECK(batch.series[1].float_begin == 1);
  const auto& malformed = Refused(batch, model::Reason::kMalformedLabels);
  CHECK(malformed.samples == 2);
  REQUIRE(malformed.examples.size() == 2);
  CHECK(malformed.examples[0] ==
        "timeseries 1 of the request: label reference 99 is out of bounds, the request has 5 symbols");
  CHECK(malformed.examples[1] == "timeseries 2 of the request: odd number of label references (3)");
  CHECK(Refused(batch, model::Reason::kDuplicateLabelName).samples == 1);
  CHECK(Refused(batch, model::Reason::kInvalidLabelName).samples == 1);
  CHECK(Refused(batch, model::Reason::kNoSamples).examples ==
        std::vector<std::string>{"series node has neither samples nor histograms"});
}

TEST_CASE("2.0 metadata and start timestamps", "[decode]") {
  v2::Request request = WithSymbols({"", "__name__", "lat_bucket", "lat_count", "le", "1", "Latency.", "seconds"});
  for (const auto& refs : {std::initializer_list<uint32_t>{1, 2, 4, 5}, {1, 3}}) {
    auto* series = AddSeries(request, refs, 1, 1000);
    series->mutable_metadata()->set_type(v2::Metadata::METRIC_TYPE_HISTOGRAM);
    series->mutable_metadata()->set_help_ref(6);
    series->mutable_metadata()->set_unit_ref(7);
  }
  request.mutable_timeseries(1)->mutable_samples(0)->set_start_timestamp(500);
  const std::string message = request.SerializeAsString();
  model::WriteBatch batch;
  REQUIRE(DecodeWriteV2(message, kSeed, batch).ok());
  CHECK(batch.start_timestamps == std::vector<int64_t>{0, 500});
  REQUIRE(batch.metadata.size() == 1);
  CHECK(batch.metadata[0].metric == "lat");
  CHECK(batch.metadata[0].type == model::MetricType::kHistogram);
  CHECK(batch.metadata[0].help == "Latency.");
  CHECK(batch.metadata[0].unit == "seconds");
}

TEST_CASE("integer histograms become absolute counts", "[decode]") {
  prometheus::WriteRequest request;
  auto* h = AddSeries(request, {{"__name__", "h"}})->add_histograms();
  h->set_count_int(6);
  h->set_zero_count_int(1);
  h->add_positive_spans()->set_length(3);
  for (const int64_t delta : {2, -1, 1}) h->add_positive_deltas(delta);
  h->set_timestamp(9);
  const std::string message = request.SerializeAsString();
  model::WriteBatch batch;
  REQUIRE(DecodeWriteV1(message, kSeed, batch).ok());
  REQUIRE(batch.histograms.size() == 1);
  const model::Histogram& got = batch.histograms[0].histogram;
  CHECK(got.integer);
  CHECK(got.positive_buckets == std::vector<double>{2, 1, 2});
  CHECK(model::Validate(got).ok());
}

TEST_CASE("counts beyond 2^53 and deltas beyond 64 bits never look valid", "[decode]") {
  prometheus::WriteRequest request;
  auto* series = AddSeries(request, {{"__name__", "h"}});
  auto* h = series->add_histograms();
  h->set_count_int((uint64_t{1} << 53) + 1);
  h->add_positive_spans()->set_length(1);
  h->add_positive_deltas((int64_t{1} << 53) + 1);
  auto* wrapping = series->add_histograms();
  wrapping->set_count_int(0);
  wrapping->add_positive_spans()->set_length(2);
  wrapping->add_positive_deltas(INT64_MAX);
  wrapping->add_positive_deltas(1);
  const std::string message = request.SerializeAsString();
  model::WriteBatch batch;
  REQUIRE(DecodeWriteV1(message, kSeed, batch).ok());
  REQUIRE(batch.histograms.size() == 2);
  CHECK_FALSE(model::Validate(batch.histograms[0].histogram).ok());
  CHECK_FALSE(model::Validate(batch.histograms[1].histogram).ok());
}

TEST_CASE("errors say byte and field", "[decode]") {
  model::WriteBatch batch;
  prometheus::WriteRequest request;
  AddSample(AddSeries(request, {{"__name__", "up"}}), 1, 1000);
  std::string message = request.SerializeAsString();
  message[message.size() - 1] = static_cast<char>(0x80);  // the timestamp's last byte
  CHECK(Error(DecodeWriteV1(message, kSeed, batch)) ==
        base::StrCat("not a remote write 1.0 message: byte ", message.size() - 2, " of ", message.size(),
                     ", field timeseries.samples of timeseries 0: varint cut short"));
  CHECK(Error(DecodeWriteV1("\x0a\x05\x01", kSeed, batch)) ==
        "not a remote write 1.0 message: byte 1 of 3, field message: length runs past the end");
  v2::Request bad = WithSymbols({"x"});
  CHECK(Error(DecodeWriteV2(bad.SerializeAsString(), kSeed, batch)).find("the first symbol is not \"\"") !=
        std::string::npos);
  // A 1.0 message taken for 2.0 is empty, and the other way round.
  batch.Clear();
  CHECK(DecodeWriteV2(request.SerializeAsString(), kSeed, batch).ok());
  CHECK(batch.series.empty());
}

TEST_CASE("objects that a few bytes grow into are bounded", "[decode]") {
  model::WriteBatch batch;
  std::string series, message;
  for (size_t i = 0; i <= kHistogramsMax; ++i) series += std::string("\x22\x00", 2);
  base::PutU8(message, 0x0A), base::PutBytes(message, series);
  CHECK(Error(DecodeWriteV1(message, kSeed, batch)).find("too many histograms") != std::string::npos);

  v2::Request request = WithSymbols({"", "__name__"});
  request.add_symbols(std::string(1 << 20, 'x'));
  for (int i = 0; i < 200; ++i) AddSeries(request, {1, 2}, 1, 1);
  batch.Clear();
  CHECK(Error(DecodeWriteV2(request.SerializeAsString(), kSeed, batch)).find("labels written out are too large") !=
        std::string::npos);
}

TEST_CASE("1.0 agrees with libprotobuf on random messages", "[decode][twin]") {
  const uint64_t seed = 20260101;
  CAPTURE(seed);
  base::Dice dice(seed);
  for (int round = 0; round < 1500; ++round) {
    CAPTURE(round);
    const prometheus::WriteRequest made = RandomV1(dice);
    const std::string message = round % 3 == 0 ? made.SerializeAsString() : Shuffled(dice, made);
    prometheus::WriteRequest parsed;
    REQUIRE(parsed.ParseFromString(message));
    model::WriteBatch batch;
    const absl::Status status = DecodeWriteV1(message, kSeed, batch);
    INFO(Error(status));
    REQUIRE(status.ok());
    REQUIRE(Difference(Expect(parsed), Describe(batch)) == "");
    for (const auto& series : batch.series) REQUIRE(series.hash == model::HashLabels(series.labels, kSeed));
  }
}

TEST_CASE("2.0 agrees with libprotobuf on random messages", "[decode][twin]") {
  const uint64_t seed = 20260202;
  CAPTURE(seed);
  base::Dice dice(seed);
  for (int round = 0; round < 1500; ++round) {
    CAPTURE(round);
    const v2::Request made = RandomV2(dice);
    const std::string message = round % 3 == 0 ? made.SerializeAsString() : Shuffled(dice, made);
    v2::Request parsed;
    REQUIRE(parsed.ParseFromString(message));
    model::WriteBatch batch;
    const absl::Status status = DecodeWriteV2(message, kSeed, batch);
    INFO(Error(status));
    REQUIRE(status.ok());
    REQUIRE(Difference(Expect(parsed), Describe(batch)) == "");
    // What the two versions make of the same series has the same hash.
    for (const auto& series : batch.series) {
      REQUIRE(model::Labels::FromWire(series.labels)->bytes() == series.labels);
    }
  }
}

TEST_CASE("every cut and every flipped byte is an error or agrees with libprotobuf", "[decode][twin]") {
  google::protobuf::SetLogHandler(nullptr);  // it complains about bytes that are not UTF-8
  const uint64_t seed = 20260303;
  CAPTURE(seed);
  base::Dice dice(seed);
  for (int round = 0; round < 30; ++round) {
    const prometheus::WriteRequest one = RandomV1(dice);
    const v2::Request two = RandomV2(dice);
    for (const bool second : {false, true}) {
      const std::string whole = second ? two.SerializeAsString() : one.SerializeAsString();
      for (size_t at = 0; at < whole.size(); ++at) {
        const bool cut = dice.OneIn(2);
        std::string message = cut ? whole.substr(0, at) : whole;
        if (!cut) message[at] = static_cast<char>(dice.Next());
        model::WriteBatch batch;
        const absl::Status status =
            second ? DecodeWriteV2(message, kSeed, batch) : DecodeWriteV1(message, kSeed, batch);
        if (!status.ok()) {
          REQUIRE(status.code() == absl::StatusCode::kInvalidArgument);
          continue;
        }
        CAPTURE(round, second, at, cut);
        if (second) {
          v2::Request parsed;
          if (parsed.ParseFromString(message)) REQUIRE(Difference(Expect(parsed), Describe(batch)) == "");
        } else {
          prometheus::WriteRequest parsed;
          if (parsed.ParseFromString(message)) REQUIRE(Difference(Expect(parsed), Describe(batch)) == "");
        }
      }
    }
  }
}

}  // namespace varve::decode
