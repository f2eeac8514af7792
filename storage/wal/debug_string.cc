#include <algorithm>

#include "storage/base/strings.h"
#include "storage/wal/records.h"

namespace varve::wal {
namespace {

// Lines, of which only the first `max` are kept.
class Lines {
 public:
  explicit Lines(size_t max) : max_(max) {}
  template <class... Pieces>
  void Add(const Pieces&... pieces) {
    if (count_++ < max_) base::StrAppend(text_, "  ", pieces..., "\n");
  }
  std::string Done(std::string head) && {
    if (count_ > max_) base::StrAppend(text_, "  ... and ", count_ - max_, " more\n");
    return head + "\n" + text_;
  }

 private:
  const size_t max_;
  size_t count_ = 0;
  std::string text_;
};

}  // namespace

std::string DebugString(RecordType type, std::string_view payload, size_t items_max) {
  TenantRef tenant = 0;
  Lines lines(items_max);
  absl::Status status;
  switch (type) {
    case RecordType::kTenant: {
      const absl::StatusOr<TenantRecord> record = DecodeTenant(payload);
      status = record.status();
      if (!record.ok()) break;
      tenant = record->ref;
      lines.Add("name=", base::QuoteGo(record->name));
      break;
    }
    case RecordType::kSeries: {
      SeriesDecoder series;
      status = series.Decode(payload);
      tenant = series.tenant();
      for (size_t i = 0; i < series.size(); ++i) {
        std::string labels;
        series.AppendCanonical(i, labels);
        lines.Add("series=", series.id(i), " hash=", series.hash(i).high, ":", series.hash(i).low, " ",
                  model::LabelsView(labels).ToString());
      }
      break;
    }
    case RecordType::kFloats: {
      FloatsDecoder floats;
      status = floats.Begin(payload);
      tenant = floats.tenant();
      FloatGroup group;
      while (floats.Next(&group)) {
        for (size_t i = 0; i < group.size(); ++i) {
          const int64_t start = group.start_times_ms.empty() ? 0 : group.start_times_ms[i];
          lines.Add("series=", group.series[i], " t=", group.t(i), start == 0 ? "" : base::StrCat(" start=", start),
                    " v=", group.values[i]);
        }
      }
      if (status.ok()) status = floats.status();
      break;
    }
    case RecordType::kHistograms: {
      std::vector<HistogramEntry> entries;
      status = DecodeHistograms(payload, &tenant, &entries);
      for (const HistogramEntry& e : entries) {
        lines.Add("series=", e.series, " t=", e.t_ms, e.start_ms == 0 ? "" : base::StrCat(" start=", e.start_ms),
                  " histogram of ", e.encoded.size(), " bytes");
      }
      break;
    }
    case RecordType::kExemplars: {
      std::vector<ExemplarEntry> entries;
      status = DecodeExemplars(payload, &tenant, &entries);
      for (const ExemplarEntry& e : entries) {
        lines.Add("series=", e.series, " t=", e.t_ms, " v=", e.value, " ", e.labels.ToString());
      }
      break;
    }
    case RecordType::kMetadata: {
      std::vector<MetadataEntry> entries;
      status = DecodeMetadata(payload, &tenant, &entries);
      for (const MetadataEntry& e : entries) {
        lines.Add("metric=", base::QuoteGo(e.metric), " type=", model::ToString(e.type),
                  " help=", base::QuoteGo(e.help), " unit=", base::QuoteGo(e.unit));
      }
      break;
    }
    case RecordType::kForget: {
      std::vector<uint64_t> ids;
      status = DecodeForget(payload, &tenant, &ids);
      for (const uint64_t id : ids) lines.Add("series=", id);
      break;
    }
  }
  std::string head = base::StrCat(ToString(type), " type=", static_cast<int>(type), " bytes=", payload.size());
  if (!status.ok()) base::StrAppend(head, " error=", base::QuoteGo(base::Message(status)));
  base::StrAppend(head, " tenant=", tenant);
  return std::move(lines).Done(std::move(head));
}

}  // namespace varve::wal
