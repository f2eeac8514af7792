// Budget: decode at least 2 G values/s in the common modes, encode at most about 5 ns a value. Shapes are those of
// exporters; "scrape" weighs them as a node exporter does (two thirds constants).
#include <benchmark/benchmark.h>

#include "storage/base/check.h"
#include "storage/codec/columns.h"
#include "tests/storage/codec/shapes.h"

namespace varve::codec {
namespace {

void Report(benchmark::State& state, size_t values, size_t bytes) {
  state.counters["ns_per_value"] = benchmark::Counter(
      static_cast<double>(values) * 1e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["bytes_per_sample"] = static_cast<double>(bytes) / static_cast<double>(values);
}

void DecodeShape(benchmark::State& state, size_t shape) {
  const auto n = static_cast<size_t>(state.range(0));
  const std::vector<double> in = MakeShape(shape, n, 1);
  std::string bytes;
  EncodeValues(in, bytes);
  std::vector<double> out(n);
  for (auto _ : state) {
    VARVE_CHECK(DecodeValues(bytes, out).ok());
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  for (size_t i = 0; i < n; ++i) VARVE_CHECK(model::SameBits(in[i], out[i]));
  Report(state, n, bytes.size());
}

void EncodeShape(benchmark::State& state, size_t shape) {
  const auto n = static_cast<size_t>(state.range(0));
  const std::vector<double> in = MakeShape(shape, n, 1);
  std::string bytes;
  for (auto _ : state) {
    bytes.clear();
    EncodeValues(in, bytes);
    benchmark::DoNotOptimize(bytes.data());
  }
  std::vector<double> out(n);
  VARVE_CHECK(DecodeValues(bytes, out).ok());
  for (size_t i = 0; i < n; ++i) VARVE_CHECK(model::SameBits(in[i], out[i]));
  Report(state, n, bytes.size());
}

// 66 % constant, 7 % counters, 11 % integer gauges, 16 % fractions, of which one in eight is no short decimal.
std::vector<std::vector<double>> Scrape(size_t n) {
  const auto shape = [](std::string_view name) {
    const auto& names = ShapeNames();
    return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  std::vector<std::vector<double>> columns;
  for (uint64_t i = 0; i < 100; ++i) {
    const char* name = i < 40   ? "zero"
                       : i < 66 ? "constant"
                       : i < 70 ? "counter"
                       : i < 73 ? "steady counter"
                       : i < 80 ? "sparse"
                       : i < 84 ? "gauge"
                       : i < 90 ? "temperature"
                       : i < 94 ? "decimal1"
                       : i < 98 ? "decimal3"
                                : "sum";
    columns.push_back(MakeShape(shape(name), n, i));
  }
  return columns;
}

void EncodeScrape(benchmark::State& state) {
  const auto n = static_cast<size_t>(state.range(0));
  const auto columns = Scrape(n);
  std::string bytes;
  for (auto _ : state) {
    bytes.clear();
    for (const auto& column : columns) EncodeValues(column, bytes);
    benchmark::DoNotOptimize(bytes.data());
  }
  Report(state, n * columns.size(), bytes.size());
}

void DecodeScrape(benchmark::State& state) {
  const auto n = static_cast<size_t>(state.range(0));
  const auto columns = Scrape(n);
  std::vector<std::string> encoded(columns.size());
  size_t bytes = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    EncodeValues(columns[i], encoded[i]);
    bytes += encoded[i].size();
  }
  std::vector<double> out(n);
  for (auto _ : state) {
    for (const std::string& column : encoded) {
      VARVE_CHECK(DecodeValues(column, out).ok());
      benchmark::ClobberMemory();
    }
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    VARVE_CHECK(DecodeValues(encoded[i], out).ok());
    for (size_t k = 0; k < n; ++k) VARVE_CHECK(model::SameBits(columns[i][k], out[k]));
  }
  Report(state, n * columns.size(), bytes);
}

void Times(benchmark::State& state) {
  const auto n = static_cast<size_t>(state.range(0));
  const int64_t jitter_ms = state.range(1);
  base::Dice dice(2);
  std::vector<int64_t> in, out;
  for (size_t i = 0; i < n; ++i) {
    in.push_back(1'700'000'000'000 + static_cast<int64_t>(i) * 1000 + dice.Between(-jitter_ms, jitter_ms));
  }
  std::string bytes;
  EncodeTimes(in, bytes);
  for (auto _ : state) {
    out.clear();
    VARVE_CHECK(DecodeTimes(bytes, out).ok());
    benchmark::DoNotOptimize(out.data());
  }
  VARVE_CHECK(in == out);
  Report(state, n, bytes.size());
}

std::vector<std::shared_ptr<const model::Histogram>> Latencies(size_t n) {
  base::Dice dice(3);
  std::vector<std::shared_ptr<const model::Histogram>> column;
  model::Histogram h;
  h.integer = true;
  h.schema = 3;
  h.zero_threshold = 0x1p-128;
  h.positive_spans = {{-20, 12}, {3, 24}};
  h.positive_buckets.assign(36, 100);
  h.count = 3600;
  for (size_t i = 0; i < n; ++i) {
    for (int k = 0; k < 40; ++k) {
      h.positive_buckets[(dice.Below(18) + dice.Below(19))] += 1;
      h.count += 1;
      h.sum += static_cast<double>(dice.Below(100'000)) / 1e6;
    }
    column.push_back(std::make_shared<model::Histogram>(h));
  }
  return column;
}

void Histograms(benchmark::State& state) {
  const auto in = Latencies(static_cast<size_t>(state.range(0)));
  std::string bytes;
  EncodeHistograms(in, bytes);
  std::vector<std::shared_ptr<const model::Histogram>> out;
  for (auto _ : state) {
    out.clear();
    VARVE_CHECK(DecodeHistograms(bytes, in.size(), out).ok());
  }
  for (size_t i = 0; i < in.size(); ++i) VARVE_CHECK(model::Identical(*in[i], *out[i]));
  Report(state, in.size(), bytes.size());
}

void HistogramAlone(benchmark::State& state) {
  const auto in = Latencies(16);
  std::string bytes;
  for (auto _ : state) {
    bytes.clear();
    EncodeHistogram(*in[15], bytes);
    benchmark::DoNotOptimize(bytes.data());
  }
  VARVE_CHECK(model::Identical(*DecodeHistogram(bytes), *in[15]));
  Report(state, 1, bytes.size());
}

const int registered = [] {
  for (size_t shape = 0; shape < ShapeNames().size(); ++shape) {
    const std::string& name = ShapeNames()[shape];
    benchmark::RegisterBenchmark(("Decode/" + name).c_str(), DecodeShape, shape)->Arg(1024);
    benchmark::RegisterBenchmark(("Encode/" + name).c_str(), EncodeShape, shape)->Arg(32)->Arg(1024);
  }
  return 0;
}();
BENCHMARK(EncodeScrape)->Arg(16)->Arg(32)->Arg(128)->Arg(1024);
BENCHMARK(DecodeScrape)->Arg(16)->Arg(32)->Arg(128)->Arg(1024);
BENCHMARK(Times)->Args({120, 0})->Args({120, 3})->Args({1024, 3});
BENCHMARK(Histograms)->Arg(16)->Arg(120);
BENCHMARK(HistogramAlone);

}  // namespace
}  // namespace varve::codec
