// How long a result takes to become JSON.
#include <benchmark/benchmark.h>

#include "query/api/json.h"
#include "storage/base/check.h"
#include "storage/base/dice.h"
#include "storage/base/strings.h"

namespace varve::api {
namespace {

enum class Kind { kInteger, kThreeDecimals, kFull };

engine::Result Matrix(size_t series, size_t steps, Kind kind) {
  base::Dice dice(1);
  engine::Result result;
  result.type = promql::ValueType::kMatrix;
  result.series.resize(series);
  for (size_t i = 0; i < series; ++i) {
    result.series[i].labels = model::Labels::Of({{"__name__", "node_cpu_seconds_total"},
                                                 {"instance", base::StrCat("node-", i, ":9100")},
                                                 {"job", "node"},
                                                 {"mode", "idle"}});
    for (size_t k = 0; k < steps; ++k) {
      double v = dice.Unit() * 1e6;
      if (kind == Kind::kInteger) v = static_cast<double>(static_cast<int64_t>(v));
      if (kind == Kind::kThreeDecimals) v = static_cast<double>(static_cast<int64_t>(v * 1000)) / 1000;
      result.series[i].points.push_back({1'700'000'000'000 + static_cast<int64_t>(k) * 15'000, v});
    }
  }
  return result;
}

void WriteMatrix(benchmark::State& state, Kind kind) {
  const engine::Result result = Matrix(100, 240, kind);
  std::string out;
  for (auto _ : state) {
    out.clear();
    AppendResult(out, result);
    benchmark::DoNotOptimize(out.data());
  }
  size_t values = 0;
  for (size_t at = 0; (at = out.find("[17", at)) != std::string::npos; ++at) ++values;
  VARVE_CHECK(values == 100 * 240);
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * 100 * 240);
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * out.size()));
}
BENCHMARK_CAPTURE(WriteMatrix, integers, Kind::kInteger);
BENCHMARK_CAPTURE(WriteMatrix, three_decimals, Kind::kThreeDecimals);
BENCHMARK_CAPTURE(WriteMatrix, full_precision, Kind::kFull);

void WriteLabels(benchmark::State& state) {
  const engine::Result result = Matrix(1000, 0, Kind::kInteger);
  std::string out;
  for (auto _ : state) {
    out.clear();
    for (const engine::ResultSeries& series : result.series) AppendLabels(out, series.labels);
    benchmark::DoNotOptimize(out.data());
  }
  VARVE_CHECK(
      out.starts_with(R"({"__name__":"node_cpu_seconds_total","instance":"node-0:9100","job":"node","mode":"idle"}{)"));
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * 1000);
}
BENCHMARK(WriteLabels);

}  // namespace
}  // namespace varve::api
