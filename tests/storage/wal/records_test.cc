#include "storage/wal/records.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "storage/base/dice.h"
#include "storage/base/strings.h"
#include "storage/model/sample.h"

namespace varve::wal {
namespace {

struct Framed {
  RecordType type;
  std::string payload;
};

// Takes framed records apart, without the reader.
std::vector<Framed> Unframe(std::string_view bytes) {
  std::vector<Framed> out;
  while (!bytes.empty()) {
    REQUIRE(bytes.starts_with(kRecordMarker));
    base::ByteReader in(bytes.substr(4));
    const auto size = in.Fixed<uint32_t>();
    const auto crc = in.Fixed<uint32_t>();
    const uint8_t type = in.U8();
    const std::string_view payload = in.Take(size);
    REQUIRE(in.ok());
    REQUIRE(RecordCrc(size, type, payload) == crc);
    out.push_back({static_cast<RecordType>(type), std::string(payload)});
    bytes.remove_prefix(kRecordHeaderBytes + size);
  }
  return out;
}

struct FloatSample {
  uint64_t series;
  int64_t t, start;
  uint64_t bits;
  bool operator==(const FloatSample&) const = default;
};

std::vector<FloatSample> DecodeAll(const std::vector<Framed>& records, TenantRef tenant) {
  std::vector<FloatSample> out;
  FloatsDecoder decoder;
  for (const Framed& record : records) {
    REQUIRE(record.type == RecordType::kFloats);
    REQUIRE(decoder.Begin(record.payload).ok());
    CHECK(decoder.tenant() == tenant);
    FloatGroup group;
    while (decoder.Next(&group)) {
      REQUIRE(group.values.size() == group.size());
      for (size_t i = 0; i < group.size(); ++i) {
        out.push_back({group.series[i], group.t(i), group.start_times_ms.empty() ? 0 : group.start_times_ms[i],
                       std::bit_cast<uint64_t>(group.values[i])});
      }
    }
    REQUIRE(decoder.status().ok());
  }
  return out;
}

void RoundTrip(const std::vector<FloatSample>& samples, bool with_starts) {
  std::vector<uint64_t> ids;
  std::vector<int64_t> times, starts;
  std::vector<double> values;
  for (const FloatSample& s : samples) {
    ids.push_back(s.series);
    times.push_back(s.t);
    values.push_back(std::bit_cast<double>(s.bits));
    if (with_starts) starts.push_back(s.start);
  }
  RecordBuilder builder;
  builder.Begin();
  builder.AddFloats(77, ids, times, values, starts);
  CHECK(DecodeAll(Unframe(builder.Finish()), 77) == samples);
}

TEST_CASE("float samples of one scrape share their time and cost nine bytes each") {
  RecordBuilder builder;
  builder.Begin();
  const size_t n = 1000;
  std::vector<uint64_t> ids;
  for (size_t i = 0; i < n; ++i) ids.push_back(5000 + i);
  const std::vector<int64_t> times(n, 1'700'000'000'000);
  std::vector<double> values;
  for (size_t i = 0; i < n; ++i) values.push_back(static_cast<double>(i) * 0.1);
  builder.AddFloats(1, ids, times, values);
  const std::string_view bytes = builder.Finish();
  CHECK(bytes.size() < 9 * n + 64);
  FloatsDecoder decoder;
  const std::vector<Framed> records = Unframe(bytes);
  REQUIRE(records.size() == 1);
  REQUIRE(decoder.Begin(records[0].payload).ok());
  FloatGroup group;
  REQUIRE(decoder.Next(&group));
  CHECK(group.times_ms.empty());
  CHECK(group.time_ms == times[0]);
  CHECK(std::vector<uint64_t>(group.series.begin(), group.series.end()) == ids);
  CHECK(std::vector<double>(group.values.begin(), group.values.end()) == values);
  CHECK_FALSE(decoder.Next(&group));
  CHECK(decoder.status().ok());
}

TEST_CASE("float samples come back bit for bit whatever their times and ids") {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  RoundTrip({{0, 0, 0, 0}}, false);
  RoundTrip({{UINT64_MAX, kMin, 0, model::kStaleNanBits}, {0, kMax, 0, 1}, {1, kMin, 0, 0x8000000000000000u}}, false);
  RoundTrip({{1, 1000, 0, 1}, {1, 2000, 500, 2}, {1, 2001, 2001, 3}, {2, 5, -7, 4}, {2, 5, kMax, 5}}, true);

  const uint64_t seed = GENERATE(1u, 2u, 3u, 4u, 5u, 6u);
  CAPTURE(seed);
  base::Dice dice(seed);
  for (int round = 0; round < 50; ++round) {
    std::vector<FloatSample> samples;
    uint64_t id = dice.Next();
    int64_t t = dice.Between(-1'000'000, 2'000'000'000'000);
    const bool starts = dice.OneIn(2);
    for (size_t left = 1 + dice.Below(dice.OneIn(10) ? 20'000 : 200); left > 0;) {
      // Runs of equal and of different times in any mixture.
      const size_t run = std::min(left, 1 + dice.Below(20));
      const bool same = dice.OneIn(2);
      for (size_t i = 0; i < run; ++i, --left) {
        id = dice.OneIn(30) ? dice.Next() : id + dice.Below(3);
        if (!same) t += dice.Between(-20, 1000);
        samples.push_back({id, t, starts && dice.OneIn(2) ? t - dice.Between(1, 1 << 20) : 0, dice.Next()});
      }
      t += 1000;
    }
    RoundTrip(samples, starts);
  }
}

TEST_CASE("a large batch of floats is split into records") {
  const size_t n = 2 * RecordBuilder::kFloatsPerRecord + 5;
  std::vector<FloatSample> samples;
  for (size_t i = 0; i < n; ++i) samples.push_back({i, static_cast<int64_t>(i / 100), 0, i});
  RoundTrip(samples, false);
  RecordBuilder builder;
  builder.Begin();
  builder.AddFloats(1, std::vector<uint64_t>(n), std::vector<int64_t>(n), std::vector<double>(n));
  CHECK(Unframe(builder.Finish()).size() == 3);
  CHECK(builder.records() == 3);
}

TEST_CASE("series records give labels and hashes back and share their strings") {
  RecordBuilder builder;
  builder.Begin();
  std::vector<model::Labels> labels;
  for (int i = 0; i < 1000; ++i) {
    labels.push_back(model::Labels::Of({{"__name__", base::StrCat("node_metric_", i / 4, "_total")},
                                        {"cpu", base::StrCat(i % 4)},
                                        {"instance", "host-17.example.org:9100"},
                                        {"job", "node"},
                                        {"zone", "a"}}));
  }
  labels.push_back(model::Labels());                                                     // no labels at all
  labels.push_back(model::Labels::Of({{"\xC3\xA9t\xC3\xA9", std::string(5000, 'v')}}));  // a UTF-8 name, a long value
  for (size_t i = 0; i < labels.size(); ++i) {
    builder.AddSeries(9, 100 + 3 * i, {i * 7, ~i}, labels[i]);
  }
  const std::string_view bytes = builder.Finish();
  CHECK(bytes.size() < labels.size() * 36);
  SeriesDecoder decoder;
  size_t at = 0;
  for (const Framed& record : Unframe(bytes)) {
    REQUIRE(record.type == RecordType::kSeries);
    REQUIRE(decoder.Decode(record.payload).ok());
    CHECK(decoder.tenant() == 9);
    for (size_t i = 0; i < decoder.size(); ++i, ++at) {
      REQUIRE(at < labels.size());
      CHECK(decoder.id(i) == 100 + 3 * at);
      CHECK(decoder.hash(i) == model::SeriesHash{at * 7, ~at});
      std::string canonical;
      decoder.AppendCanonical(i, canonical);
      CHECK(canonical == labels[at].bytes());
    }
  }
  CHECK(at == labels.size());
}

TEST_CASE("many distinct series are split into records that stand for themselves") {
  RecordBuilder builder;
  for (int round = 0; round < 2; ++round) {  // the second time with what the first left in the builder
    builder.Begin();
    for (uint64_t i = 0; i < 20'000; ++i) {
      builder.AddSeries(1, i, {i, i},
                        model::Labels::Of({{"__name__", base::StrCat("metric_", i)}, {"pod", base::StrCat(i * i)}}));
    }
    const std::vector<Framed> records = Unframe(builder.Finish());
    CHECK(records.size() > 1);
    SeriesDecoder decoder;
    uint64_t at = 0;
    for (const Framed& record : records) {
      REQUIRE(decoder.Decode(record.payload).ok());
      for (size_t i = 0; i < decoder.size(); ++i, ++at) {
        REQUIRE(decoder.id(i) == at);
        REQUIRE(decoder.pairs()[decoder.refs(i)[1]].value == base::StrCat(at * at));
      }
    }
    CHECK(at == 20'000);
  }
}

TEST_CASE("records stand in the order of the calls and keep tenants apart") {
  const model::Labels labels = model::Labels::Of({{"__name__", "up"}});
  RecordBuilder builder;
  builder.Begin();
  builder.AddTenant(1, "one");
  builder.AddSeries(1, 1, {}, labels);
  builder.AddSeries(2, 1, {}, labels);
  builder.AddFloats(2, std::vector<uint64_t>{1}, std::vector<int64_t>{5}, std::vector<double>{6});
  builder.AddHistogram(2, 1, 1000, 0, "bytes");
  builder.AddHistogram(2, 2, 900, 800, "");
  builder.AddExemplar(2, 1, {model::Labels::Of({{"trace_id", "abc"}}), 2.5, 1001});
  builder.AddMetadata(2, {"up", model::MetricType::kGauge, "Is it \"up\"?\n", "bool"});
  builder.AddForget(2, 7);
  builder.AddForget(2, 3);
  builder.AddForget(3, 3);
  const std::vector<Framed> records = Unframe(builder.Finish());
  REQUIRE(records.size() == 9);
  const auto tenant = DecodeTenant(records[0].payload);
  REQUIRE(tenant.ok());
  CHECK(tenant->ref == 1);
  CHECK(tenant->name == "one");

  TenantRef ref = 0;
  std::vector<HistogramEntry> histograms;
  REQUIRE(DecodeHistograms(records[4].payload, &ref, &histograms).ok());
  REQUIRE(histograms.size() == 2);
  CHECK(ref == 2);
  CHECK(histograms[0].encoded == "bytes");
  CHECK(histograms[1].series == 2);
  CHECK(histograms[1].t_ms == 900);
  CHECK(histograms[1].start_ms == 800);

  std::vector<ExemplarEntry> exemplars;
  REQUIRE(DecodeExemplars(records[5].payload, &ref, &exemplars).ok());
  REQUIRE(exemplars.size() == 1);
  CHECK(exemplars[0].labels.Get("trace_id") == "abc");
  CHECK(exemplars[0].value == 2.5);
  CHECK(exemplars[0].t_ms == 1001);

  std::vector<MetadataEntry> metadata;
  REQUIRE(DecodeMetadata(records[6].payload, &ref, &metadata).ok());
  REQUIRE(metadata.size() == 1);
  CHECK(metadata[0].metric == "up");
  CHECK(metadata[0].type == model::MetricType::kGauge);
  CHECK(metadata[0].help == "Is it \"up\"?\n");
  CHECK(metadata[0].unit == "bool");

  std::vector<uint64_t> forgotten;
  REQUIRE(DecodeForget(records[7].payload, &ref, &forgotten).ok());
  CHECK(forgotten == std::vector<uint64_t>{7, 3});
  REQUIRE(DecodeForget(records[8].payload, &ref, &forgotten).ok());
  CHECK(ref == 3);

  for (const Framed& record : records) {
    const std::string text = DebugString(record.type, record.payload);
    CHECK(text.find("error") == std::string::npos);
    CHECK(text.starts_with(ToString(record.type)));
  }
  CHECK(DebugString(records[7].type, records[7].payload, 1).find("and 1 more") != std::string::npos);
}

// Every decoder over `payload`; gives whether the one of `type` took it.
bool Decodes(RecordType type, std::string_view payload) {
  TenantRef ref = 0;
  switch (type) {
    case RecordType::kTenant:
      return DecodeTenant(payload).ok();
    case RecordType::kSeries: {
      SeriesDecoder decoder;
      const bool ok = decoder.Decode(payload).ok();
      for (size_t i = 0; i < decoder.size(); ++i) {
        std::string canonical;
        decoder.AppendCanonical(i, canonical);
        const auto labels = model::Labels::FromWire(canonical);
        REQUIRE(labels.ok());
        CHECK(labels->bytes() == canonical);
      }
      return ok;
    }
    case RecordType::kFloats: {
      FloatsDecoder decoder;
      if (!decoder.Begin(payload).ok()) return false;
      FloatGroup group;
      while (decoder.Next(&group)) {
      }
      return decoder.status().ok();
    }
    case RecordType::kHistograms: {
      std::vector<HistogramEntry> out;
      return DecodeHistograms(payload, &ref, &out).ok();
    }
    case RecordType::kExemplars: {
      std::vector<ExemplarEntry> out;
      return DecodeExemplars(payload, &ref, &out).ok();
    }
    case RecordType::kMetadata: {
      std::vector<MetadataEntry> out;
      return DecodeMetadata(payload, &ref, &out).ok();
    }
    case RecordType::kForget: {
      std::vector<uint64_t> out;
      return DecodeForget(payload, &ref, &out).ok();
    }
  }
  return false;
}

TEST_CASE("payloads that were cut or changed never crash a decoder") {
  RecordBuilder builder;
  builder.Begin();
  builder.AddTenant(300, "some tenant");
  for (uint64_t i = 0; i < 12; ++i) {
    builder.AddSeries(1, i, {i, i}, model::Labels::Of({{"__name__", "up"}, {"cpu", base::StrCat(i)}, {"job", "n"}}));
  }
  builder.AddFloats(1, std::vector<uint64_t>{1, 2, 3}, std::vector<int64_t>{5, 5, 6}, std::vector<double>{6, 7, 8},
                    std::vector<int64_t>{1, 0, 2});
  builder.AddFloats(1, std::vector<uint64_t>(20, 7), std::vector<int64_t>(20, 9), std::vector<double>(20));
  builder.AddHistogram(2, 1, 1000, 0, "bytes");
  builder.AddExemplar(2, 1, {model::Labels::Of({{"trace_id", "abc"}}), 2.5, 1001});
  builder.AddMetadata(2, {"up", model::MetricType::kGauge, "help", "bool"});
  builder.AddForget(2, 7);
  base::Dice dice(99);
  for (const Framed& record : Unframe(builder.Finish())) {
    CAPTURE(ToString(record.type));
    CHECK(Decodes(record.type, record.payload));
    for (size_t cut = 0; cut < record.payload.size(); ++cut) {
      // A floats record may end after its tenant or between groups; every other cut is an error.
      const bool ok = Decodes(record.type, std::string(record.payload, 0, cut));
      if (record.type != RecordType::kFloats) CHECK_FALSE(ok);
    }
    if (record.type != RecordType::kFloats) CHECK_FALSE(Decodes(record.type, record.payload + "x"));
    for (int i = 0; i < 3000; ++i) {
      std::string changed = record.payload;
      for (size_t n = 1 + dice.Below(3); n > 0; --n) {
        changed[dice.Below(changed.size())] = static_cast<char>(dice.OneIn(3) ? 0xFF : dice.Next());
      }
      Decodes(record.type, changed);
      DebugString(record.type, changed, 3);
    }
  }
}

TEST_CASE("series records that are not canonical are refused") {
  const auto series = [](std::vector<std::string> names, std::vector<std::pair<uint64_t, std::string>> pairs,
                         std::vector<uint64_t> refs) {
    std::string out;
    base::PutVarint(out, 1);
    base::PutVarint(out, names.size());
    for (const auto& name : names) base::PutBytes(out, name);
    base::PutVarint(out, pairs.size());
    for (const auto& [name, value] : pairs) {
      base::PutVarint(out, name);
      base::PutBytes(out, value);
    }
    base::PutVarint(out, 1);
    base::PutSigned(out, 5);
    base::PutVarint(out, refs.size());
    for (const uint64_t ref : refs) base::PutVarint(out, ref);
    out.append(16, 'h');
    return out;
  };
  CHECK(Decodes(RecordType::kSeries, series({"b", "a"}, {{1, "x"}, {0, "y"}}, {0, 1})));
  CHECK_FALSE(Decodes(RecordType::kSeries, series({"b", "a"}, {{1, "x"}, {0, "y"}}, {1, 0})));  // b before a
  CHECK_FALSE(Decodes(RecordType::kSeries, series({"a", "b"}, {{0, "x"}, {0, "y"}}, {0, 1})));  // a twice
  CHECK_FALSE(Decodes(RecordType::kSeries, series({"a", "a"}, {{0, "x"}, {1, "y"}}, {0, 1})));  // a twice by two names
  CHECK_FALSE(Decodes(RecordType::kSeries, series({"a", ""}, {{0, "x"}}, {0})));                // empty name
  CHECK_FALSE(Decodes(RecordType::kSeries, series({"a"}, {{0, ""}}, {0})));                     // empty value
  CHECK_FALSE(Decodes(RecordType::kSeries, series({"a"}, {{1, "x"}}, {0})));                    // pair without a name
  CHECK_FALSE(Decodes(RecordType::kSeries, series({"a"}, {{0, "x"}}, {1})));                    // no such pair
}

TEST_CASE("counts that promise more than there are bytes reserve nothing") {
  for (const RecordType type : {RecordType::kSeries, RecordType::kFloats, RecordType::kHistograms,
                                RecordType::kExemplars, RecordType::kMetadata, RecordType::kForget}) {
    std::string payload;
    base::PutVarint(payload, 1);
    if (type == RecordType::kFloats) base::PutU8(payload, kGroupSharesTime);
    base::PutVarint(payload, uint64_t{1} << 60);
    payload += "a few bytes";
    CHECK_FALSE(Decodes(type, payload));
  }
}

}  // namespace
}  // namespace varve::wal
