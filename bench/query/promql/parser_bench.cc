// Parsing and printing of an ordinary dashboard query.
#include <benchmark/benchmark.h>

#include "query/promql/parser.h"
#include "storage/base/check.h"

namespace varve::promql {
namespace {

constexpr std::string_view kQuery =
    "histogram_quantile(0.99, sum by (le, cluster) "
    "(rate(request_duration_seconds_bucket{env=\"production\",job=\"api\"}[5m])))"
    " / on (cluster) group_left () sum by (cluster) (up{job=\"api\"} == bool 1)";

void ParseQuery(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Parse(kQuery));
  VARVE_CHECK(Print(**Parse(kQuery)) == kQuery);
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kQuery.size()));
}
BENCHMARK(ParseQuery);

void PrintQuery(benchmark::State& state) {
  const auto expr = Parse(kQuery);
  VARVE_CHECK(expr.ok());
  for (auto _ : state) benchmark::DoNotOptimize(Print(**expr));
}
BENCHMARK(PrintQuery);

}  // namespace
}  // namespace varve::promql
