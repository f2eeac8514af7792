#include <algorithm>

#include "ingest/decode/canonical.h"
#include "ingest/decode/message.h"
#include "ingest/decode/wire.h"
#include "ingest/decode/write_request.h"
#include "storage/base/strings.h"

namespace varve::decode {

namespace {

using model::Reason;

// What is wrong with a list of label references, if anything.
struct Complaint {
  Reason reason = Reason::kCount;
  std::string text;
};

class ReaderV2 {
 public:
  ReaderV2(std::string_view message, uint64_t seed, model::WriteBatch& batch)
      : message_(message), seed_(seed), batch_(batch), arena_(batch) {}

  absl::Status Run() {
    if (!Message()) {
      return FaultStatus(fault_, "2.0", message_, in_series_ ? std::optional(series_read_) : std::nullopt);
    }
    if (!any_start_) batch_.start_timestamps.clear();
    return absl::OkStatus();
  }

 private:
  // Symbols may stand behind the series that use them, so series are only noted in the first pass.
  bool Message() {
    if (batch_.start_timestamps.empty())
      batch_.start_timestamps.resize(batch_.timestamps.size());
    else
      any_start_ = true;
    Wire wire(message_, "message", fault_);
    std::vector<std::string_view> all_series;
    uint32_t tag = 0;
    std::string_view bytes;
    while (!wire.AtEnd()) {
      if (!wire.NextTag(tag)) return false;
      switch (tag) {
        case Tag(4, kBytes):
          if (symbols_.size() >= kSymbolsMax) return wire.Fail("too many symbols");
          if (!wire.Bytes(bytes)) return false;
          if (symbols_.empty() && !bytes.empty()) return wire.Fail(bytes.data(), "the first symbol is not \"\"");
          symbols_.push_back(bytes);
          break;
        case Tag(5, kBytes):
          if (all_series.size() >= kSeriesMax) return wire.Fail("too many timeseries");
          if (!wire.Bytes(bytes)) return false;
          all_series.push_back(bytes);
          break;
        default:
          if (!wire.Skip(tag)) return false;
      }
    }
    in_series_ = true;
    batch_.series.reserve(batch_.series.size() + all_series.size());
    for (const std::string_view series : all_series) {
      if (!Series(wire.Inside(series, "timeseries"))) return false;
      ++series_read_;
    }
    return true;
  }

  bool Series(Wire wire) {
    model::WriteBatch::Series series;
    series.float_begin = static_cast<uint32_t>(batch_.timestamps.size());
    series.histogram_begin = static_cast<uint32_t>(batch_.histograms.size());
    series.exemplar_begin = static_cast<uint32_t>(batch_.exemplars.size());
    refs_.clear();
    meta_ = {};
    uint32_t tag = 0;
    std::string_view bytes;
    while (!wire.AtEnd()) {
      const char* at = wire.position();
      if (!wire.NextTag(tag)) return false;
      switch (tag) {
        case Tag(1, kBytes):
        case Tag(1, kVarint):
          if (!ReadRefs(wire, tag, refs_)) return false;
          break;
        case Tag(2, kBytes): {
          if (batch_.timestamps.size() >= kSamplesMax) return wire.Fail(at, "too many samples");
          double value = 0;
          int64_t t_ms = 0;
          int64_t start_ms = 0;
          if (!wire.Bytes(bytes) || !ReadSample(wire.Inside(bytes, "timeseries.samples"), value, t_ms, &start_ms)) {
            return false;
          }
          batch_.timestamps.push_back(t_ms);
          batch_.values.push_back(value);
          batch_.start_timestamps.push_back(start_ms);
          any_start_ = any_start_ || start_ms != 0;
          break;
        }
        case Tag(3, kBytes):
          if (batch_.histograms.size() >= kHistogramsMax) return wire.Fail(at, "too many histograms");
          if (!wire.Bytes(bytes) ||
              !ReadHistogram(wire.Inside(bytes, "timeseries.histograms"), true, batch_.histograms.emplace_back())) {
            return false;
          }
          break;
        case Tag(4, kBytes):
          if (batch_.exemplars.size() >= kExemplarsMax) return wire.Fail(at, "too many exemplars");
          if (!wire.Bytes(bytes) || !Exemplar(wire.Inside(bytes, "timeseries.exemplars"))) return false;
          break;
        case Tag(5, kBytes):
          if (!wire.Bytes(bytes) || !ReadMetadata(wire.Inside(bytes, "timeseries.metadata"))) return false;
          break;
        default:
          if (!wire.Skip(tag)) return false;
      }
    }
    series.float_count = static_cast<uint32_t>(batch_.timestamps.size()) - series.float_begin;
    series.histogram_count = static_cast<uint32_t>(batch_.histograms.size()) - series.histogram_begin;
    series.exemplar_count = static_cast<uint32_t>(batch_.exemplars.size()) - series.exemplar_begin;

    Complaint complaint = CheckLabels(refs_);
    if (complaint.reason != Reason::kCount) {
      complaint.text = base::StrCat("timeseries ", series_read_, " of the request: ", complaint.text);
    } else {
      if (!WriteLabels(wire, series)) return false;
      if (series.float_count + series.histogram_count == 0) {
        complaint.reason = Reason::kNoSamples;
        complaint.text = base::StrCat("series ", LabelsText(series), " has neither samples nor histograms");
      }
    }
    if (complaint.reason != Reason::kCount) {
      batch_.refused.Reject(complaint.reason, series.float_count + series.histogram_count, complaint.text);
      batch_.timestamps.resize(series.float_begin);
      batch_.values.resize(series.float_begin);
      batch_.start_timestamps.resize(series.float_begin);
      batch_.histograms.resize(series.histogram_begin);
      batch_.exemplars.resize(series.exemplar_begin);
      return true;
    }
    series.hash = model::HashLabels(series.labels, seed_);
    batch_.series.push_back(series);
    return KeepMetadata(wire, series);
  }

  bool ReadRefs(Wire& wire, uint32_t tag, std::vector<uint32_t>& refs) {
    uint64_t v = 0;
    if ((tag & 7) == kVarint) {
      if (!wire.Varint(v)) return false;
      refs.push_back(static_cast<uint32_t>(v));
      return true;
    }
    std::string_view packed;
    if (!wire.Bytes(packed)) return false;
    Wire inside = wire.Inside(packed, "labels_refs");
    while (!inside.AtEnd()) {
      if (!inside.Varint(v)) return false;
      refs.push_back(static_cast<uint32_t>(v));
    }
    return true;
  }

  // Fills labels_, in ascending order of names. Series after series have the same names, which are judged once.
  Complaint CheckLabels(const std::vector<uint32_t>& refs) {
    if (refs.size() % 2 != 0) {
      return {Reason::kMalformedLabels, base::StrCat("odd number of label references (", refs.size(), ")")};
    }
    if (refs.size() / 2 > kLabelsPerSeriesMax) {
      return {Reason::kTooManyLabels, base::StrCat(refs.size() / 2, " labels, more than ", kLabelsPerSeriesMax)};
    }
    for (const uint32_t ref : refs) {
      if (ref >= symbols_.size()) {
        return {Reason::kMalformedLabels, base::StrCat("label reference ", ref, " is out of bounds, the request has ",
                                                       symbols_.size(), " symbols")};
      }
    }
    labels_.clear();
    bool same_names = refs.size() == good_names_.size() * 2;
    for (size_t i = 0; i < refs.size(); i += 2) {
      same_names = same_names && refs[i] == good_names_[i / 2];
      labels_.push_back({symbols_[refs[i]], symbols_[refs[i + 1]]});
    }
    if (same_names) return {};
    const auto by_name = [](const model::LabelRef& a, const model::LabelRef& b) { return a.name < b.name; };
    const bool sorted = std::is_sorted(labels_.begin(), labels_.end(), by_name);
    if (!sorted) std::stable_sort(labels_.begin(), labels_.end(), by_name);
    for (size_t i = 0; i < labels_.size(); ++i) {
      if (labels_[i].name.empty()) return {Reason::kInvalidLabelName, "a label has an empty name"};
      if (i > 0 && labels_[i].name == labels_[i - 1].name) {
        return {Reason::kDuplicateLabelName,
                base::StrCat("label name ", base::QuoteGo(labels_[i].name), " occurs twice")};
      }
    }
    if (sorted) {
      good_names_.clear();
      for (size_t i = 0; i < refs.size(); i += 2) good_names_.push_back(refs[i]);
    }
    return {};
  }

  bool WriteLabels(Wire& wire, model::WriteBatch::Series& series) {
    size_t size = 0;
    for (const model::LabelRef label : labels_) size += CanonicalSizeMax(label);
    expanded_bytes_ += size;
    if (expanded_bytes_ > kExpandedBytesMax) return wire.Fail("labels written out are too large");
    char* out = arena_.Reserve(size);
    for (const model::LabelRef label : labels_) {
      if (!label.value.empty()) out = PutCanonical(out, label);
    }
    series.labels = arena_.Keep(out);
    return true;
  }

  static std::string LabelsText(const model::WriteBatch::Series& series) {
    return model::LabelsView(series.labels).ToString();
  }

  bool Exemplar(Wire wire) {
    model::Exemplar exemplar;
    std::vector<uint32_t> refs;
    uint32_t tag = 0;
    uint64_t v = 0;
    while (!wire.AtEnd()) {
      if (!wire.NextTag(tag)) return false;
      switch (tag) {
        case Tag(1, kBytes):
        case Tag(1, kVarint):
          if (!ReadRefs(wire, tag, refs)) return false;
          break;
        case Tag(2, kFixed64):
          if (!wire.Fixed(exemplar.value)) return false;
          break;
        case Tag(3, kVarint):
          if (!wire.Varint(v)) return false;
          exemplar.t_ms = static_cast<int64_t>(v);
          break;
        default:
          if (!wire.Skip(tag)) return false;
      }
    }
    Complaint complaint = CheckLabels(refs);
    size_t size = 0;
    for (const model::LabelRef label : labels_) size += CanonicalSizeMax(label);
    // Judged by its characters later; this only bounds what a few bytes of references can grow into.
    if (complaint.reason == Reason::kCount && size > 4096)
      complaint = {Reason::kInvalidExemplar, "labels are too long"};
    if (complaint.reason != Reason::kCount) {
      batch_.refused.Reject(Reason::kInvalidExemplar, 0,
                            base::StrCat("exemplar in timeseries ", series_read_, ": ", complaint.text));
      return true;
    }
    expanded_bytes_ += size;
    if (expanded_bytes_ > kExpandedBytesMax) return wire.Fail("labels written out are too large");
    model::LabelsBuilder builder;
    for (const model::LabelRef label : labels_) builder.Append(label.name, label.value);
    exemplar.labels = std::move(builder).Build();
    batch_.exemplars.push_back(std::move(exemplar));
    return true;
  }

  struct MetadataRefs {
    uint64_t type = 0;
    uint32_t help = 0, unit = 0;
    bool operator==(const MetadataRefs&) const = default;
  };

  bool ReadMetadata(Wire wire) {
    uint32_t tag = 0;
    uint64_t v = 0;
    while (!wire.AtEnd()) {
      if (!wire.NextTag(tag)) return false;
      switch (tag) {
        case Tag(1, kVarint):
          if (!wire.Varint(meta_.type)) return false;
          break;
        case Tag(3, kVarint):
          if (!wire.Varint(v)) return false;
          meta_.help = static_cast<uint32_t>(v);
          break;
        case Tag(4, kVarint):
          if (!wire.Varint(v)) return false;
          meta_.unit = static_cast<uint32_t>(v);
          break;
        default:
          if (!wire.Skip(tag)) return false;
      }
    }
    return true;
  }

  // 1.0 names metadata by family, so histograms and summaries lose their suffixes here.
  static std::string_view Family(std::string_view metric, model::MetricType type) {
    const auto cut = [&metric](std::initializer_list<std::string_view> suffixes) {
      for (const std::string_view suffix : suffixes) {
        if (metric.size() > suffix.size() && metric.ends_with(suffix)) {
          metric.remove_suffix(suffix.size());
          return;
        }
      }
    };
    if (type == model::MetricType::kHistogram) cut({"_bucket", "_sum", "_count"});
    if (type == model::MetricType::kGaugeHistogram) cut({"_bucket", "_gsum", "_gcount"});
    if (type == model::MetricType::kSummary) cut({"_sum", "_count"});
    return metric;
  }

  // Every series carries its metadata; the series of a family come together, and one entry will do for them.
  bool KeepMetadata(Wire& wire, const model::WriteBatch::Series& series) {
    if (meta_ == MetadataRefs{}) return true;
    const model::MetricType type = MetricTypeOf(meta_.type);
    const std::string_view family = Family(model::LabelsView(series.labels).MetricName(), type);
    if (meta_ == last_meta_ && !batch_.metadata.empty() && batch_.metadata.back().metric == family) return true;
    if (meta_.help >= symbols_.size() || meta_.unit >= symbols_.size()) {
      batch_.refused.Reject(
          Reason::kInvalidMetadata, 0,
          base::StrCat("series ", LabelsText(series), ": metadata reference ", std::max(meta_.help, meta_.unit),
                       " is out of bounds, the request has ", symbols_.size(), " symbols"));
      return true;
    }
    if (batch_.metadata.size() >= kMetadataMax) return wire.Fail("too many metadata entries");
    const std::string_view help = symbols_[meta_.help];
    const std::string_view unit = symbols_[meta_.unit];
    expanded_bytes_ += family.size() + help.size() + unit.size();
    if (expanded_bytes_ > kExpandedBytesMax) return wire.Fail("metadata written out is too large");
    batch_.metadata.push_back({std::string(family), type, std::string(help), std::string(unit)});
    last_meta_ = meta_;
    return true;
  }

  const std::string_view message_;
  const uint64_t seed_;
  model::WriteBatch& batch_;
  Arena arena_;
  Fault fault_;
  std::vector<std::string_view> symbols_;
  std::vector<uint32_t> refs_;
  std::vector<uint32_t> good_names_;  // references to names that are ascending, distinct and not empty
  std::vector<model::LabelRef> labels_;
  MetadataRefs meta_, last_meta_;
  size_t expanded_bytes_ = 0;  // what references to symbols have grown into
  size_t series_read_ = 0;
  bool in_series_ = false;
  bool any_start_ = false;
};

}  // namespace

absl::Status DecodeWriteV2(std::string_view message, uint64_t hash_seed, model::WriteBatch& batch) {
  return ReaderV2(message, hash_seed, batch).Run();
}

}  // namespace varve::decode
