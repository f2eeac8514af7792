#pragma once
// What stands in the log: encoders and decoders of the payloads. Layouts: FORMAT.md.
//
// Every record stands for itself (its strings are coded within the record), so that a lost record loses nothing else,
// and segments can be dropped in any order. A tenant is a small number that a TenantRecord explains;
// Writer::AddPreamble repeats those at the head of every segment. Series ids are the head's, unique within the tenant's
// log and never reused; they are delta coded, so ids that count up in the order of the requests cost one byte.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/bytes.h"
#include "storage/base/status.h"
#include "storage/model/labels.h"
#include "storage/model/write_batch.h"
#include "storage/wal/format.h"

namespace varve::wal {

using TenantRef = uint32_t;

// ---- Writing ----

// Frames records into one buffer, reused from request to request:
//   builder.Begin(); builder.AddSeries(...); builder.AddFloats(...); log.Write(builder.Finish());
// Series, histograms, exemplars, metadata and forgotten ids collect until another kind or another tenant comes, then
// become one record; records stand in the order of the calls. One thread.
class RecordBuilder {
 public:
  RecordBuilder();
  ~RecordBuilder();
  RecordBuilder(const RecordBuilder&) = delete;
  RecordBuilder& operator=(const RecordBuilder&) = delete;

  // Items are at most 16 MiB each (names, labels, encoded histograms, help texts): limits elsewhere keep them far
  // below.
  void Begin();  // forgets what was built; keeps capacity
  void AddTenant(TenantRef ref, std::string_view name);
  // `labels` are copied. Canonical, as LabelsView promises.
  void AddSeries(TenantRef tenant, uint64_t series, model::SeriesHash hash, model::LabelsView labels);
  // Columns of equal size; start_times_ms (0 = unknown) may be empty. Runs of equal times cost one time. Split into
  // records of at most kFloatsPerRecord samples.
  void AddFloats(TenantRef tenant, std::span<const uint64_t> series, std::span<const int64_t> times_ms,
                 std::span<const double> values, std::span<const int64_t> start_times_ms = {});
  // `encoded` is codec::EncodeHistogram's.
  void AddHistogram(TenantRef tenant, uint64_t series, int64_t t_ms, int64_t start_ms, std::string_view encoded);
  void AddExemplar(TenantRef tenant, uint64_t series, const model::Exemplar& exemplar);
  void AddMetadata(TenantRef tenant, const model::Metadata& metadata);
  void AddForget(TenantRef tenant, uint64_t series);
  // The framed records since Begin; valid until the next call of Begin or an Add.
  std::string_view Finish();

  size_t records() const { return records_; }  // closed so far
  static constexpr size_t kFloatsPerRecord = 8192;

 private:
  class PairTable;
  void Switch(RecordType kind, TenantRef tenant);
  void Close();
  size_t OpenFrame();
  void CloseFrame(size_t start, RecordType type);

  std::string out_;
  std::string items_;  // of the record that is open, without its header
  RecordType open_ = RecordType::kTenant;
  TenantRef tenant_ = 0;
  uint64_t open_items_ = 0;
  uint64_t last_series_ = 0;
  int64_t last_time_ = 0;
  size_t records_ = 0;
  std::unique_ptr<PairTable> pairs_;
};

// ---- Reading ----
// Decoders take the payload of a record of their type, check everything, and answer DataLoss to what cannot be. Their
// views and spans hold until the decoder's next call and as long as the payload does.

struct TenantRecord {
  TenantRef ref = 0;
  std::string_view name;
};
absl::StatusOr<TenantRecord> DecodeTenant(std::string_view payload);

// A batch of new series. Label pairs are numbered within the record, so that a reader interns each distinct pair once:
// series i has the pairs pairs()[r] for r in refs(i), names strictly ascending, no name or value empty. May be reused.
class SeriesDecoder {
 public:
  absl::Status Decode(std::string_view payload);
  TenantRef tenant() const { return tenant_; }
  std::span<const model::LabelRef> pairs() const { return pairs_; }
  size_t size() const { return ids_.size(); }
  uint64_t id(size_t i) const { return ids_[i]; }
  model::SeriesHash hash(size_t i) const { return hashes_[i]; }
  std::span<const uint32_t> refs(size_t i) const {
    return std::span(refs_).subspan(ref_begin_[i], ref_begin_[i + 1] - ref_begin_[i]);
  }
  void AppendCanonical(size_t i, std::string& out) const;  // the label set's canonical bytes

 private:
  TenantRef tenant_ = 0;
  std::vector<std::string_view> names_;
  std::vector<uint32_t> name_rank_;
  std::vector<uint32_t> pair_rank_;
  std::vector<model::LabelRef> pairs_;
  std::vector<uint64_t> ids_;
  std::vector<model::SeriesHash> hashes_;
  std::vector<uint32_t> refs_, ref_begin_;
};

// Samples that were logged together. When they share one time, `times_ms` is empty and `time_ms` is it.
struct FloatGroup {
  std::span<const uint64_t> series;
  std::span<const double> values;
  std::span<const int64_t> times_ms;
  std::span<const int64_t> start_times_ms;  // empty: all unknown
  int64_t time_ms = 0;
  size_t size() const { return series.size(); }
  int64_t t(size_t i) const { return times_ms.empty() ? time_ms : times_ms[i]; }
};
// May be reused: Begin, then Next until it gives false, then status().
class FloatsDecoder {
 public:
  absl::Status Begin(std::string_view payload);
  TenantRef tenant() const { return tenant_; }
  bool Next(FloatGroup* group);
  const absl::Status& status() const { return status_; }

 private:
  base::ByteReader in_{std::string_view()};
  absl::Status status_;
  TenantRef tenant_ = 0;
  uint64_t last_series_ = 0;
  int64_t last_time_ = 0;
  std::vector<uint64_t> series_;
  std::vector<double> values_;
  std::vector<int64_t> times_, start_times_;
};

struct HistogramEntry {
  uint64_t series = 0;
  int64_t t_ms = 0, start_ms = 0;  // start 0: unknown
  std::string_view encoded;        // codec::DecodeHistogram checks it
};
struct ExemplarEntry {
  uint64_t series = 0;
  int64_t t_ms = 0;
  double value = 0;
  model::LabelsView labels;  // checked to be canonical
};
struct MetadataEntry {
  model::MetricType type = model::MetricType::kUnknown;
  std::string_view metric, help, unit;
};
// The whole record or an error.
absl::Status DecodeHistograms(std::string_view payload, TenantRef* tenant, std::vector<HistogramEntry>* out);
absl::Status DecodeExemplars(std::string_view payload, TenantRef* tenant, std::vector<ExemplarEntry>* out);
absl::Status DecodeMetadata(std::string_view payload, TenantRef* tenant, std::vector<MetadataEntry>* out);
absl::Status DecodeForget(std::string_view payload, TenantRef* tenant, std::vector<uint64_t>* out);

// For people: one line per item, at most `items_max` of them; says what is wrong with a payload that does not decode.
std::string DebugString(RecordType type, std::string_view payload, size_t items_max = 100);

}  // namespace varve::wal
