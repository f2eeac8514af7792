#include "storage/head/snapshot.h"

#include <algorithm>

#include "storage/base/check.h"
#include "storage/base/strings.h"
#include "storage/codec/columns.h"

namespace varve::head {

namespace {

constexpr uint64_t kTailColumn = uint64_t{1} << 63;  // marks identities that are not positions in the sealed log

absl::Status Malformed(const ChunkView& chunk, std::string_view what) {
  return absl::DataLossError(base::StrCat("sealed chunk of series ", chunk.header.slot, ": ", what));
}

}  // namespace

Snapshot::~Snapshot() {
  if (memory_ != nullptr) memory_->Release(charged_);
}

const Snapshot::Entry& Snapshot::At(size_t i) const {
  std::call_once(sorted_, [this] {
    std::vector<index::LabelList> lists;
    lists.reserve(entries_.size());
    for (const Entry& e : entries_) lists.push_back(e.labels);
    order_ = index::SortByLabels(pin_, lists);
  });
  return entries_[order_[i]];
}

model::Labels Snapshot::labels(size_t i) const { return pin_.Build(At(i).labels); }

absl::StatusOr<const std::vector<int64_t>*> Snapshot::ColumnAt(uint64_t position) const {
  {
    base::MutexLock lock(mu_);
    const auto it = columns_.find(position);
    if (it != columns_.end()) return it->second.get();
  }
  ASSIGN_OR_RETURN(const std::string_view bytes, sealed_.Read(position));
  auto times = std::make_unique<std::vector<int64_t>>();
  RETURN_IF_ERROR(DecodeColumn(bytes, *times));
  base::MutexLock lock(mu_);
  return columns_.try_emplace(position, std::move(times)).first->second.get();
}

absl::Status Snapshot::FirstTime(const ChunkView& chunk, int64_t* first) const {
  if ((chunk.header.flags & kChunkInlineTimes) != 0) {
    std::vector<int64_t> times;
    RETURN_IF_ERROR(codec::DecodeTimes(chunk.inline_times, times));
    *first = times.front();
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t>* column, ColumnAt(chunk.header.column));
  if (static_cast<size_t>(32 - std::countl_zero(chunk.header.mask)) > column->size()) {
    return Malformed(chunk, "its column is too short");
  }
  *first = (*column)[static_cast<size_t>(std::countr_zero(chunk.header.mask))];
  return absl::OkStatus();
}

// Collects the chunks that may have samples in the range. `plain` when they are all floats on columns, in order.
absl::Status Snapshot::Walk(const Entry& e, std::vector<ChunkView>* newest_first, bool* plain) const {
  *plain = true;
  uint64_t at = e.chain;
  while (at != SealedLog::kNone && at >= std::max(sealed_.floor(), from_)) {
    ASSIGN_OR_RETURN(const std::string_view bytes, sealed_.Read(at));
    ChunkView chunk;
    RETURN_IF_ERROR(ParseChunk(bytes, at, &chunk));
    if (chunk.header.slot != e.slot || chunk.header.generation != e.generation) {
      return absl::DataLossError(
          base::StrCat("sealed chunk at ", at, " belongs to series ", chunk.header.slot, " and not ", e.slot));
    }
    if (IsCut(chunk, sealed_)) break;
    if (at < below_) {
      newest_first->push_back(chunk);
      *plain = *plain && (chunk.header.flags & ~kChunkMask) == 0;
      if (!chunk.side()) {
        int64_t first = 0;
        RETURN_IF_ERROR(FirstTime(chunk, &first));
        if (first <= range_.after_ms) break;  // whatever stands further back is older
      }
    }
    at = chunk.header.previous;
  }
  return absl::OkStatus();
}

absl::Status Snapshot::Read(size_t i, model::SampleColumns* out) const {
  const Entry& e = At(i);
  std::vector<ChunkView> chunks;
  bool plain = true;
  RETURN_IF_ERROR(Walk(e, &chunks, &plain));
  out->values.clear();
  out->histogram_at.clear();
  out->histograms.clear();
  out->start_times.clear();
  if (plain && e.extra == kNoExtra && !e.histogram_tail) {
    bool done = false;
    RETURN_IF_ERROR(ReadPlain(e, chunks, out, &done));
    if (done) return absl::OkStatus();
  }
  return ReadMerged(e, chunks, out);
}

absl::Status Snapshot::ReadPlain(const Entry& e, const std::vector<ChunkView>& newest_first, model::SampleColumns* out,
                                 bool* done) const {
  std::vector<Piece> pieces;
  pieces.reserve(newest_first.size() + 1);
  for (auto it = newest_first.rbegin(); it != newest_first.rend(); ++it) {
    Piece piece;
    piece.identity = it->header.column;
    ASSIGN_OR_RETURN(piece.column, ColumnAt(it->header.column));
    piece.mask = it->header.mask;
    piece.count = it->header.count;
    piece.payload = it->payload;
    if (static_cast<size_t>(32 - std::countl_zero(piece.mask)) > piece.column->size()) {
      return Malformed(*it, "its column is too short");
    }
    pieces.push_back(piece);
  }
  if (e.mask != 0) {
    Piece piece;
    piece.identity = kTailColumn | e.column;
    piece.column = &tail_columns_[e.column];
    piece.mask = e.mask;
    piece.count = static_cast<uint32_t>(std::popcount(e.mask));
    piece.words = e.words == kConstant ? nullptr : &words_[e.words];
    piece.constant = e.last_bits;
    piece.is_tail = true;
    pieces.push_back(piece);
  }
  const std::shared_ptr<const Layout> layout = LayoutOf(pieces);
  if (!layout->ascending) return absl::OkStatus();  // a replay that met a damaged log may leave such; merging copes
  out->times = layout->times;
  out->values.resize(layout->times->size());
  double* to = out->values.data();
  double decoded[TimeColumns::kPositionsMax];
  for (size_t p = 0; p < pieces.size(); ++p) {
    const Piece& piece = pieces[p];
    const Bounds b = layout->bounds[p];
    if (b.begin == b.end) continue;
    const size_t n = static_cast<size_t>(b.end - b.begin);
    if (!piece.is_tail) {
      if (n == piece.count) {
        RETURN_IF_ERROR(codec::DecodeValues(piece.payload, {to, n}));
      } else {
        RETURN_IF_ERROR(codec::DecodeValues(piece.payload, {decoded, piece.count}));
        std::copy(decoded + b.begin, decoded + b.end, to);
      }
    } else if (piece.words == nullptr) {
      std::fill_n(to, n, std::bit_cast<double>(piece.constant));
    } else {
      std::memcpy(to, piece.words + b.begin, n * sizeof(double));
    }
    to += n;
  }
  *done = true;
  return absl::OkStatus();
}

std::shared_ptr<const Snapshot::Layout> Snapshot::LayoutOf(const std::vector<Piece>& pieces) const {
  std::vector<uint64_t> key;
  key.reserve(pieces.size() * 2);
  for (const Piece& p : pieces) {
    key.push_back(p.identity);
    key.push_back(p.mask);
  }
  {
    base::MutexLock lock(mu_);
    const auto it = layouts_.find(key);
    if (it != layouts_.end()) return it->second;
  }
  auto layout = std::make_shared<Layout>();
  std::vector<int64_t> times;
  int64_t last = kNoTime;
  for (const Piece& p : pieces) {
    Bounds b{0, 0};
    uint8_t i = 0;
    bool any = false;
    ForEachBit(p.mask, [&](uint32_t position) {
      const int64_t t = (*p.column)[position];
      layout->ascending = layout->ascending && t > last;
      last = t;
      if (range_.Contains(t)) {
        if (!any) b.begin = i;
        any = true;
        b.end = static_cast<uint8_t>(i + 1);
        times.push_back(t);
      }
      ++i;
    });
    layout->bounds.push_back(b);
  }
  layout->times = Intern(std::move(times));
  base::MutexLock lock(mu_);
  return layouts_.try_emplace(std::move(key), std::move(layout)).first->second;
}

// Equal times are one column, however they came about.
Snapshot::Times Snapshot::Intern(std::vector<int64_t> times) const {
  uint64_t hash = times.size();
  for (const int64_t t : times) hash = (hash ^ static_cast<uint64_t>(t)) * 0x9E3779B97F4A7C15u;
  base::MutexLock lock(mu_);
  std::vector<Times>& same_hash = interned_[hash];
  for (const Times& candidate : same_hash) {
    if (*candidate == times) return candidate;
  }
  same_hash.push_back(std::make_shared<const std::vector<int64_t>>(std::move(times)));
  return same_hash.back();
}

absl::Status Snapshot::AppendPoints(const ChunkView& chunk, std::vector<Point>& out) const {
  std::vector<int64_t> times;
  if ((chunk.header.flags & kChunkInlineTimes) != 0) {
    RETURN_IF_ERROR(codec::DecodeTimes(chunk.inline_times, times));
  } else {
    int64_t first = 0;
    RETURN_IF_ERROR(FirstTime(chunk, &first));  // checks that the column is long enough
    ASSIGN_OR_RETURN(const std::vector<int64_t>* column, ColumnAt(chunk.header.column));
    ForEachBit(chunk.header.mask, [&](uint32_t i) { times.push_back((*column)[i]); });
  }
  const size_t n = chunk.header.count;
  if (times.size() != n) return Malformed(chunk, "times and values differ in number");
  std::vector<int64_t> starts(n);
  if ((chunk.header.flags & kChunkStarts) != 0) RETURN_IF_ERROR(codec::DecodeStartTimes(chunk.starts, times, starts));
  if (chunk.histograms()) {
    std::vector<HistogramPtr> decoded;
    RETURN_IF_ERROR(codec::DecodeHistograms(chunk.payload, n, decoded));
    if (decoded.size() != n) return Malformed(chunk, "times and histograms differ in number");
    for (size_t i = 0; i < n; ++i) {
      out.push_back({times[i], std::bit_cast<uint64_t>(decoded[i]->sum), starts[i], std::move(decoded[i])});
    }
    return absl::OkStatus();
  }
  std::vector<double> decoded(n);
  RETURN_IF_ERROR(codec::DecodeValues(chunk.payload, decoded));
  for (size_t i = 0; i < n; ++i) out.push_back({times[i], std::bit_cast<uint64_t>(decoded[i]), starts[i], nullptr});
  return absl::OkStatus();
}

absl::Status Snapshot::ReadMerged(const Entry& e, const std::vector<ChunkView>& newest_first,
                                  model::SampleColumns* out) const {
  struct Sourced {
    Point point;
    bool late;
  };
  std::vector<Sourced> all;  // older sources first; of samples at one time the last one wins
  std::vector<Point> points;
  const auto take = [&](bool late) {
    for (Point& p : points) {
      if (range_.Contains(p.t)) all.push_back({std::move(p), late});
    }
    points.clear();
  };
  for (auto it = newest_first.rbegin(); it != newest_first.rend(); ++it) {
    RETURN_IF_ERROR(AppendPoints(*it, points));
    take(it->side());
  }
  const Extra none;
  const Extra& extra = e.extra == kNoExtra ? none : extras_[e.extra];
  points = extra.side;
  take(true);
  size_t i = 0;
  ForEachBit(e.mask, [&](uint32_t position) {
    Point p;
    p.t = tail_columns_[e.column][position];
    if (e.histogram_tail) {
      p.histogram = extra.histograms[i];
      p.bits = std::bit_cast<uint64_t>(p.histogram->sum);
    } else {
      p.bits = e.words == kConstant ? e.last_bits : words_[e.words + i];
    }
    if (!extra.starts.empty()) p.start = extra.starts[i];
    ++i;
    points.push_back(std::move(p));
  });
  take(false);
  std::stable_sort(all.begin(), all.end(), [](const Sourced& a, const Sourced& b) { return a.point.t < b.point.t; });
  std::vector<int64_t> times;
  bool any_start = false;
  bool previous_late = false;
  for (size_t k = 0; k < all.size(); ++k) {
    if (k + 1 < all.size() && all[k + 1].point.t == all[k].point.t) continue;
    Point& p = all[k].point;
    if (p.histogram != nullptr) {
      // "Not reset" is said of neighbours. Beside a sample that came late nobody knows.
      if (p.histogram->hint == model::ResetHint::kNotReset && (all[k].late || previous_late)) {
        auto copy = std::make_shared<model::Histogram>(*p.histogram);
        copy->hint = model::ResetHint::kUnknown;
        p.histogram = std::move(copy);
      }
      out->histogram_at.push_back(static_cast<uint32_t>(times.size()));
      out->histograms.push_back(p.histogram);
    }
    previous_late = all[k].late;
    times.push_back(p.t);
    out->values.push_back(std::bit_cast<double>(p.bits));
    out->start_times.push_back(p.start);
    any_start = any_start || p.start != 0;
  }
  if (!any_start) out->start_times.clear();
  out->times = Intern(std::move(times));
  return absl::OkStatus();
}

}  // namespace varve::head
