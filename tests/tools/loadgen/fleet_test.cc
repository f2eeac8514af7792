#include "tools/loadgen/fleet.h"

#include <snappy.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "ingest/decode/write_request.h"
#include "storage/base/strings.h"
#include "tools/loadgen/request.h"

namespace varve::loadgen {

namespace {

FleetConfig SmallConfig() {
  FleetConfig config;
  config.seed = 5;
  config.series = 500;
  config.start_ms = 1'700'000'000'000;
  return config;
}

struct Received {
  std::map<std::string, std::map<int64_t, double>> samples;  // by canonical labels
  uint64_t count = 0;
  uint64_t stale = 0;
  size_t largest = 0;
};
Received ReceiveAll(const Fleet& fleet, StreamConfig config) {
  Received out;
  for (config.shard = 0; config.shard < config.shards; ++config.shard) {
    Stream stream(fleet, config);
    while (const auto request = stream.Next()) {
      std::string message;
      REQUIRE(snappy::Uncompress(request->body.data(), request->body.size(), &message));
      CHECK(message.size() == request->message_bytes);
      model::WriteBatch batch;
      const absl::Status status =
          config.version == 2 ? decode::DecodeWriteV2(message, 1, batch) : decode::DecodeWriteV1(message, 1, batch);
      INFO(std::string(base::Message(status)));
      REQUIRE(status.ok());
      REQUIRE(batch.refused.AllStored());
      CHECK(batch.values.size() == request->samples);
      out.count += request->samples;
      out.largest = std::max(out.largest, batch.values.size());
      for (const auto& series : batch.series) {
        REQUIRE(model::Labels::FromWire(series.labels)->bytes() == series.labels);  // sent in canonical form
        auto& of_series = out.samples[std::string(series.labels)];
        const auto [it, added] =
            of_series.emplace(batch.timestamps[series.float_begin], batch.values[series.float_begin]);
        REQUIRE(added);
        if (model::IsStaleNan(it->second)) ++out.stale;
      }
    }
  }
  return out;
}

}  // namespace

TEST_CASE("every sample that is sent can be recomputed", "[loadgen]") {
  const auto fleet = Fleet::Create(SmallConfig(), {BuiltinPage()});
  REQUIRE(fleet.ok());
  StreamConfig config;
  config.scrapes = 7;
  config.samples_per_request = 33;
  config.shards = 3;
  for (config.version = 1; config.version <= 2; ++config.version) {
    const Received received = ReceiveAll(*fleet, config);
    CHECK(received.count == 500 * 7);
    CHECK(received.largest == 33);
    CHECK(received.samples.size() == 500);
    for (size_t target = 0; target < fleet->targets(); ++target) {
      for (size_t series = 0; series < fleet->series_of(target); ++series) {
        std::string labels;
        fleet->AppendLabels(target, series, 0, labels);
        const auto it = received.samples.find(labels);
        REQUIRE(it != received.samples.end());
        REQUIRE(it->second.size() == 7);
        for (int64_t scrape = 0; scrape < 7; ++scrape) {
          REQUIRE(it->second.at(fleet->TimeMs(target, scrape)) == fleet->Value(target, series, scrape));
        }
      }
    }
  }
}

TEST_CASE("both versions of the protocol carry the same and the same seed makes the same", "[loadgen]") {
  const auto fleet = Fleet::Create(SmallConfig(), {BuiltinPage()});
  const auto again = Fleet::Create(SmallConfig(), {BuiltinPage()});
  FleetConfig other_config = SmallConfig();
  other_config.seed = 6;
  const auto other = Fleet::Create(other_config, {BuiltinPage()});
  StreamConfig one;
  one.scrapes = 3;
  StreamConfig two = one;
  two.version = 2;
  CHECK(ReceiveAll(*fleet, one).samples == ReceiveAll(*fleet, two).samples);
  CHECK(ReceiveAll(*fleet, one).samples == ReceiveAll(*again, one).samples);
  CHECK(ReceiveAll(*fleet, one).samples != ReceiveAll(*other, one).samples);
}

TEST_CASE("counters never fall and buckets stay cumulative", "[loadgen]") {
  FleetConfig config = SmallConfig();
  config.series = 3 * 61;
  const auto fleet = Fleet::Create(config, {BuiltinPage()});
  size_t counters = 0;
  size_t moved = 0;
  for (size_t target = 0; target < fleet->targets(); ++target) {
    for (int64_t scrape = 0; scrape < 300; ++scrape) {
      double bucket_before = 0;
      std::string handler_before;
      for (size_t series = 0; series < fleet->series_of(target); ++series) {
        std::string bytes;
        fleet->AppendLabels(target, series, 0, bytes);
        const model::LabelsView labels(bytes);
        const double v = fleet->Value(target, series, scrape);
        const std::string metric(labels.MetricName());
        const bool bucket = metric.ends_with("_bucket");
        if (bucket || metric.ends_with("_total") || metric.ends_with("_count")) {
          ++counters;
          REQUIRE(v >= 0);
          if (scrape > 0) {
            REQUIRE(v >= fleet->Value(target, series, scrape - 1));
            moved += v > fleet->Value(target, series, scrape - 1);
          }
        }
        const std::string handler(labels.Get("handler"));
        if (bucket) {
          if (handler == handler_before) REQUIRE(v >= bucket_before);
          bucket_before = v;
          handler_before = handler;
        } else if (metric.ends_with("_count") && handler == handler_before) {
          REQUIRE(v == bucket_before);  // le="+Inf" was the last bucket
        }
      }
    }
  }
  CHECK(counters > 1000);
  CHECK(moved > counters / 20);
}

TEST_CASE("timestamps ascend with jitter and phase", "[loadgen]") {
  FleetConfig config = SmallConfig();
  config.interval_ms = 1000;
  config.jitter_ms = 5;
  const auto fleet = Fleet::Create(config, {BuiltinPage()});
  std::set<int64_t> phases;
  for (size_t target = 0; target < fleet->targets(); ++target) {
    std::set<int64_t> gaps;
    for (int64_t scrape = 1; scrape < 100; ++scrape) {
      const int64_t gap = fleet->TimeMs(target, scrape) - fleet->TimeMs(target, scrape - 1);
      REQUIRE(std::abs(gap - 1000) <= 10);
      gaps.insert(gap);
    }
    CHECK(gaps.size() > 5);
    phases.insert(fleet->TimeMs(target, 0));
  }
  CHECK(phases.size() > fleet->targets() / 2);
}

TEST_CASE("replaced targets get new label sets and markers for the old", "[loadgen]") {
  FleetConfig config = SmallConfig();
  config.churn = 1;  // every target lives for ten minutes, 40 scrapes
  const auto fleet = Fleet::Create(config, {BuiltinPage()});
  StreamConfig stream;
  stream.scrapes = 60;
  const Received received = ReceiveAll(*fleet, stream);
  uint64_t replacements = 0;
  for (size_t target = 0; target < fleet->targets(); ++target) {
    for (int64_t scrape = 1; scrape < 60; ++scrape) {
      const int64_t step = fleet->Revision(target, scrape) - fleet->Revision(target, scrape - 1);
      REQUIRE((step == 0 || step == 1));
      if (step == 1) replacements += fleet->series_of(target);
    }
  }
  CHECK(replacements >= 500);
  CHECK(received.stale == replacements);
  CHECK(received.samples.size() == 500 + replacements);
  CHECK(received.count == 500 * 60 + replacements);
}

TEST_CASE("bad configurations are refused", "[loadgen]") {
  FleetConfig config = SmallConfig();
  config.interval_ms = 0;
  CHECK_FALSE(Fleet::Create(config, {BuiltinPage()}).ok());
  config = SmallConfig();
  config.jitter_ms = 8000;
  CHECK_FALSE(Fleet::Create(config, {BuiltinPage()}).ok());
  CHECK_FALSE(Fleet::Create(SmallConfig(), {}).ok());
  CHECK_FALSE(Fleet::Create(SmallConfig(), {{"empty", "# nothing\n"}}).ok());
  const auto bad = Fleet::Create(SmallConfig(), {{"bad", "up{\n"}});
  REQUIRE_FALSE(bad.ok());
  CHECK(std::string(base::Message(bad.status())).find("bad: line 1") == 0);
}

TEST_CASE("metadata names every family once", "[loadgen]") {
  const auto fleet = Fleet::Create(SmallConfig(), {BuiltinPage()});
  const Request request = MetadataRequest(*fleet);
  std::string message;
  REQUIRE(snappy::Uncompress(request.body.data(), request.body.size(), &message));
  model::WriteBatch batch;
  REQUIRE(decode::DecodeWriteV1(message, 1, batch).ok());
  REQUIRE(batch.metadata.size() == fleet->metadata().size());
  std::set<std::string> names;
  for (const auto& entry : batch.metadata) names.insert(entry.metric);
  CHECK(names.size() == batch.metadata.size());
  CHECK(names.count("http_request_duration_seconds") == 1);
}

}  // namespace varve::loadgen
