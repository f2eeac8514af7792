#include "storage/block/writer.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "storage/base/bytes.h"
#include "storage/base/check.h"
#include "storage/base/crc32c.h"
#include "storage/base/strings.h"
#include "storage/block/chunk.h"
#include "storage/block/format.h"
#include "storage/block/ordinals.h"
#include "storage/codec/columns.h"

namespace varve::block {

namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;
// Column hashes that are remembered. Forgetting costs file bytes when a column comes again, never correctness.
constexpr size_t kColumnsRememberedMax = size_t{1} << 20;

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// A thousand times the usual distance between samples: the median of the first few.
int64_t WindowOf(const std::vector<int64_t>& times) {
  std::vector<int64_t> distances;
  for (size_t i = 1; i < times.size() && i <= 15; ++i) distances.push_back(times[i] - times[i - 1]);
  if (distances.empty()) return 1;
  const auto middle = distances.begin() + static_cast<ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  // Scrapes jitter by milliseconds: two percent more, then down to a round number, makes neighbours agree and keeps a
  // window within kChunkSamplesMax.
  int64_t distance = std::clamp<int64_t>(*middle, 1, INT64_MAX / 100'000) * 51 / 50;
  int64_t unit = 1;
  while (distance >= unit * 100) unit *= 10;
  if (distance >= 5 * unit) distance -= distance % (5 * unit);
  return distance * 1000;
}

struct ColumnRef {
  uint64_t offset;
  uint32_t size, count;
  int64_t first, last;
};

struct ChunkRef {
  uint32_t column;
  uint32_t size;
  uint64_t offset;
};

}  // namespace

struct Writer::Impl {
  Impl(fs::FileSystem& f, std::string p, BlockMeta m) : fs(f), path(std::move(p)), meta(std::move(m)) {
    meta.series = meta.chunks = meta.samples = meta.file_bytes = 0;
    meta.min_time_ms = meta.max_time_ms = 0;
  }

  std::string temporary() const { return path + ".tmp"; }

  absl::Status Open() {
    const absl::Status removed = fs.Remove(temporary());  // what a crash may have left
    if (!removed.ok() && removed.code() != absl::StatusCode::kNotFound) return removed;
    ASSIGN_OR_RETURN(file, fs.Create(temporary()));
    Put(kHeaderMagic);
    std::string version;
    base::PutFixed<uint32_t>(version, kVersion);
    Put(version);
    return absl::OkStatus();
  }

  void Put(std::string_view bytes) {
    buffer.append(bytes);
    position += bytes.size();
  }
  absl::Status Flush(size_t keep_max) {
    if (buffer.size() <= keep_max) return absl::OkStatus();
    RETURN_IF_ERROR(file->Append(buffer));
    buffer.clear();
    return absl::OkStatus();
  }
  void PutChecked(std::string_view bytes) {
    Put(bytes);
    std::string crc;
    base::PutFixed<uint32_t>(crc, base::Crc32c(bytes));
    Put(crc);
  }

  uint32_t Column(std::span<const int64_t> times) {
    const XXH128_hash_t hash = XXH3_128bits(times.data(), times.size_bytes());
    const model::SeriesHash key{hash.low64, hash.high64};
    if (const auto it = column_numbers.find(key); it != column_numbers.end()) return it->second;
    const auto number = static_cast<uint32_t>(columns.size());
    std::string encoded;
    codec::EncodeTimes(times, encoded);
    columns.push_back({position, static_cast<uint32_t>(encoded.size()), static_cast<uint32_t>(times.size()),
                       times.front(), times.back()});
    PutChecked(encoded);
    if (column_numbers.size() >= kColumnsRememberedMax) column_numbers.clear();
    column_numbers.emplace(key, number);
    return number;
  }

  absl::Status CheckFits(model::LabelsView labels, const model::SampleColumns& samples) const {
    const std::vector<int64_t>& times = *samples.times;
    if (series_pairs_end.size() >= UINT32_MAX - 1) return absl::ResourceExhaustedError("too many series for one block");
    if (!last_labels.empty() || !series_pairs_end.empty()) {
      if (model::Compare(last_labels, labels) != std::strong_ordering::less) {
        return absl::InvalidArgumentError(
            base::StrCat("series out of order: ", labels.ToString(), " after ", last_labels.ToString()));
      }
    }
    for (size_t i = 1; i < times.size(); ++i) {
      if (times[i] <= times[i - 1]) return absl::InvalidArgumentError("sample times do not ascend");
    }
    if (!meta.range.Contains(times.front()) || !meta.range.Contains(times.back())) {
      return absl::InvalidArgumentError(base::StrCat(labels.ToString(), ": samples from ", times.front(), " to ",
                                                     times.back(), " leave the block's range (", meta.range.after_ms,
                                                     ", ", meta.range.until_ms, "]"));
    }
    return absl::OkStatus();
  }

  absl::Status Add(model::LabelsView labels, model::SeriesHash hash, const model::SampleColumns& samples) {
    if (samples.size() == 0) return absl::OkStatus();
    VARVE_CHECK(samples.values.size() == samples.size());
    VARVE_CHECK(samples.histogram_at.size() == samples.histograms.size());
    VARVE_CHECK(samples.start_times.empty() || samples.start_times.size() == samples.size());
    RETURN_IF_ERROR(CheckFits(labels, samples));
    if (file == nullptr) RETURN_IF_ERROR(Open());
    const std::vector<int64_t>& times = *samples.times;
    const int64_t window = WindowOf(times);
    const auto window_of = [&](int64_t t) {  // the range may begin at the smallest number there is
      return (static_cast<uint64_t>(t) - static_cast<uint64_t>(meta.range.after_ms) - 1) /
             static_cast<uint64_t>(window);
    };
    for (size_t begin = 0; begin < times.size();) {
      const uint64_t in_window = window_of(times[begin]);
      size_t end = begin + 1;
      while (end < times.size() && end - begin < kChunkSamplesMax && window_of(times[end]) == in_window) ++end;
      const uint32_t column = Column(std::span(times).subspan(begin, end - begin));
      payload.clear();
      EncodeChunk(samples, begin, end, payload);
      chunk_refs.push_back({column, static_cast<uint32_t>(payload.size()), position});
      PutChecked(payload);
      RETURN_IF_ERROR(Flush(kBufferBytes));
      begin = end;
    }
    series_chunks_end.push_back(chunk_refs.size());
    for (const model::LabelRef label : labels) {
      const auto [name, new_name] = names.try_emplace(label.name, names.size());
      if (new_name) values.emplace_back();
      const auto [value, new_value] = values[name->second].try_emplace(label.value, pair_count);
      if (new_value) ++pair_count;
      series_pairs.push_back(value->second);
    }
    series_pairs_end.push_back(series_pairs.size());
    hashes.push_back(hash);
    last_labels = model::Labels(labels);
    meta.min_time_ms = meta.series == 0 ? times.front() : std::min(meta.min_time_ms, times.front());
    meta.max_time_ms = meta.series == 0 ? times.back() : std::max(meta.max_time_ms, times.back());
    ++meta.series;
    meta.samples += times.size();
    meta.chunks = chunk_refs.size();
    return absl::OkStatus();
  }

  absl::Status PutSection(Section kind, std::string_view bytes) {
    base::PutU8(section_table, static_cast<uint8_t>(kind));
    base::PutVarint(section_table, position);
    base::PutVarint(section_table, bytes.size());
    base::PutFixed<uint32_t>(section_table, base::Crc32c(bytes));
    Put(bytes);
    return Flush(0);
  }

  absl::Status PutColumns() {
    std::string bytes;
    bytes.reserve(columns.size() * kColumnEntryBytes);
    for (const ColumnRef& column : columns) {
      base::PutFixed(bytes, column.offset);
      base::PutFixed(bytes, column.size);
      base::PutFixed(bytes, column.count);
      base::PutFixed(bytes, column.first);
      base::PutFixed(bytes, column.last);
    }
    return PutSection(Section::kColumns, bytes);
  }

  // Numbers the pairs in the order of (name, value) instead of that of their arrival.
  absl::Status PutLabels() {
    std::vector<std::pair<std::string_view, uint32_t>> sorted_names(names.begin(), names.end());
    std::sort(sorted_names.begin(), sorted_names.end());
    std::vector<std::vector<std::pair<std::string_view, uint32_t>>> sorted_values;
    std::vector<uint32_t> final_ids(pair_count);
    uint32_t next = 0;
    std::string name_bytes;
    base::PutVarint(name_bytes, sorted_names.size());
    for (const auto& [name, number] : sorted_names) {
      auto& of_name = sorted_values.emplace_back(values[number].begin(), values[number].end());
      std::sort(of_name.begin(), of_name.end());
      for (const auto& [value, id] : of_name) final_ids[id] = next++;
      base::PutBytes(name_bytes, name);
      base::PutVarint(name_bytes, of_name.size());
    }
    for (uint32_t& id : series_pairs) id = final_ids[id];

    // Series of each pair, by counting sort.
    std::vector<uint64_t> starts(size_t{pair_count} + 1, 0);
    for (const uint32_t id : series_pairs) ++starts[id + 1];
    for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
    std::vector<uint32_t> series(series_pairs.size());
    std::vector<uint64_t> cursor(starts.begin(), starts.end() - 1);
    for (size_t s = 0, at = 0; s < series_pairs_end.size(); ++s) {
      for (; at < series_pairs_end[s]; ++at) series[cursor[series_pairs[at]]++] = static_cast<uint32_t>(s);
    }

    std::string pairs, groups, postings;
    uint32_t id = 0;
    for (const auto& of_name : sorted_values) {
      std::string_view before;
      for (size_t i = 0; i < of_name.size(); ++i, ++id) {
        const std::string_view value = of_name[i].first;
        if (i % kPairsPerGroup == 0) {
          if (pairs.size() > UINT32_MAX) return absl::ResourceExhaustedError("too many label bytes for one block");
          base::PutFixed<uint32_t>(groups, static_cast<uint32_t>(pairs.size()));
          base::PutVarint(pairs, postings.size());
          before = {};
        }
        size_t shared = 0;
        while (shared < std::min(before.size(), value.size()) && before[shared] == value[shared]) ++shared;
        base::PutVarint(pairs, shared);
        base::PutBytes(pairs, value.substr(shared));
        before = value;
        const size_t postings_begin = postings.size();
        EncodeOrdinals(std::span(series).subspan(starts[id], starts[id + 1] - starts[id]), postings);
        base::PutVarint(pairs, starts[id + 1] - starts[id]);
        base::PutVarint(pairs, postings.size() - postings_begin);
      }
    }
    RETURN_IF_ERROR(PutSection(Section::kNames, name_bytes));
    RETURN_IF_ERROR(PutSection(Section::kPairs, pairs));
    RETURN_IF_ERROR(PutSection(Section::kPairGroups, groups));
    return PutSection(Section::kPostings, postings);
  }

  absl::Status PutSeries() {
    std::string hash_bytes;
    for (const model::SeriesHash hash : hashes) {
      base::PutFixed(hash_bytes, hash.low);
      base::PutFixed(hash_bytes, hash.high);
    }
    RETURN_IF_ERROR(PutSection(Section::kHashes, hash_bytes));
    std::string bytes, groups;
    std::span<const uint32_t> before;
    uint64_t offset = 0;
    int64_t column = 0;
    size_t pair_at = 0, chunk_at = 0;
    for (size_t s = 0; s < series_pairs_end.size(); ++s) {
      if (s % kSeriesPerGroup == 0) {
        if (bytes.size() > UINT32_MAX) return absl::ResourceExhaustedError("too many chunks for one block");
        base::PutFixed<uint32_t>(groups, static_cast<uint32_t>(bytes.size()));
        before = {};
        offset = chunk_refs[chunk_at].offset;
        column = chunk_refs[chunk_at].column;
        base::PutVarint(bytes, offset);
        base::PutVarint(bytes, static_cast<uint64_t>(column));
      }
      const auto pairs = std::span<const uint32_t>(series_pairs).subspan(pair_at, series_pairs_end[s] - pair_at);
      pair_at = series_pairs_end[s];
      size_t shared = 0;
      while (shared < std::min(before.size(), pairs.size()) && before[shared] == pairs[shared]) ++shared;
      base::PutVarint(bytes, shared);
      base::PutVarint(bytes, pairs.size() - shared);
      uint32_t last = shared == 0 ? 0 : pairs[shared - 1];
      for (size_t i = shared; i < pairs.size(); ++i) {
        base::PutVarint(bytes, pairs[i] - last);
        last = pairs[i];
      }
      before = pairs;
      base::PutVarint(bytes, series_chunks_end[s] - chunk_at);
      for (; chunk_at < series_chunks_end[s]; ++chunk_at) {
        const ChunkRef& chunk = chunk_refs[chunk_at];
        base::PutSigned(bytes, int64_t{chunk.column} - column);
        base::PutSigned(bytes, static_cast<int64_t>(chunk.offset - offset));
        base::PutVarint(bytes, chunk.size);
        column = chunk.column;
        offset = chunk.offset + chunk.size + kCrcBytes;
      }
    }
    RETURN_IF_ERROR(PutSection(Section::kSeries, bytes));
    return PutSection(Section::kSeriesGroups, groups);
  }

  absl::StatusOr<BlockMeta> Finish() {
    if (file == nullptr) RETURN_IF_ERROR(Open());
    RETURN_IF_ERROR(PutColumns());
    RETURN_IF_ERROR(PutLabels());
    RETURN_IF_ERROR(PutSeries());
    std::string footer;
    base::PutBytes(footer, meta.tenant);
    base::PutVarint(footer, meta.shard);
    base::PutSigned(footer, meta.range.after_ms);
    base::PutSigned(footer, meta.range.until_ms);
    base::PutVarint(footer, meta.series);
    base::PutVarint(footer, meta.chunks);
    base::PutVarint(footer, meta.samples);
    base::PutSigned(footer, meta.min_time_ms);
    base::PutSigned(footer, meta.max_time_ms);
    base::PutVarint(footer, kSectionCount);
    footer += section_table;
    Put(footer);
    std::string tail;
    base::PutFixed<uint32_t>(tail, static_cast<uint32_t>(footer.size()));
    base::PutFixed<uint32_t>(tail, base::Crc32c(footer));
    tail += kTailMagic;
    Put(tail);
    RETURN_IF_ERROR(Flush(0));
    RETURN_IF_ERROR(file->Sync());
    file.reset();
    RETURN_IF_ERROR(fs.Rename(temporary(), path));
    renamed = true;
    RETURN_IF_ERROR(fs.SyncFolder(FolderOf(path)));
    meta.file_bytes = position;
    return meta;
  }

  fs::FileSystem& fs;
  const std::string path;
  BlockMeta meta;
  absl::Status status;  // the first error, or what says that the writer is done
  std::unique_ptr<fs::AppendFile> file;
  bool renamed = false;
  std::string buffer, payload;
  uint64_t position = 0;
  std::string section_table;

  std::vector<ColumnRef> columns;
  absl::flat_hash_map<model::SeriesHash, uint32_t> column_numbers;
  std::vector<ChunkRef> chunk_refs;
  base::StringMap<uint32_t> names;
  std::vector<base::StringMap<uint32_t>> values;  // by name: value to pair, in the order of arrival
  uint32_t pair_count = 0;
  std::vector<uint32_t> series_pairs;  // flat
  std::vector<uint64_t> series_pairs_end, series_chunks_end;
  std::vector<model::SeriesHash> hashes;
  model::Labels last_labels;
};

Writer::Writer(fs::FileSystem& fs, std::string path, BlockMeta meta)
    : impl_(std::make_unique<Impl>(fs, std::move(path), std::move(meta))) {}

Writer::~Writer() {
  if (impl_->renamed) return;
  const bool created = impl_->file != nullptr || !impl_->status.ok();
  impl_->file.reset();
  if (created) impl_->fs.Remove(impl_->temporary()).IgnoreError();
}

absl::Status Writer::Add(model::LabelsView labels, model::SeriesHash hash, const model::SampleColumns& samples) {
  if (!impl_->status.ok()) return impl_->status;
  return impl_->status = impl_->Add(labels, hash, samples);
}

absl::StatusOr<BlockMeta> Writer::Finish() {
  RETURN_IF_ERROR(impl_->status);
  absl::StatusOr<BlockMeta> meta = impl_->Finish();
  impl_->status = meta.ok() ? absl::FailedPreconditionError("the block is finished") : meta.status();
  return meta;
}

}  // namespace varve::block
