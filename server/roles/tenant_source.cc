#include "server/roles/tenant_source.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>

#include "server/roles/ingester.h"
#include "storage/block/merge.h"

namespace varve::roles {

namespace {

struct Part {  // of one shard
  std::unique_ptr<model::HashedSelection> head;
  std::vector<std::shared_ptr<const block::Reader>> blocks;
};

bool InRange(const block::Reader& block, const model::TimeRange& range) {
  return range.Overlaps(block.meta().min_time_ms, block.meta().max_time_ms);
}

// Sorted, without repeats, of everything that the heads and blocks give.
using NamesOfHead = std::function<absl::StatusOr<std::vector<std::string>>(const head::Head&)>;
using NamesOfBlock = std::function<absl::StatusOr<std::vector<std::string>>(const block::Reader&)>;
absl::StatusOr<std::vector<std::string>> Union(Ingester& ingester, std::string_view tenant,
                                               const model::TimeRange& range, const NamesOfHead& of_head,
                                               const NamesOfBlock& of_block) {
  base::Mutex mu;
  std::vector<std::string> all;
  std::vector<std::shared_ptr<const block::Reader>> blocks;
  RETURN_IF_ERROR(ingester.OnEachShard([&](Shard& shard, size_t) -> absl::Status {
    std::vector<std::string> names;
    if (const head::Head* head = shard.FindHead(tenant)) {
      ASSIGN_OR_RETURN(names, of_head(*head));
    }
    auto mine = shard.BlocksOf(tenant);
    base::MutexLock lock(mu);
    std::move(names.begin(), names.end(), std::back_inserter(all));
    std::move(mine.begin(), mine.end(), std::back_inserter(blocks));
    return absl::OkStatus();
  }));
  for (const auto& block : blocks) {
    if (!InRange(*block, range)) continue;
    ASSIGN_OR_RETURN(std::vector<std::string> names, of_block(*block));
    std::move(names.begin(), names.end(), std::back_inserter(all));
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

using Entries = std::vector<model::SourceStats::Entry>;
void AddEntries(Entries& into, const Entries& from) {
  std::map<std::string, uint64_t> sums;
  for (const auto& entry : into) sums[entry.name] += entry.value;
  for (const auto& entry : from) sums[entry.name] += entry.value;
  into.clear();
  for (const auto& [name, value] : sums) into.push_back({name, value});
}
void SortAndCut(Entries& entries, size_t limit) {
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.value > b.value; });
  if (entries.size() > limit) entries.resize(limit);
}

}  // namespace

absl::StatusOr<std::unique_ptr<model::Selection>> TenantSource::Select(const model::SelectRequest& request) const {
  base::Mutex mu;
  std::vector<std::unique_ptr<model::HashedSelection>> sources;
  std::vector<std::shared_ptr<const block::Reader>> blocks;
  RETURN_IF_ERROR(ingester_.OnEachShard([&](Shard& shard, size_t) -> absl::Status {
    std::unique_ptr<model::HashedSelection> selection;
    if (const head::Head* head = shard.FindHead(tenant_)) {
      ASSIGN_OR_RETURN(selection, head->Select(request));
    }
    auto mine = shard.BlocksOf(tenant_);
    base::MutexLock lock(mu);
    if (selection != nullptr) sources.push_back(std::move(selection));
    std::move(mine.begin(), mine.end(), std::back_inserter(blocks));
    return absl::OkStatus();
  }));
  for (const auto& block : blocks) {
    if (!InRange(*block, request.range)) continue;
    ASSIGN_OR_RETURN(auto selection, block->SelectHashed(request));
    if (selection->size() > 0) sources.push_back(std::move(selection));
  }
  ASSIGN_OR_RETURN(auto merged, block::Merge(std::move(sources), request.series_max, request.cancel));
  return std::unique_ptr<model::Selection>(std::move(merged));
}

absl::StatusOr<std::vector<std::string>> TenantSource::LabelNames(const model::SelectRequest& request) const {
  return Union(
      ingester_, tenant_, request.range, [&](const head::Head& head) { return head.LabelNames(request); },
      [&](const block::Reader& block) { return block.LabelNames(request); });
}

absl::StatusOr<std::vector<std::string>> TenantSource::LabelValues(std::string_view name,
                                                                   const model::SelectRequest& request) const {
  return Union(
      ingester_, tenant_, request.range, [&](const head::Head& head) { return head.LabelValues(name, request); },
      [&](const block::Reader& block) { return block.LabelValues(name, request); });
}

absl::StatusOr<std::vector<model::ExemplarSeries>> TenantSource::Exemplars(const model::SelectRequest& request) const {
  base::Mutex mu;
  std::vector<model::ExemplarSeries> all;
  RETURN_IF_ERROR(ingester_.OnEachShard([&](Shard& shard, size_t) -> absl::Status {
    const head::Head* head = shard.FindHead(tenant_);
    if (head == nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(auto series, head->Exemplars(request));
    base::MutexLock lock(mu);
    std::move(series.begin(), series.end(), std::back_inserter(all));
    return absl::OkStatus();
  }));
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.labels < b.labels; });
  return all;
}

std::vector<model::Metadata> TenantSource::MetadataFor(std::string_view metric) const {
  std::vector<model::Metadata> all;
  const absl::Status status = ingester_.OnEachShard([&](Shard& shard, size_t i) {
    if (i != 0) return absl::OkStatus();  // the first shard keeps the metadata
    if (const head::Head* head = shard.FindHead(tenant_)) all = head->MetadataFor(metric);
    return absl::OkStatus();
  });
  if (!status.ok()) all.clear();
  return all;
}

absl::StatusOr<model::SourceStats> TenantSource::Stats(size_t limit) const {
  base::Mutex mu;
  model::SourceStats total;
  bool first = true;
  RETURN_IF_ERROR(ingester_.OnEachShard([&](Shard& shard, size_t) -> absl::Status {
    const head::Head* head = shard.FindHead(tenant_);
    if (head == nullptr || head->active_series() == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const model::SourceStats stats, head->SourceStats(SIZE_MAX));
    base::MutexLock lock(mu);
    total.series += stats.series;
    total.chunks += stats.chunks;
    total.min_time_ms = first ? stats.min_time_ms : std::min(total.min_time_ms, stats.min_time_ms);
    total.max_time_ms = first ? stats.max_time_ms : std::max(total.max_time_ms, stats.max_time_ms);
    first = false;
    AddEntries(total.series_by_metric, stats.series_by_metric);
    AddEntries(total.series_by_pair, stats.series_by_pair);
    AddEntries(total.values_by_label, stats.values_by_label);
    return absl::OkStatus();
  }));
  // One value may live on several shards, so the shards' counts of values cannot be added up.
  model::SelectRequest everything;
  total.label_pairs = 0;
  for (auto& entry : total.values_by_label) {
    ASSIGN_OR_RETURN(const auto values, LabelValues(entry.name, everything));
    uint64_t bytes = 0;
    for (const std::string& value : values) bytes += value.size();
    entry.value = values.size();
    total.label_pairs += values.size();
    total.bytes_by_label.push_back({entry.name, bytes});
  }
  SortAndCut(total.series_by_metric, limit);
  SortAndCut(total.values_by_label, limit);
  SortAndCut(total.bytes_by_label, limit);
  SortAndCut(total.series_by_pair, limit);
  return total;
}

std::vector<std::string> TenantSource::Warnings() const {
  base::Mutex mu;
  std::vector<std::string> all;
  const absl::Status status = ingester_.OnEachShard([&](Shard& shard, size_t i) {
    for (const BlockEntry& entry : shard.MissingBlocksOf(tenant_)) {
      std::string text = base::StrCat("storage: block ", entry.sequence, " of shard ", i, " cannot be read, samples ");
      // An entry from the folder, after the manifest was lost, knows no times.
      if (!entry.tenant.empty()) base::StrAppend(text, "between ", entry.min_time_ms, " and ", entry.max_time_ms, " ");
      base::MutexLock lock(mu);
      all.push_back(base::StrCat(text, "may be missing"));
    }
    return absl::OkStatus();
  });
  if (!status.ok()) all.clear();  // the server stops
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace varve::roles
