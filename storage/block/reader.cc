#include "storage/block/reader.h"

#include <algorithm>
#include <set>

#include "storage/base/strings.h"
#include "storage/block/file.h"
#include "storage/block/selection.h"

namespace varve::block {

namespace {

class BytesInMemory final : public fs::MappedFile {
 public:
  explicit BytesInMemory(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string_view bytes() const override { return bytes_; }
  void Forget(uint64_t, uint64_t) const override {}

 private:
  const std::string bytes_;
};

// Of equal counts the name that sorts first.
void KeepLargest(std::vector<model::SourceStats::Entry>& entries, size_t limit) {
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.value != b.value ? a.value > b.value : a.name < b.name; });
  if (entries.size() > limit) entries.resize(limit);
}

}  // namespace

struct Reader::Impl {
  std::shared_ptr<const File> file;

  bool MayHaveSamples(const model::TimeRange& range) const {
    return file->series_count() > 0 && !range.empty() &&
           range.Overlaps(file->meta().min_time_ms, file->meta().max_time_ms);
  }

  // Calls `visit(pairs)` for the series that match and have a chunk in the range.
  template <class Visit>
  absl::Status ForEachMatch(const model::SelectRequest& request, Visit&& visit) const {
    ASSIGN_OR_RETURN(const index::Bitmap matching, index::Match(*file, request.matchers, request.cancel));
    File::SeriesCursor cursor(*file);
    std::vector<File::Chunk> chunks;
    size_t seen = 0;
    for (const uint32_t series : matching) {
      if (++seen % 1024 == 0 && request.cancel != nullptr) RETURN_IF_ERROR(request.cancel->Check());
      RETURN_IF_ERROR(cursor.Seek(series));
      chunks.clear();
      RETURN_IF_ERROR(ChunksInRange(*file, cursor.chunks(), request.range, chunks));
      if (!chunks.empty()) visit(cursor.pairs());
    }
    return absl::OkStatus();
  }
};

Reader::Reader(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Reader::~Reader() = default;

absl::StatusOr<std::shared_ptr<const Reader>> Reader::Open(fs::FileSystem& fs, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<fs::MappedFile> mapped, fs.Map(path));
  auto impl = std::make_shared<Impl>();
  ASSIGN_OR_RETURN(impl->file, File::Open(std::move(mapped), path));
  return std::shared_ptr<const Reader>(new Reader(std::move(impl)));
}

absl::StatusOr<std::shared_ptr<const Reader>> Reader::OpenBytes(std::string bytes, std::string name) {
  auto impl = std::make_shared<Impl>();
  ASSIGN_OR_RETURN(impl->file, File::Open(std::make_unique<BytesInMemory>(std::move(bytes)), std::move(name)));
  return std::shared_ptr<const Reader>(new Reader(std::move(impl)));
}

const BlockMeta& Reader::meta() const { return impl_->file->meta(); }
const std::string& Reader::path() const { return impl_->file->path(); }

absl::StatusOr<std::unique_ptr<model::HashedSelection>> Reader::SelectHashed(
    const model::SelectRequest& request) const {
  return SelectFrom(impl_->file, request);
}

absl::StatusOr<std::unique_ptr<model::Selection>> Reader::Select(const model::SelectRequest& request) const {
  ASSIGN_OR_RETURN(std::unique_ptr<model::HashedSelection> selection, SelectHashed(request));
  return std::unique_ptr<model::Selection>(std::move(selection));
}

absl::StatusOr<std::vector<std::string>> Reader::LabelNames(const model::SelectRequest& request) const {
  std::vector<std::string> out;
  const File& file = *impl_->file;
  if (!impl_->MayHaveSamples(request.range)) return out;
  std::vector<bool> seen(file.names().size(), request.matchers.empty());
  if (!request.matchers.empty()) {
    std::vector<bool> seen_pairs(file.pair_count());
    RETURN_IF_ERROR(impl_->ForEachMatch(request, [&](const std::vector<uint32_t>& pairs) {
      for (const uint32_t pair : pairs) {
        if (seen_pairs[pair]) continue;
        seen_pairs[pair] = true;
        seen[file.name_of(pair)] = true;
      }
    }));
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i]) out.push_back(file.names()[i].name);
  }
  return out;
}

absl::StatusOr<std::vector<std::string>> Reader::LabelValues(std::string_view name,
                                                             const model::SelectRequest& request) const {
  std::vector<std::string> out;
  const File& file = *impl_->file;
  const std::optional<uint32_t> number = file.FindName(name);
  if (!impl_->MayHaveSamples(request.range) || !number.has_value()) return out;
  const File::Name& n = file.names()[*number];
  std::vector<bool> seen(n.pairs, request.matchers.empty());
  if (!request.matchers.empty()) {
    RETURN_IF_ERROR(impl_->ForEachMatch(request, [&](const std::vector<uint32_t>& pairs) {
      const auto it = std::lower_bound(pairs.begin(), pairs.end(), n.first_pair);
      if (it != pairs.end() && *it - n.first_pair < n.pairs) seen[*it - n.first_pair] = true;
    }));
  }
  RETURN_IF_ERROR(file.ForEachPair(*number, 0, n.pairs, [&](uint32_t pair, std::string_view value, const File::Pair&) {
    if (seen[pair - n.first_pair]) out.emplace_back(value);
    return absl::OkStatus();
  }));
  return out;
}

absl::StatusOr<std::vector<model::ExemplarSeries>> Reader::Exemplars(const model::SelectRequest&) const {
  return std::vector<model::ExemplarSeries>();
}

std::vector<model::Metadata> Reader::MetadataFor(std::string_view) const { return {}; }

absl::StatusOr<model::SourceStats> Reader::Stats(size_t limit) const {
  const File& file = *impl_->file;
  model::SourceStats stats;
  stats.series = file.meta().series;
  stats.chunks = file.meta().chunks;
  stats.label_pairs = file.pair_count();
  stats.min_time_ms = file.meta().min_time_ms;
  stats.max_time_ms = file.meta().max_time_ms;
  for (size_t i = 0; i < file.names().size(); ++i) {
    const File::Name& name = file.names()[i];
    uint64_t bytes = 0;
    RETURN_IF_ERROR(file.ForEachPair(i, 0, name.pairs, [&](uint32_t, std::string_view value, const File::Pair& pair) {
      bytes += value.size() * pair.series;
      if (name.name == model::kMetricName) stats.series_by_metric.push_back({std::string(value), pair.series});
      stats.series_by_pair.push_back({base::StrCat(name.name, "=", value), pair.series});
      return absl::OkStatus();
    }));
    stats.values_by_label.push_back({name.name, name.pairs});
    stats.bytes_by_label.push_back({name.name, bytes});
    KeepLargest(stats.series_by_pair, limit);
  }
  for (auto* entries : {&stats.series_by_metric, &stats.values_by_label, &stats.bytes_by_label}) {
    KeepLargest(*entries, limit);
  }
  return stats;
}

absl::Status Reader::Verify() const {
  const File& file = *impl_->file;
  std::vector<int64_t> times;
  for (uint32_t i = 0; i < file.column_count(); ++i) RETURN_IF_ERROR(file.ReadColumn(i, times));

  // Labels and postings, against the series records.
  std::vector<std::vector<uint32_t>> of_pair(file.pair_count());
  File::SeriesCursor cursor(file);
  for (uint32_t series = 0; series < file.series_count(); ++series) {
    RETURN_IF_ERROR(cursor.Seek(series));
    for (const uint32_t pair : cursor.pairs()) of_pair[pair].push_back(series);
  }
  for (size_t i = 0; i < file.names().size(); ++i) {
    const File::Name& name = file.names()[i];
    std::string before;
    std::vector<uint32_t> postings;
    RETURN_IF_ERROR(
        file.ForEachPair(i, 0, name.pairs, [&](uint32_t id, std::string_view value, const File::Pair& pair) {
          if (value <= before) return file.Corrupt(0, base::StrCat("values of ", name.name, " are out of order"));
          before = value;
          postings.clear();
          RETURN_IF_ERROR(file.ReadPostings(pair, postings));
          if (postings != of_pair[id]) {
            return file.Corrupt(0, base::StrCat("postings of ", name.name, "=", value, " contradict the series"));
          }
          return absl::OkStatus();
        }));
  }

  // Every sample, through the front door.
  ASSIGN_OR_RETURN(const auto selection, SelectHashed({}));
  if (selection->size() != file.series_count()) return file.Corrupt(0, "a series has no chunks");
  uint64_t samples = 0;
  int64_t first = INT64_MAX, last = INT64_MIN;
  model::Labels before;
  model::SampleColumns columns;
  for (size_t i = 0; i < selection->size(); ++i) {
    model::Labels labels = selection->labels(i);
    if (i > 0 && before >= labels) return file.Corrupt(0, base::StrCat("series ", i, " is out of order"));
    before = std::move(labels);
    RETURN_IF_ERROR(selection->Read(i, &columns));
    samples += columns.size();
    first = std::min(first, columns.times->front());
    last = std::max(last, columns.times->back());
  }
  const BlockMeta& meta = file.meta();
  if (samples != meta.samples) {
    return file.Corrupt(0, base::StrCat(samples, " samples, the footer says ", meta.samples));
  }
  if (samples > 0 && (first != meta.min_time_ms || last != meta.max_time_ms || !meta.range.Contains(first) ||
                      !meta.range.Contains(last))) {
    return file.Corrupt(0, base::StrCat("samples from ", first, " to ", last, " are not what the footer says"));
  }
  return absl::OkStatus();
}

std::string Reader::DebugString() const {
  const BlockMeta& m = meta();
  return base::StrCat("block ", path(), ": tenant ", m.tenant, ", shard ", m.shard, ", ", m.series, " series, ",
                      m.chunks, " chunks, ", m.samples, " samples from ", m.min_time_ms, " to ", m.max_time_ms,
                      " in range (", m.range.after_ms, ", ", m.range.until_ms, "], ", m.file_bytes, " bytes");
}

absl::Status Verify(fs::FileSystem& fs, const std::string& path) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const Reader> reader, Reader::Open(fs, path));
  return reader->Verify();
}

}  // namespace varve::block
