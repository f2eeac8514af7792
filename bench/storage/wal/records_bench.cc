// The log's share of a sample and of a series, in CPU time: encoding, decoding, checksums and reading back.
#include <benchmark/benchmark.h>

#include <numeric>
#include <string>
#include <vector>

#include "storage/base/check.h"
#include "storage/base/crc32c.h"
#include "storage/base/dice.h"
#include "storage/base/strings.h"
#include "storage/wal/reader.h"
#include "storage/wal/records.h"
#include "tests/support/mem_fs.h"

namespace varve::wal {
namespace {

constexpr size_t kTarget = 500;  // series of one target: a scrape, with one time

struct Batch {
  std::vector<uint64_t> series;
  std::vector<int64_t> times;
  std::vector<double> values;
};

// `samples` of consecutive targets, as a sender batches them. With `mixed` every sample has its own time.
Batch MakeBatch(size_t samples, bool mixed) {
  base::Dice dice(1);
  Batch batch;
  for (size_t i = 0; i < samples; ++i) {
    batch.series.push_back(1'000'000 + i);
    batch.times.push_back(1'700'000'000'000 + static_cast<int64_t>(i / kTarget) * 37 +
                          (mixed ? dice.Between(0, 14'999) : 0));
    batch.values.push_back(dice.Unit());
  }
  return batch;
}

void EncodeFloats(benchmark::State& state) {
  const Batch batch = MakeBatch(static_cast<size_t>(state.range(0)), state.range(1) != 0);
  RecordBuilder builder;
  size_t bytes = 0;
  for (auto _ : state) {
    builder.Begin();
    builder.AddFloats(1, batch.series, batch.times, batch.values);
    bytes = builder.Finish().size();
    benchmark::DoNotOptimize(bytes);
  }
  const auto n = static_cast<double>(batch.series.size());
  state.counters["per_sample"] =
      benchmark::Counter(n, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["bytes_per_sample"] = static_cast<double>(bytes) / n;
}
BENCHMARK(EncodeFloats)->ArgNames({"samples", "mixed"})->Args({2000, 0})->Args({2000, 1});

void DecodeFloats(benchmark::State& state) {
  const Batch batch = MakeBatch(static_cast<size_t>(state.range(0)), state.range(1) != 0);
  RecordBuilder builder;
  builder.Begin();
  builder.AddFloats(1, batch.series, batch.times, batch.values);
  const std::string payload(builder.Finish().substr(kRecordHeaderBytes));
  FloatsDecoder decoder;
  const uint64_t expected = std::accumulate(batch.series.begin(), batch.series.end(), uint64_t{0});
  for (auto _ : state) {
    uint64_t sum = 0;
    size_t samples = 0;
    VARVE_CHECK(decoder.Begin(payload).ok());
    FloatGroup group;
    while (decoder.Next(&group)) {
      samples += group.size();
      for (const uint64_t id : group.series) sum += id;
      benchmark::DoNotOptimize(group.values.data());
    }
    VARVE_CHECK(decoder.status().ok() && samples == batch.series.size() && sum == expected);
  }
  state.counters["samples"] =
      benchmark::Counter(static_cast<double>(batch.series.size()), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(DecodeFloats)->ArgNames({"samples", "mixed"})->Args({2000, 0})->Args({2000, 1});

// Series of node_exporter's shape: 5.8 labels, of which instance and job are the target's.
std::vector<model::Labels> MakeSeries(size_t count) {
  std::vector<model::Labels> out;
  for (size_t i = 0; i < count; ++i) {
    const size_t target = i / kTarget, metric = i % kTarget;
    std::vector<model::Label> labels = {{"__name__", base::StrCat("node_subsystem_metric_", metric / 4, "_total")},
                                        {"cluster", "eu-west-1-production"},
                                        {"instance", base::StrCat("10.1.", target / 250, ".", target % 250, ":9100")},
                                        {"job", "node-exporter"},
                                        {"device", base::StrCat("device", metric % 4)}};
    if (metric % 5 != 0) labels.push_back({"mode", base::StrCat("mode", metric % 8)});
    out.push_back(model::Labels::FromPairs(labels));
  }
  return out;
}

void EncodeSeries(benchmark::State& state) {
  const std::vector<model::Labels> series = MakeSeries(static_cast<size_t>(state.range(0)));
  RecordBuilder builder;
  size_t bytes = 0;
  for (auto _ : state) {
    builder.Begin();
    for (size_t i = 0; i < series.size(); ++i) builder.AddSeries(1, i, {i, i}, series[i]);
    bytes = builder.Finish().size();
    benchmark::DoNotOptimize(bytes);
  }
  const auto n = static_cast<double>(series.size());
  state.counters["per_series"] =
      benchmark::Counter(n, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["bytes_per_series"] = static_cast<double>(bytes) / n;
}
BENCHMARK(EncodeSeries)->ArgName("series")->Arg(500)->Arg(2000);

void DecodeSeries(benchmark::State& state) {
  const std::vector<model::Labels> series = MakeSeries(static_cast<size_t>(state.range(0)));
  RecordBuilder builder;
  builder.Begin();
  for (size_t i = 0; i < series.size(); ++i) builder.AddSeries(1, i, {i, i}, series[i]);
  const std::string payload(builder.Finish().substr(kRecordHeaderBytes));
  VARVE_CHECK(builder.records() == 1);
  SeriesDecoder decoder;
  for (auto _ : state) {
    VARVE_CHECK(decoder.Decode(payload).ok());
    VARVE_CHECK(decoder.size() == series.size());
  }
  std::string canonical;
  for (size_t i = 0; i < series.size(); ++i) {
    canonical.clear();
    decoder.AppendCanonical(i, canonical);
    VARVE_CHECK(canonical == series[i].bytes());
  }
  state.counters["series"] =
      benchmark::Counter(static_cast<double>(series.size()), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(DecodeSeries)->ArgName("series")->Arg(500)->Arg(2000);

void Checksum(benchmark::State& state) {
  const std::string bytes(static_cast<size_t>(state.range(0)), 'x');
  uint32_t crc = 0;
  for (auto _ : state) benchmark::DoNotOptimize(crc = base::Crc32c(bytes, crc));
  state.SetBytesProcessed(static_cast<int64_t>(bytes.size()) * static_cast<int64_t>(state.iterations()));
}
BENCHMARK(Checksum)->ArgName("bytes")->Arg(64)->Arg(512)->Arg(20'000)->Arg(8 << 20);

// A log of float records, checksums and decoding included, from memory.
void ReadLog(benchmark::State& state) {
  const Batch batch = MakeBatch(2000, false);
  RecordBuilder builder;
  builder.Begin();
  builder.AddFloats(1, batch.series, batch.times, batch.values);
  std::string segment = SegmentHeader(1);
  const size_t records = static_cast<size_t>(state.range(0));
  for (size_t i = 0; i < records; ++i) segment += builder.Finish();
  test::MemFs fs;
  fs.Overwrite("wal/00000001.wal", segment);
  FloatsDecoder decoder;
  for (auto _ : state) {
    state.PauseTiming();  // the files in memory copy when they map
    auto reader = Reader::Open(fs, "wal", {}, "");
    Record record;
    VARVE_CHECK((*reader)->Next(&record));
    state.ResumeTiming();
    size_t samples = 0;
    do {
      VARVE_CHECK(decoder.Begin(record.payload).ok());
      FloatGroup group;
      while (decoder.Next(&group)) samples += group.size();
    } while ((*reader)->Next(&record));
    VARVE_CHECK(samples == records * batch.series.size());
  }
  state.SetBytesProcessed(static_cast<int64_t>(segment.size()) * static_cast<int64_t>(state.iterations()));
  state.counters["samples"] = benchmark::Counter(static_cast<double>(records * batch.series.size()),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(ReadLog)->ArgName("records")->Arg(3000);

}  // namespace
}  // namespace varve::wal
