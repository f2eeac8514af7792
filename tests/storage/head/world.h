#pragma once
// A head with everything around it, in memory: log, sealed log, checkpoints, restarts. Verbs for tests.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/base/check.h"
#include "storage/head/head.h"
#include "storage/model/series_source.h"
#include "storage/wal/reader.h"
#include "storage/wal/records.h"
#include "storage/wal/writer.h"
#include "tests/support/manual_clock.h"
#include "tests/support/mem_fs.h"

namespace varve::test {

inline constexpr uint64_t kSeed = 77;

struct AllowAll : model::SeriesGate {
  bool Admit(model::LabelsView, uint64_t active, uint64_t samples, model::WriteResult& result) override {
    if (active >= series_max) {
      result.Reject(model::Reason::kSeriesLimit, samples, "too many");
      return false;
    }
    return true;
  }
  uint64_t series_max = UINT64_MAX;
};

// A request under construction; owns its bytes.
class Request {
 public:
  Request& Series(const model::Labels& labels) {
    batch_.bodies.emplace_back(labels.bytes());
    return Wire(batch_.bodies.back());
  }
  Request& Wire(std::string_view bytes) {  // must outlive the request
    model::WriteBatch::Series s;
    s.labels = bytes;
    s.hash = model::HashLabels(bytes, kSeed);
    s.float_begin = static_cast<uint32_t>(batch_.timestamps.size());
    s.histogram_begin = static_cast<uint32_t>(batch_.histograms.size());
    s.exemplar_begin = static_cast<uint32_t>(batch_.exemplars.size());
    batch_.series.push_back(s);
    return *this;
  }
  Request& Float(int64_t t, double v, int64_t start = 0) {
    if (start != 0 || !batch_.start_timestamps.empty()) {
      batch_.start_timestamps.resize(batch_.timestamps.size());
      batch_.start_timestamps.push_back(start);
    }
    batch_.timestamps.push_back(t);
    batch_.values.push_back(v);
    ++batch_.series.back().float_count;
    return *this;
  }
  Request& Hist(int64_t t, model::Histogram h, int64_t start = 0) {
    batch_.histograms.push_back({t, start, std::move(h)});
    ++batch_.series.back().histogram_count;
    return *this;
  }
  Request& Example(model::Exemplar e) {
    batch_.exemplars.push_back(std::move(e));
    ++batch_.series.back().exemplar_count;
    return *this;
  }
  const model::WriteBatch& batch() {
    if (!batch_.start_timestamps.empty()) batch_.start_timestamps.resize(batch_.timestamps.size());
    return batch_;
  }

 private:
  model::WriteBatch batch_;
};

// A shard with one head.
class World {
 public:
  explicit World(size_t block_bytes = 4096) : metrics_(registry_) {
    sealed_config_.block_bytes = block_bytes;
    Open();
    VARVE_CHECK(sealed->StartEmpty().ok());
  }

  absl::Status TryAppend(Request& request, model::WriteResult& result) {
    const model::WriteBatch& batch = request.batch();
    std::vector<uint32_t> which;
    for (uint32_t i = 0; i < batch.series.size(); ++i) which.push_back(i);
    return head->Append(batch, which, {limits, now_ms, gate, log}, result);
  }
  model::WriteResult Append(Request& request) {
    model::WriteResult result;
    const absl::Status status = TryAppend(request, result);
    VARVE_CHECK_MSG(status.ok(), base::Message(status));
    return result;
  }
  model::WriteResult Append(const model::Labels& labels, int64_t t, double v) {
    Request request;
    request.Series(labels).Float(t, v);
    return Append(request);
  }

  head::LogPosition Now() const { return head::ToLogPosition(writer->position()); }
  struct Checkpoint {
    std::string head_bytes, sealed_bytes;
    wal::Position from;
  };
  // Calls `between` after every slice.
  template <class F>
  void TakeCheckpoint(size_t slice, F between) {
    Checkpoint c;
    c.from = writer->position();
    head->StartCheckpoint(Now(), c.head_bytes);
    while (head->CheckpointSlice(slice, Now(), c.head_bytes)) between();
    between();
    head->FinishCheckpoint(Now(), c.head_bytes);
    const absl::Status status = sealed->WriteCheckpoint(c.sealed_bytes);
    VARVE_CHECK_MSG(status.ok(), base::Message(status));
    checkpoint = std::move(c);
  }
  void TakeCheckpoint() {
    TakeCheckpoint(1000, [] {});
  }

  // As after a kill of the process.
  void Restart() {
    head.reset();
    sealed.reset();
    writer.reset();
    Open();
    if (checkpoint.head_bytes.empty()) {
      VARVE_CHECK(sealed->StartEmpty().ok());
    } else {
      absl::Status status = sealed->LoadCheckpoint(checkpoint.sealed_bytes);
      VARVE_CHECK_MSG(status.ok(), base::Message(status));
      status = head->LoadCheckpoint(checkpoint.head_bytes);
      VARVE_CHECK_MSG(status.ok(), base::Message(status));
    }
    auto reader = wal::Reader::Open(fs, "wal", checkpoint.from, "");
    VARVE_CHECK(reader.ok());
    wal::Record record;
    while ((*reader)->Next(&record)) {
      const absl::Status status = head->Apply(record.type, record.payload, head::ToLogPosition(record.begin));
      VARVE_CHECK_MSG(status.ok(), base::Message(status));
    }
  }

  std::unique_ptr<model::HashedSelection> Select(model::TimeRange range = model::TimeRange::All(),
                                                 std::vector<model::Matcher> matchers = {}) const {
    model::SelectRequest request;
    request.range = range;
    request.matchers = std::move(matchers);
    auto selection = head->Select(request);
    VARVE_CHECK(selection.ok());
    return std::move(selection).value();
  }

  MemFs fs;
  ManualClock clock;
  AllowAll gate;
  model::Limits limits;
  int64_t now_ms = 1'000'000'000;
  std::unique_ptr<wal::Writer> writer;
  std::unique_ptr<head::SealedLog> sealed;
  std::unique_ptr<head::Head> head;
  Checkpoint checkpoint;
  int log_failures = 0;  // so many of the next writes fail
  int log_writes = 0;
  head::WriteLog log = [this](std::string_view records) -> absl::Status {
    ++log_writes;
    if (log_failures > 0) {
      --log_failures;
      return absl::ResourceExhaustedError("disk full");
    }
    return writer->Write(records);
  };

 private:
  void Open() {
    auto w = wal::Writer::Open(fs, "wal", {}, clock, metrics_);
    VARVE_CHECK(w.ok());
    writer = std::move(w).value();
    auto s = head::SealedLog::Open(fs, "sealed", sealed_config_);
    VARVE_CHECK(s.ok());
    sealed = std::move(s).value();
    head::HeadConfig config;
    config.tenant_ref = 3;
    config.hash_seed = kSeed;
    head = std::make_unique<head::Head>(config, *sealed);
  }

  base::Registry registry_;
  wal::WriterMetrics metrics_;
  head::SealedLogConfig sealed_config_;
};

// One series read out, as text: `1000:1 2000:2.5@500 3000:h(4)`; @ is the start time, h a histogram's count.
inline std::string Text(const model::SampleColumns& c) {
  std::string out;
  size_t h = 0;
  for (size_t i = 0; i < c.size(); ++i) {
    if (i > 0) out += ' ';
    base::StrAppend(out, (*c.times)[i], ":");
    if (h < c.histogram_at.size() && c.histogram_at[h] == i) {
      const model::Histogram& histogram = *c.histograms[h++];
      static constexpr const char* kHints[] = {"unknown", "reset", "not_reset", "gauge"};
      base::StrAppend(out, histogram.IsStale() ? std::string("hstale") : base::StrCat("h", histogram.count), "/",
                      kHints[static_cast<int>(histogram.hint)]);
    } else if (model::IsStaleNan(c.values[i])) {
      out += "stale";
    } else {
      base::StrAppend(out, c.values[i]);
    }
    if (!c.start_times.empty() && c.start_times[i] != 0) base::StrAppend(out, "@", c.start_times[i]);
  }
  return out;
}
inline std::string ReadText(const model::Selection& selection, size_t i) {
  model::SampleColumns columns;
  const absl::Status status = selection.Read(i, &columns);
  return status.ok() ? Text(columns) : status.ToString();
}
// Everything, one line per series.
inline std::string Dump(const model::Selection& selection) {
  std::string out;
  for (size_t i = 0; i < selection.size(); ++i) {
    base::StrAppend(out, selection.labels(i).ToString(), " ", ReadText(selection, i), "\n");
  }
  return out;
}

}  // namespace varve::test
