#include "storage/head/head.h"

#include "storage/head/head_impl.h"

namespace varve::head {

Head::Head(const HeadConfig& config, SealedLog& sealed) : impl_(std::make_unique<Impl>(config, sealed)) {}
Head::~Head() = default;

absl::Status Head::Append(const model::WriteBatch& batch, std::span<const uint32_t> which, const AppendContext& context,
                          model::WriteResult& result) {
  return impl_->Append(batch, which, context, result);
}

absl::Status Head::AppendMetadata(std::span<const model::Metadata> metadata, const WriteLog& log,
                                  model::WriteResult& result) {
  Impl& h = *impl_;
  h.builder.Begin();
  std::vector<const model::Metadata*> fresh;
  size_t room = h.config.metadata_max > h.metadata.size() ? h.config.metadata_max - h.metadata.size() : 0;
  uint64_t dropped = 0;
  for (const model::Metadata& m : metadata) {
    const auto it = h.metadata.find(m.metric);
    if (it == h.metadata.end()) {
      if (room == 0) {
        ++dropped;
        continue;
      }
      --room;
    } else if (it->second.type == m.type && it->second.help == m.help && it->second.unit == m.unit) {
      continue;
    }
    fresh.push_back(&m);
    h.builder.AddMetadata(h.config.tenant_ref, m);
  }
  if (!fresh.empty()) RETURN_IF_ERROR(log(h.builder.Finish()));
  for (const model::Metadata* m : fresh) h.metadata[m->metric] = *m;
  result.metadata_stored += metadata.size() - dropped;
  return absl::OkStatus();
}

absl::Status Head::Apply(wal::RecordType type, std::string_view payload, LogPosition at) {
  return impl_->Apply(type, payload, at);
}

uint64_t Head::active_series() const { return impl_->table.live(); }

HeadStats Head::stats() const {
  const Impl& h = *impl_;
  HeadStats stats = h.totals;
  stats.series = h.table.live();
  stats.columns = h.columns.size();
  stats.out_of_order_samples = h.side_samples;
  stats.exemplars = h.exemplars.items().size();
  stats.metadata = h.metadata.size();
  stats.newest_ms = h.newest_ms;
  stats.bytes = h.table.bytes() + h.columns.bytes() + h.values.bytes() + h.index.BytesUsed() + h.exemplars.bytes() +
                h.side_samples * sizeof(Point) + h.sides.capacity() * (sizeof(std::vector<Point>) + 5) +
                h.histograms.capacity() * (sizeof(HistogramTail) + 5);
  return stats;
}

std::string Head::DebugString() const {
  const Impl& h = *impl_;
  const HeadStats s = stats();
  return base::StrCat("head: ", s.series, " series in ", h.table.slot_end(), " slots (", h.table.bytes(), " bytes), ",
                      s.columns, " columns (", h.columns.bytes(), " bytes), tails ", h.values.used_bytes(), " of ",
                      h.values.bytes(), " bytes, index ", h.index.BytesUsed(), " bytes, ", s.out_of_order_samples,
                      " out-of-order samples, ", h.histograms.size(), " histogram series, ", s.exemplars,
                      " exemplars, ", s.metadata, " metadata; in all ", s.bytes, " bytes");
}

}  // namespace varve::head
