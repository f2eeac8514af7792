// sum by (mode) (rate(m[2m])) over 32,768 series that share their scrape times: the engine's part of the budget in
// DESIGN.md, with samples that are already decoded.
#include <benchmark/benchmark.h>

#include <cmath>

#include "query/engine/engine.h"
#include "storage/base/check.h"
#include "storage/base/clock.h"
#include "storage/base/strings.h"
#include "tests/support/table_source.h"

namespace varve {
namespace {

constexpr int64_t kScrapeMs = 15'000;
constexpr int kModes = 8;

struct World {
  explicit World(int series_count, int64_t span_ms) : series(series_count) {
    auto shared = std::make_shared<std::vector<int64_t>>();
    for (int64_t t = kScrapeMs; t <= span_ms + 120'000; t += kScrapeMs) shared->push_back(t);
    end_ms = shared->back();
    const model::TimeColumn times = std::move(shared);
    for (int s = 0; s < series; ++s) {
      std::vector<double> values;
      const double slope = 1 + s % kModes;  // per second; every series of a mode grows alike
      for (const int64_t t : *times) values.push_back(1e6 + slope * static_cast<double>(t) / 1000);
      source.Add(model::Labels::Of({{"__name__", "node_cpu_seconds_total"},
                                    {"cluster", "prod-eu-1"},
                                    {"cpu", base::StrCat(s / kModes % 64)},
                                    {"instance", base::StrCat("node-", s / kModes / 64, ".example.net:9100")},
                                    {"job", "node"},
                                    {"mode", base::StrCat("mode", s % kModes)}}),
                 times, std::move(values));
    }
  }
  const int series;
  int64_t end_ms = 0;
  test::TableSource source;
};

void Check(const engine::Result& result, const World& world, size_t points) {
  VARVE_CHECK(result.series.size() == kModes && result.warnings.empty());
  for (const engine::ResultSeries& one : result.series) {
    const double slope = 1.0 + (one.labels.Get("mode").back() - '0');
    VARVE_CHECK(one.points.size() == points);
    for (const engine::Point& point : one.points) {
      VARVE_CHECK(std::fabs(point.value / (slope * world.series / kModes) - 1) < 1e-9);
    }
  }
}

void Run(benchmark::State& state, int64_t span_ms) {
  const World world(static_cast<int>(state.range(0)), span_ms);
  const base::SystemClock clock;
  const engine::Engine engine(engine::EngineConfig(), clock);
  engine::Query query;
  query.text = "sum by (mode) (rate(node_cpu_seconds_total[2m]))";
  query.start_ms = world.end_ms - span_ms;
  query.end_ms = world.end_ms;
  query.step_ms = span_ms == 0 ? 0 : kScrapeMs;
  absl::StatusOr<engine::Result> result;
  for (auto _ : state) {
    result = engine.Run(query, world.source);
    benchmark::DoNotOptimize(result);
  }
  VARVE_CHECK(result.ok());
  Check(*result, world, static_cast<size_t>(span_ms / kScrapeMs) + 1);
  state.counters["series/s"] =
      benchmark::Counter(static_cast<double>(state.iterations() * world.series), benchmark::Counter::kIsRate);
}

void SumRateInstant(benchmark::State& state) { Run(state, 0); }
void SumRateOneHour(benchmark::State& state) { Run(state, 3'600'000); }
BENCHMARK(SumRateInstant)->Arg(1 << 10)->Arg(1 << 15)->Unit(benchmark::kMillisecond);
BENCHMARK(SumRateOneHour)->Arg(1 << 10)->Arg(1 << 15)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace varve
