// What it costs to take a request apart: labels hashed, samples in columns. Budget: 60 ns a series for remote write 1.0
// with some 180 bytes of labels in six.
#include <benchmark/benchmark.h>
#include <snappy.h>

#include "ingest/decode/encoding.h"
#include "ingest/decode/text_format.h"
#include "ingest/decode/write_request.h"
#include "proto/prom_write_v1.pb.h"
#include "proto/prom_write_v2.pb.h"
#include "storage/base/check.h"
#include "storage/base/dice.h"
#include "storage/base/strings.h"

namespace varve::decode {
namespace {

namespace v2 = io::prometheus::write::v2;
constexpr size_t kSeries = 2000;
constexpr uint64_t kSeed = 42;

// Series as a node's exporter and a Prometheus with two external labels make them.
std::vector<model::Label> LabelsOf(size_t i) {
  return {{"__name__", base::StrCat("node_network_transmit_packets_", i % 40)},
          {"cluster", "prod-eu-gpu-07"},
          {"device", base::StrCat("enp", i / 40 % 8, "s0f", i % 2)},
          {"instance", base::StrCat("gpu-node-", 1000 + i / 320, ".eu.internal:9100")},
          {"job", "node-exporter"},
          {"prometheus", "monitoring/p7"}};
}

prometheus::WriteRequest RequestV1() {
  base::Dice dice(kSeed);
  prometheus::WriteRequest request;
  for (size_t i = 0; i < kSeries; ++i) {
    auto* series = request.add_timeseries();
    for (const model::Label& pair : LabelsOf(i)) {
      auto* label = series->add_labels();
      label->set_name(pair.name);
      label->set_value(pair.value);
    }
    auto* sample = series->add_samples();
    sample->set_value(static_cast<double>(dice.Below(1'000'000)) / 10);
    sample->set_timestamp(1'700'000'000'123);
  }
  return request;
}

v2::Request RequestV2() {
  v2::Request request;
  base::StringMap<uint32_t> refs;
  const auto ref = [&](const std::string& text) {
    const auto [it, added] = refs.emplace(text, request.symbols_size());
    if (added) request.add_symbols(text);
    return it->second;
  };
  ref("");
  const prometheus::WriteRequest one = RequestV1();
  for (const auto& from : one.timeseries()) {
    auto* series = request.add_timeseries();
    for (const auto& label : from.labels()) {
      series->add_labels_refs(ref(label.name()));
      series->add_labels_refs(ref(label.value()));
    }
    auto* sample = series->add_samples();
    sample->set_value(from.samples(0).value());
    sample->set_timestamp(from.samples(0).timestamp());
  }
  return request;
}

void Check(const model::WriteBatch& batch) {
  const prometheus::WriteRequest want = RequestV1();
  VARVE_CHECK(batch.series.size() == kSeries && batch.refused.AllStored());
  for (size_t i = 0; i < kSeries; ++i) {
    const model::Labels labels = model::Labels::FromPairs(LabelsOf(i));
    VARVE_CHECK(batch.series[i].labels == labels.bytes());
    VARVE_CHECK(batch.series[i].hash == model::HashLabels(labels.bytes(), kSeed));
    VARVE_CHECK(batch.values[i] == want.timeseries(static_cast<int>(i)).samples(0).value());
    VARVE_CHECK(batch.timestamps[i] == 1'700'000'000'123);
  }
}

void Report(benchmark::State& state, size_t bytes) {
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kSeries));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}

void DecodeV1(benchmark::State& state) {
  const std::string message = RequestV1().SerializeAsString();
  model::WriteBatch batch;
  for (auto _ : state) {
    batch.Clear();
    VARVE_CHECK(DecodeWriteV1(message, kSeed, batch).ok());
    benchmark::DoNotOptimize(batch.values.data());
  }
  Check(batch);
  Report(state, message.size());
  state.counters["label_bytes"] = static_cast<double>(batch.series[0].labels.size());
}
BENCHMARK(DecodeV1);

void DecodeV2(benchmark::State& state) {
  const std::string message = RequestV2().SerializeAsString();
  model::WriteBatch batch;
  for (auto _ : state) {
    batch.Clear();
    VARVE_CHECK(DecodeWriteV2(message, kSeed, batch).ok());
    benchmark::DoNotOptimize(batch.values.data());
  }
  Check(batch);
  Report(state, message.size());
}
BENCHMARK(DecodeV2);

void HashLabelsOnly(benchmark::State& state) {
  const std::string message = RequestV1().SerializeAsString();
  model::WriteBatch batch;
  VARVE_CHECK(DecodeWriteV1(message, kSeed, batch).ok());
  for (auto _ : state) {
    for (const auto& series : batch.series) benchmark::DoNotOptimize(model::HashLabels(series.labels, kSeed));
  }
  Report(state, message.size());
}
BENCHMARK(HashLabelsOnly);

void LibprotobufV1(benchmark::State& state) {  // for comparison: objects only, nothing hashed
  const std::string message = RequestV1().SerializeAsString();
  prometheus::WriteRequest request;
  for (auto _ : state) VARVE_CHECK(request.ParseFromString(message));
  Report(state, message.size());
}
BENCHMARK(LibprotobufV1);

void UncompressSnappyV1(benchmark::State& state) {
  const std::string message = RequestV1().SerializeAsString();
  std::string body, out;
  snappy::Compress(message.data(), message.size(), &body);
  for (auto _ : state) VARVE_CHECK(Uncompress(Encoding::kSnappy, body, 32 << 20, out).ok());
  VARVE_CHECK(out == message);
  Report(state, message.size());
  state.counters["body_bytes"] = static_cast<double>(body.size());
}
BENCHMARK(UncompressSnappyV1);

void DecodeTextPage(benchmark::State& state) {
  std::string page;
  const prometheus::WriteRequest request = RequestV1();
  for (const auto& series : request.timeseries()) {
    page += series.labels(0).value();
    for (int i = 1; i < series.labels_size(); ++i) {
      base::StrAppend(page, i == 1 ? "{" : ",", series.labels(i).name(), "=\"", series.labels(i).value(), "\"");
    }
    base::StrAppend(page, "} ", series.samples(0).value(), "\n");
  }
  model::WriteBatch batch;
  TextOptions options;
  options.now_ms = 1'700'000'000'123;
  options.hash_seed = kSeed;
  for (auto _ : state) {
    batch.Clear();
    VARVE_CHECK(DecodeText(page, options, batch).ok());
  }
  Check(batch);
  Report(state, page.size());
}
BENCHMARK(DecodeTextPage);

}  // namespace
}  // namespace varve::decode
