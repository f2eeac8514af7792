// What a head costs: per sample, per new series, per series in memory, per selected series, per restart. The argument
// is the number of series; answers are checked.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "storage/base/check.h"
#include "storage/base/dice.h"
#include "storage/head/head.h"
#include "storage/model/series_source.h"
#include "storage/wal/format.h"
#include "tests/support/mem_fs.h"

namespace varve {
namespace {

constexpr uint64_t kSeed = 9;
constexpr size_t kRequest = 2000;  // series per request, as Prometheus sends them
constexpr size_t kPerTarget = 1000;

struct AllowAll : model::SeriesGate {
  bool Admit(model::LabelsView, uint64_t, uint64_t, model::WriteResult&) override { return true; }
};

int64_t CpuNs() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

int64_t ResidentBytes() {
  std::ifstream in("/proc/self/statm");
  int64_t pages = 0;
  in >> pages >> pages;
  return pages * 4096;
}

// Like node_exporter's: 5.8 labels, targets of 1,000 series, half of the values constant, the others counters and
// gauges.
class Fleet {
 public:
  explicit Fleet(size_t series) {
    labels_.reserve(series);
    for (size_t i = 0; i < series; ++i) {
      const size_t in_target = i % kPerTarget;
      std::vector<model::Label> labels = {{"__name__", "node_metric_" + std::to_string(in_target / 8) + "_total"},
                                          {"cluster", "cell-" + std::to_string(i / 100'000)},
                                          {"instance", "node-" + std::to_string(i / kPerTarget) + ":9100"},
                                          {"job", "node"},
                                          {"device", "dev" + std::to_string(in_target % 8)}};
      if (in_target % 5 != 0) labels.push_back({"mode", in_target % 2 == 0 ? "read" : "write"});
      labels_.push_back(model::Labels::FromPairs(std::move(labels)));
    }
    size_t at = 0;
    while (at < series) {
      model::WriteBatch batch;
      for (size_t k = 0; k < kRequest && at < series; ++k, ++at) {
        model::WriteBatch::Series s;
        s.labels = labels_[at].bytes();
        s.hash = model::HashLabels(s.labels, kSeed);
        s.float_begin = static_cast<uint32_t>(k);
        s.float_count = 1;
        batch.series.push_back(s);
        batch.timestamps.push_back(0);
        batch.values.push_back(0);
      }
      batches_.push_back(std::move(batch));
    }
    for (uint32_t i = 0; i < kRequest; ++i) which_.push_back(i);
  }
  static double Value(size_t series, size_t scrape) {
    const size_t kind = series % 4;
    if (kind < 2) return static_cast<double>(series % 97);
    if (kind == 2) return static_cast<double>(scrape * (1 + series % 13) + series % 1000);
    return static_cast<double>((series * 7 + scrape * 31) % 1000) / 10;
  }
  static int64_t Time(size_t series, size_t scrape) {
    return 1'700'000'000'000 + static_cast<int64_t>(scrape) * 15'000 +
           static_cast<int64_t>((series / kPerTarget) % 997);
  }
  void Prepare(size_t batch, size_t scrape) {
    model::WriteBatch& b = batches_[batch];
    for (size_t k = 0; k < b.series.size(); ++k) {
      b.timestamps[k] = Time(batch * kRequest + k, scrape);
      b.values[k] = Value(batch * kRequest + k, scrape);
    }
  }
  size_t batches() const { return batches_.size(); }
  const model::WriteBatch& batch(size_t i) const { return batches_[i]; }
  std::span<const uint32_t> which(size_t i) const { return std::span(which_).first(batches_[i].series.size()); }
  size_t size() const { return labels_.size(); }
  const model::Labels& labels(size_t i) const { return labels_[i]; }

 private:
  std::vector<model::Labels> labels_;
  std::vector<model::WriteBatch> batches_;
  std::vector<uint32_t> which_;
};

struct Rig {
  explicit Rig(bool keep_log = false) : keep(keep_log) {
    sealed = head::SealedLog::Open(fs, "sealed", {}).value();
    VARVE_CHECK(sealed->StartEmpty().ok());
    head = std::make_unique<head::Head>(head::HeadConfig{1, kSeed}, *sealed);
  }
  // CPU ns spent in the head, log encoding included.
  int64_t Scrape(Fleet& fleet, size_t scrape) {
    int64_t ns = 0;
    for (size_t b = 0; b < fleet.batches(); ++b) {
      fleet.Prepare(b, scrape);
      model::WriteResult result;
      const int64_t begin = CpuNs();
      const absl::Status status =
          head->Append(fleet.batch(b), fleet.which(b), {limits, Fleet::Time(0, scrape), gate, log}, result);
      ns += CpuNs() - begin;
      VARVE_CHECK(status.ok() && result.samples_stored == fleet.batch(b).series.size());
    }
    return ns;
  }
  bool keep;
  test::MemFs fs;
  AllowAll gate;
  model::Limits limits;
  std::unique_ptr<head::SealedLog> sealed;
  std::unique_ptr<head::Head> head;
  std::string logged;
  uint64_t log_bytes = 0;
  head::WriteLog log = [this](std::string_view records) {
    log_bytes += records.size();
    if (keep) logged += records;
    return absl::OkStatus();
  };
};

void AppendSteady(benchmark::State& state) {
  Fleet fleet(static_cast<size_t>(state.range(0)));
  Rig rig;
  const int64_t before = ResidentBytes();
  const int64_t created_ns = rig.Scrape(fleet, 0);
  size_t scrape = 1;
  for (; scrape < 40; ++scrape) rig.Scrape(fleet, scrape);
  const int64_t after = ResidentBytes();
  int64_t ns = 0;
  size_t scrapes = 0;
  const uint64_t log_before = rig.log_bytes;
  for (auto _ : state) {
    const int64_t spent = rig.Scrape(fleet, scrape++);
    state.SetIterationTime(static_cast<double>(spent) / 1e9);
    ns += spent;
    ++scrapes;
  }
  const auto n = static_cast<double>(fleet.size());
  state.counters["ns_per_sample"] = static_cast<double>(ns) / static_cast<double>(scrapes) / n;
  state.counters["ns_per_new_series"] = static_cast<double>(created_ns) / n;
  state.counters["head_bytes_per_series"] = static_cast<double>(rig.head->stats().bytes) / n;
  state.counters["rss_bytes_per_series"] =
      static_cast<double>(after - before - static_cast<int64_t>(rig.sealed->file_bytes())) / n;
  state.counters["log_bytes_per_sample"] =
      static_cast<double>(rig.log_bytes - log_before) / static_cast<double>(scrapes) / n;
  state.counters["sealed_bytes_per_sample"] = static_cast<double>(rig.sealed->end()) / n / static_cast<double>(scrape);
  state.SetLabel(rig.head->DebugString());
  // The answer: one series whole.
  model::SelectRequest request;
  for (const model::LabelRef label : fleet.labels(7)) {
    request.matchers.push_back(model::Matcher::Equal(label.name, label.value));
  }
  const auto selection = rig.head->Select(request).value();
  VARVE_CHECK(selection->size() == 1);
  model::SampleColumns columns;
  VARVE_CHECK(selection->Read(0, &columns).ok() && columns.size() == scrape);
  for (size_t k = 0; k < scrape; ++k) {
    VARVE_CHECK((*columns.times)[k] == Fleet::Time(7, k) && columns.values[k] == Fleet::Value(7, k));
  }
}
BENCHMARK(AppendSteady)->Arg(10'000)->UseManualTime()->Iterations(40)->Unit(benchmark::kMillisecond);

void Restart(benchmark::State& state) {
  Fleet fleet(static_cast<size_t>(state.range(0)));
  Rig rig(true);
  rig.Scrape(fleet, 0);
  const size_t series_log = rig.logged.size();
  for (size_t k = 1; k < 12; ++k) rig.Scrape(fleet, k);
  std::string head_bytes;
  std::string sealed_bytes;
  int64_t begin = CpuNs();
  rig.head->StartCheckpoint(1, head_bytes);
  while (rig.head->CheckpointSlice(16'384, 1, head_bytes)) {
  }
  rig.head->FinishCheckpoint(1, head_bytes);
  const int64_t write_ns = CpuNs() - begin;
  VARVE_CHECK(rig.sealed->WriteCheckpoint(sealed_bytes).ok());

  const auto replay = [](head::Head& head, std::string_view log) {
    while (!log.empty()) {
      uint32_t size = 0;
      std::memcpy(&size, log.data() + wal::kRecordMarker.size(), 4);
      const auto type = static_cast<wal::RecordType>(log[wal::kRecordHeaderBytes - 1]);
      VARVE_CHECK(head.Apply(type, log.substr(wal::kRecordHeaderBytes, size), 10).ok());
      log.remove_prefix(wal::kRecordHeaderBytes + size);
    }
  };
  int64_t series_ns = 0;
  int64_t samples_ns = 0;
  int64_t load_ns = 0;
  size_t rounds = 0;
  for (auto _ : state) {
    Rig other;
    begin = CpuNs();
    replay(*other.head, std::string_view(rig.logged).substr(0, series_log));
    series_ns += CpuNs() - begin;
    begin = CpuNs();
    replay(*other.head, std::string_view(rig.logged).substr(series_log));
    samples_ns += CpuNs() - begin;
    VARVE_CHECK(other.head->active_series() == fleet.size());
    VARVE_CHECK(other.head->stats().samples_total == fleet.size() * 12);

    Rig loaded;
    begin = CpuNs();
    VARVE_CHECK(loaded.head->LoadCheckpoint(head_bytes).ok());
    load_ns += CpuNs() - begin;
    VARVE_CHECK(loaded.head->active_series() == fleet.size());
    state.SetIterationTime(static_cast<double>(CpuNs() - begin) / 1e9);
    ++rounds;
  }
  const auto n = static_cast<double>(fleet.size()) * static_cast<double>(rounds);
  state.counters["replay_ns_per_new_series"] = static_cast<double>(series_ns) / n;
  state.counters["replay_ns_per_sample"] = static_cast<double>(samples_ns) / n / 11;
  state.counters["load_ns_per_series"] = static_cast<double>(load_ns) / n;
  state.counters["checkpoint_ns_per_series"] = static_cast<double>(write_ns) / static_cast<double>(fleet.size());
  state.counters["checkpoint_bytes_per_series"] =
      static_cast<double>(head_bytes.size()) / static_cast<double>(fleet.size());
}
BENCHMARK(Restart)->Arg(10'000)->UseManualTime()->Iterations(2)->Unit(benchmark::kMillisecond);

void Select(benchmark::State& state) {
  Fleet fleet(static_cast<size_t>(state.range(0)));
  Rig rig;
  for (size_t k = 0; k < 80; ++k) rig.Scrape(fleet, k);
  model::SelectRequest request;
  request.matchers = {model::Matcher::Create(model::MatchType::kRegex, "__name__", "node_metric_1.*").value()};
  request.range = {Fleet::Time(0, 70), Fleet::Time(0, 79) + 1000};
  int64_t select_ns = 0;
  int64_t sort_ns = 0;
  int64_t read_ns = 0;
  size_t series = 0;
  for (auto _ : state) {
    int64_t begin = CpuNs();
    const auto selection = rig.head->Select(request).value();
    select_ns += CpuNs() - begin;
    begin = CpuNs();
    const model::SeriesHash first = selection->hash(0);
    benchmark::DoNotOptimize(first);
    sort_ns += CpuNs() - begin;
    begin = CpuNs();
    model::SampleColumns columns;
    for (size_t i = 0; i < selection->size(); ++i) {
      VARVE_CHECK(selection->Read(i, &columns).ok());
      VARVE_CHECK(columns.size() == 9 || columns.size() == 10);
    }
    read_ns += CpuNs() - begin;
    series += selection->size();
  }
  state.counters["series"] = static_cast<double>(series) / static_cast<double>(state.iterations());
  state.counters["select_ns_per_series"] = static_cast<double>(select_ns) / static_cast<double>(series);
  state.counters["sort_ns_per_series"] = static_cast<double>(sort_ns) / static_cast<double>(series);
  state.counters["read_ns_per_series"] = static_cast<double>(read_ns) / static_cast<double>(series);
}
BENCHMARK(Select)->Arg(10'000)->Unit(benchmark::kMillisecond);

// The sizes of DESIGN.md's budget are too much for a smoke test: --series=1000000 adds them.
int AddLarge(int* argc, char** argv) {
  for (int i = 1; i < *argc; ++i) {
    if (std::strncmp(argv[i], "--series=", 9) != 0) continue;
    const int64_t n = std::atoll(argv[i] + 9);
    benchmark::RegisterBenchmark("AppendSteady", AppendSteady)
        ->Arg(n)
        ->UseManualTime()
        ->Iterations(40)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark("Restart", Restart)
        ->Arg(n)
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark("Select", Select)->Arg(n)->Unit(benchmark::kMillisecond);
    for (int k = i; k + 1 < *argc; ++k) argv[k] = argv[k + 1];
    --*argc;
    return 0;
  }
  return 0;
}

}  // namespace
}  // namespace varve

int main(int argc, char** argv) {
  varve::AddLarge(&argc, argv);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
