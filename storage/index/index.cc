#include "storage/index/index.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "storage/base/bytes.h"
#include "storage/base/check.h"
#include "storage/base/strings.h"
#include "storage/index/dictionary.h"
#include "storage/index/match.h"
#include "storage/index/pair_table.h"
#include "storage/index/postings.h"
#include "storage/index/text_order.h"

namespace varve::index {

namespace {

uint32_t HashBytes(std::string_view bytes) { return static_cast<uint32_t>(XXH3_64bits(bytes.data(), bytes.size())); }

// Takes the first label off trusted canonical bytes.
std::string_view NextLabel(std::string_view& rest) {
  size_t size = 0, at = 1;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(rest[at++]);
    size |= static_cast<size_t>(byte & 0x7F) << shift;
    if (byte < 0x80) break;
  }
  const std::string_view label = rest.substr(0, at + size);
  rest.remove_prefix(at + size);
  return label;
}

// The bytes of one label, as model/labels.h has them.
void EncodeLabel(std::string_view name, std::string_view value, std::string& out) {
  out.clear();
  std::string inside;
  base::PutU8(inside, 0x0A);
  base::PutBytes(inside, name);
  base::PutU8(inside, 0x12);
  base::PutBytes(inside, value);
  base::PutU8(out, 0x0A);
  base::PutBytes(out, inside);
}

struct Name {
  std::string name;
  std::vector<PairId> pairs;  // with series; the first `sorted` are in the order of their values
  size_t sorted = 0;
  bool has_dead = false;  // a pair lost its last series since the last sweep
};

// What was removed while pins could still see it.
struct Limbo {
  std::shared_ptr<std::atomic<bool>> released;
  std::vector<PairId> pairs;
  std::vector<uint32_t> lists;
};

}  // namespace

struct Index::Impl final : PostingsView {
  Impl() : dictionary(std::make_shared<Dictionary>()) { NewEpoch(); }

  void NewEpoch() {
    released = std::make_shared<std::atomic<bool>>(false);
    hold = std::make_shared<Pin::Hold>(dictionary, released);
  }

  uint32_t NameNumber(std::string_view name) {
    const auto it = name_numbers.find(name);
    if (it != name_numbers.end()) return it->second;
    uint32_t number;
    if (!free_names.empty()) {
      number = free_names.back();
      free_names.pop_back();
    } else {
      number = static_cast<uint32_t>(names.size());
      names.emplace_back();
    }
    names[number].name = name;
    name_numbers.emplace(std::string(name), number);
    return number;
  }

  PairId FindPair(std::string_view label, uint32_t hash) const {
    return table.Find(hash, [&](PairId pair) {
      const PairEntry& entry = dictionary->entry(pair);
      return entry.size == label.size() && std::memcmp(entry.bytes, label.data(), label.size()) == 0;
    });
  }

  PairId FindPairOf(uint32_t name, std::string_view value) const {
    std::string label;
    EncodeLabel(names[name].name, value, label);
    return FindPair(label, HashBytes(label));
  }

  PairId Intern(std::string_view label) {
    const uint32_t hash = HashBytes(label);
    const PairId known = FindPair(label, hash);
    if (known != PairTable::kNone) [[likely]]
      return known;
    const uint32_t name = NameNumber((*model::LabelsView(label).begin()).name);
    const PairId pair = dictionary->NewPair(label, name);
    table.Insert(hash, pair);
    if (pair >= postings.size()) postings.resize(pair + 1);
    names[name].pairs.push_back(pair);
    return pair;
  }

  void SetList(uint32_t slot, std::span<const PairId> pairs) {
    if (slot >= slots.size()) slots.resize(slot + 1, 0);
    VARVE_CHECK(slots[slot] == 0);
    slots[slot] = dictionary->NewList(pairs);
  }

  // Not so for pairs that were removed and may still be read through a pin.
  bool IsListed(PairId pair) const {
    const std::string_view bytes = dictionary->bytes(pair);
    return !bytes.empty() && FindPair(bytes, HashBytes(bytes)) == pair;
  }

  // Sweeps those of `pairs` (ascending) that have no series out of the table and the names, into `limbo`.
  void DropPairs(std::span<const PairId> pairs, Limbo& limbo) {
    std::vector<uint32_t> touched;
    std::vector<PairId> dead;  // ascending, as `pairs` is
    for (const PairId pair : pairs) {
      if (postings[pair].size() != 0) continue;
      dead.push_back(pair);
      const PairEntry& entry = dictionary->entry(pair);
      table.Erase(HashBytes(dictionary->bytes(pair)), pair);
      limbo.pairs.push_back(pair);
      postings[pair] = Postings();
      if (!names[entry.name].has_dead) touched.push_back(entry.name);
      names[entry.name].has_dead = true;
    }
    for (const uint32_t number : touched) {
      Name& name = names[number];
      name.has_dead = false;
      const auto is_dead = [&](PairId pair) {
        return postings[pair].size() == 0 && std::binary_search(dead.begin(), dead.end(), pair);
      };
      const auto sorted_end = name.pairs.begin() + static_cast<ptrdiff_t>(name.sorted);
      name.sorted -= static_cast<size_t>(std::count_if(name.pairs.begin(), sorted_end, is_dead));
      std::erase_if(name.pairs, is_dead);
      if (name.pairs.capacity() > 64 && name.pairs.size() < name.pairs.capacity() / 4) name.pairs.shrink_to_fit();
      if (!name.pairs.empty()) continue;
      name_numbers.erase(name.name);
      name = Name();
      free_names.push_back(number);
    }
  }

  void Reclaim() {
    while (!limbos.empty() && limbos.front().released->load(std::memory_order_acquire)) {
      for (const PairId pair : limbos.front().pairs) dictionary->FreePair(pair);
      for (const uint32_t list : limbos.front().lists) dictionary->FreeList(list);
      limbos.pop_front();
    }
  }

  void Bury(Limbo limbo) {
    if (limbo.pairs.empty() && limbo.lists.empty()) return Reclaim();
    limbo.released = released;
    limbos.push_back(std::move(limbo));
    NewEpoch();  // lets go of the old hold: released at once unless somebody has a pin
    Reclaim();
  }

  // Not so while all its pairs wait for BulkAdd.
  bool HasSeries(const Name& name) const {
    return std::any_of(name.pairs.begin(), name.pairs.end(), [&](PairId pair) { return postings[pair].size() > 0; });
  }

  std::span<const PairId> Pairs(uint32_t slot) const {
    if (slot >= slots.size() || slots[slot] == 0) return {};
    return LabelList(dictionary->list(slots[slot])).pairs();
  }

  // Brings the values of a name in order. Only what came since the last time is sorted.
  void EnsureSorted(Name& name) const {
    if (name.sorted == name.pairs.size()) return;
    std::vector<Text> fresh;
    fresh.reserve(name.pairs.size() - name.sorted);
    for (size_t i = name.sorted; i < name.pairs.size(); ++i) {
      fresh.push_back({dictionary->label(name.pairs[i]).value, name.pairs[i]});
    }
    SortTexts(fresh);
    for (size_t i = 0; i < fresh.size(); ++i) name.pairs[name.sorted + i] = fresh[i].id;
    const auto less = [&](PairId a, PairId b) { return dictionary->label(a).value < dictionary->label(b).value; };
    std::inplace_merge(name.pairs.begin(), name.pairs.begin() + static_cast<ptrdiff_t>(name.sorted), name.pairs.end(),
                       less);
    name.sorted = name.pairs.size();
  }

  // --- PostingsView. Values go by their pair id.
  Bitmap All() const override { return all.ToBitmap(); }
  std::optional<uint32_t> FindName(std::string_view name) const override {
    const auto it = name_numbers.find(name);
    if (it == name_numbers.end()) return std::nullopt;
    return it->second;
  }
  uint32_t value_count(uint32_t name) const override { return static_cast<uint32_t>(names[name].pairs.size()); }
  absl::StatusOr<std::optional<uint32_t>> FindValue(uint32_t name, std::string_view value) const override {
    const PairId pair = FindPairOf(name, value);
    return pair == PairTable::kNone ? std::nullopt : std::optional<uint32_t>(pair);
  }
  absl::Status ScanValues(uint32_t number, std::string_view prefix,
                          const std::function<absl::StatusOr<bool>(std::string_view)>& accept,
                          std::vector<uint32_t>& out) const override {
    const Name& name = names[number];
    size_t i = 0;
    const auto visit = [&](size_t end, bool stop_at_mismatch) -> absl::Status {
      for (; i < end; ++i) {
        const std::string_view value = dictionary->label(name.pairs[i]).value;
        if (!value.starts_with(prefix)) {
          if (stop_at_mismatch) break;
          continue;
        }
        ASSIGN_OR_RETURN(const bool accepted, accept(value));
        if (accepted) out.push_back(name.pairs[i]);
      }
      return absl::OkStatus();
    };
    if (!prefix.empty()) {
      const auto begin = name.pairs.begin();
      i = static_cast<size_t>(
          std::lower_bound(begin, begin + static_cast<ptrdiff_t>(name.sorted), prefix,
                           [&](PairId pair, std::string_view p) { return dictionary->label(pair).value < p; }) -
          begin);
    }
    RETURN_IF_ERROR(visit(name.sorted, true));
    i = name.sorted;
    return visit(name.pairs.size(), false);
  }
  uint64_t Count(uint32_t, uint32_t value) const override { return postings[value].size(); }
  absl::Status AddPostings(uint32_t, uint32_t value, Union& out) const override {
    postings[value].AddTo(out);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string_view> ValueOf(uint32_t series, uint32_t name, std::string&) const override {
    for (const PairId pair : Pairs(series)) {
      if (dictionary->entry(pair).name == name) return dictionary->label(pair).value;
    }
    return std::string_view();
  }

  std::shared_ptr<Dictionary> dictionary;
  PairTable table;
  std::vector<Postings> postings;  // by pair
  std::vector<uint32_t> slots;     // the list of a series, 0 when the slot is free
  Postings all;
  mutable std::vector<Name> names;  // sorting a name's values changes nothing that shows
  base::StringMap<uint32_t> name_numbers;
  std::vector<uint32_t> free_names;

  std::shared_ptr<std::atomic<bool>> released;  // set when the last pin of this epoch is let go
  std::shared_ptr<const Pin::Hold> hold;
  std::deque<Limbo> limbos;  // oldest first
  std::vector<PairId> scratch;
};

Index::Index() : impl_(std::make_unique<Impl>()) {}
Index::~Index() = default;

void Index::AddSeries(uint32_t slot, model::LabelsView labels) {
  Impl& m = *impl_;
  m.scratch.clear();
  for (std::string_view rest = labels.bytes(); !rest.empty();) m.scratch.push_back(m.Intern(NextLabel(rest)));
  m.SetList(slot, m.scratch);
  for (const PairId pair : m.scratch) m.postings[pair].Add(slot);
  m.all.Add(slot);
}

void Index::RemoveSeries(std::span<const uint32_t> slots) {
  Impl& m = *impl_;
  Limbo limbo;
  Bitmap gone;
  std::vector<PairId> touched;
  for (const uint32_t slot : slots) {
    if (slot >= m.slots.size() || m.slots[slot] == 0) continue;
    const auto pairs = m.Pairs(slot);
    touched.insert(touched.end(), pairs.begin(), pairs.end());
    limbo.lists.push_back(m.slots[slot]);
    m.slots[slot] = 0;
    gone.add(slot);
  }
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  for (const PairId pair : touched) m.postings[pair].Remove(gone);
  m.all.Remove(gone);
  m.DropPairs(touched, limbo);
  m.Bury(std::move(limbo));
}

uint64_t Index::series_count() const { return impl_->all.size(); }

LabelList Index::ListOf(uint32_t slot) const {
  const Impl& m = *impl_;
  if (slot >= m.slots.size() || m.slots[slot] == 0) return {};
  return LabelList(m.dictionary->list(m.slots[slot]));
}

model::Labels Index::LabelsOf(uint32_t slot) const {
  std::string canonical;
  for (const PairId pair : impl_->Pairs(slot)) canonical.append(impl_->dictionary->bytes(pair));
  return model::Labels(model::LabelsView(canonical));
}

std::string_view Index::GetValue(uint32_t slot, std::string_view name) const {
  for (const PairId pair : impl_->Pairs(slot)) {
    if (impl_->names[impl_->dictionary->entry(pair).name].name == name) return impl_->dictionary->label(pair).value;
  }
  return {};
}

Pin Index::TakePin() const {
  Pin pin;
  pin.hold_ = impl_->hold;
  pin.dictionary_ = impl_->dictionary.get();
  return pin;
}

absl::StatusOr<Bitmap> Index::Match(std::span<const model::Matcher> matchers, const base::Cancel* cancel) const {
  return index::Match(*impl_, matchers, cancel);
}

std::vector<std::string> Index::LabelNames(const Bitmap* among) const {
  const Impl& m = *impl_;
  std::vector<std::string> out;
  if (among == nullptr) {
    for (const auto& [name, number] : m.name_numbers) {
      if (m.HasSeries(m.names[number])) out.push_back(name);
    }
  } else {
    std::vector<bool> seen(m.names.size());
    for (const uint32_t slot : *among) {
      for (const PairId pair : m.Pairs(slot)) {
        const uint32_t name = m.dictionary->entry(pair).name;
        if (seen[name]) continue;
        seen[name] = true;
        out.push_back(m.names[name].name);
      }
      if (out.size() == m.name_numbers.size()) break;
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> Index::LabelValues(std::string_view label, const Bitmap* among) const {
  const Impl& m = *impl_;
  std::vector<std::string> out;
  const std::optional<uint32_t> number = m.FindName(label);
  if (!number.has_value()) return out;
  Name& name = m.names[*number];
  if (among != nullptr && among->cardinality() < name.pairs.size()) {
    // Fewer series than values: ask the series.
    std::vector<PairId> found;
    for (const uint32_t slot : *among) {
      for (const PairId pair : m.Pairs(slot)) {
        if (m.dictionary->entry(pair).name == *number) found.push_back(pair);
      }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    for (const PairId pair : found) out.emplace_back(m.dictionary->label(pair).value);
    std::sort(out.begin(), out.end());
    return out;
  }
  m.EnsureSorted(name);
  out.reserve(among == nullptr ? name.pairs.size() : 0);
  for (const PairId pair : name.pairs) {
    const bool listed = among == nullptr ? m.postings[pair].size() > 0 : m.postings[pair].Intersects(*among);
    if (listed) out.emplace_back(m.dictionary->label(pair).value);
  }
  return out;
}

uint64_t Index::SeriesWith(std::string_view name, std::string_view value) const {
  const std::optional<uint32_t> number = impl_->FindName(name);
  if (!number.has_value()) return 0;
  const PairId pair = impl_->FindPairOf(*number, value);
  return pair == PairTable::kNone ? 0 : impl_->postings[pair].size();
}

namespace {

using Entries = std::vector<model::SourceStats::Entry>;

// Keeps the `limit` largest; of equal ones the name that sorts first.
class Top {
 public:
  explicit Top(size_t limit) : limit_(limit) {}
  bool Wants(uint64_t value) const { return limit_ > 0 && (heap_.size() < limit_ || value >= heap_.front().value); }
  void Add(std::string name, uint64_t value) {
    heap_.push_back({std::move(name), value});
    std::push_heap(heap_.begin(), heap_.end(), Before);
    if (heap_.size() <= limit_) return;
    std::pop_heap(heap_.begin(), heap_.end(), Before);
    heap_.pop_back();
  }
  Entries Take() {
    std::sort_heap(heap_.begin(), heap_.end(), Before);
    return std::move(heap_);
  }

 private:
  static bool Before(const model::SourceStats::Entry& a, const model::SourceStats::Entry& b) {
    return a.value != b.value ? a.value > b.value : a.name < b.name;
  }
  const size_t limit_;
  Entries heap_;
};

}  // namespace

void Index::FillStats(size_t limit, model::SourceStats& stats) const {
  const Impl& m = *impl_;
  Top by_metric(limit), by_label(limit), bytes_by_label(limit), by_pair(limit);
  stats.series = m.all.size();
  stats.label_pairs = 0;
  for (const auto& [name, number] : m.name_numbers) {
    const std::vector<PairId>& pairs = m.names[number].pairs;
    uint64_t bytes = 0, values = 0;
    for (const PairId pair : pairs) {
      const std::string_view value = m.dictionary->label(pair).value;
      const uint64_t series = m.postings[pair].size();
      if (series == 0) continue;
      ++values;
      bytes += value.size() * series;  // as Prometheus counts: as if every series had its own copy
      if (name == model::kMetricName && by_metric.Wants(series)) by_metric.Add(std::string(value), series);
      if (by_pair.Wants(series)) by_pair.Add(base::StrCat(name, "=", value), series);
    }
    if (values == 0) continue;
    stats.label_pairs += values;
    by_label.Add(name, values);
    bytes_by_label.Add(name, bytes);
  }
  stats.series_by_metric = by_metric.Take();
  stats.values_by_label = by_label.Take();
  stats.bytes_by_label = bytes_by_label.Take();
  stats.series_by_pair = by_pair.Take();
}

PairId Index::pair_end() const { return impl_->dictionary->pair_end(); }

std::string_view Index::PairBytes(PairId pair) const {
  return impl_->postings[pair].size() == 0 ? std::string_view() : impl_->dictionary->bytes(pair);
}

absl::StatusOr<std::vector<PairId>> Index::InternPairs(std::span<const std::string_view> labels) {
  for (const std::string_view label : labels) {
    // Exactly one label in canonical form: what a checked parse gives back is the same.
    base::ByteReader in(label);
    const bool outer = in.U8() == 0x0A;
    base::ByteReader inside(in.Bytes());
    const bool name_tag = inside.U8() == 0x0A;
    const std::string_view name = inside.Bytes();
    const bool value_tag = inside.U8() == 0x12;
    const std::string_view value = inside.Bytes();
    std::string again;
    if (outer && name_tag && value_tag && inside.ok() && in.ok()) EncodeLabel(name, value, again);
    if (again != label || name.empty() || value.empty()) {
      return absl::InvalidArgumentError("a label of the dictionary is not in canonical form");
    }
  }
  std::vector<PairId> out;
  out.reserve(labels.size());
  for (const std::string_view label : labels) out.push_back(impl_->Intern(label));
  return out;
}

absl::Status Index::BulkAdd(std::span<const uint32_t> slots, std::span<const uint32_t> ends,
                            std::span<const PairId> pairs) {
  Impl& m = *impl_;
  const PairId end = m.dictionary->pair_end();
  if (slots.size() != ends.size() || (ends.empty() ? !pairs.empty() : ends.back() != pairs.size())) {
    return absl::InvalidArgumentError("label lists do not add up");
  }
  // A few series among many labels, as a record of the log has them, are not worth a walk over all labels.
  const bool few = pairs.size() * 16 < end;
  std::vector<uint32_t> starts(few ? 0 : size_t{end} + 1, 0);  // counts first, shifted by one
  for (const PairId pair : pairs) {
    if (pair >= end || (few && !m.IsListed(pair))) {
      return absl::InvalidArgumentError(base::StrCat("label ", pair, " is not in the dictionary"));
    }
    if (!few) ++starts[pair + 1];
  }
  for (PairId pair = 0; !few && pair < end; ++pair) {
    if (starts[pair + 1] > 0 && !m.IsListed(pair)) {
      return absl::InvalidArgumentError(base::StrCat("label ", pair, " is not in the dictionary"));
    }
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    const uint32_t begin = i == 0 ? 0 : ends[i - 1];
    if (begin > ends[i] || ends[i] > pairs.size() || ends[i] - begin > UINT16_MAX)
      return absl::InvalidArgumentError("label lists do not add up");
    if ((i > 0 && slots[i] <= slots[i - 1]) || Has(slots[i])) {
      return absl::InvalidArgumentError(base::StrCat("slot ", slots[i], " is taken or out of order"));
    }
    for (uint32_t at = begin + 1; at < ends[i]; ++at) {
      if (pairs[at] == pairs[at - 1]) return absl::InvalidArgumentError("a label occurs twice in one series");
    }
  }
  if (few) {
    for (size_t i = 0; i < slots.size(); ++i) {
      const uint32_t begin = i == 0 ? 0 : ends[i - 1];
      const auto list = pairs.subspan(begin, ends[i] - begin);
      m.SetList(slots[i], list);
      for (const PairId pair : list) m.postings[pair].Add(slots[i]);
      m.all.Add(slots[i]);
    }
    return absl::OkStatus();
  }
  for (PairId pair = 0; pair < end; ++pair) starts[pair + 1] += starts[pair];
  if (!slots.empty() && m.slots.size() <= slots.back()) m.slots.resize(slots.back() + 1, 0);
  // Counting sort by label; slots ascend within each.
  std::vector<uint32_t> series(pairs.size());
  std::vector<uint32_t> next(starts.begin(), starts.end() - 1);
  for (size_t i = 0; i < slots.size(); ++i) {
    const uint32_t begin = i == 0 ? 0 : ends[i - 1];
    const auto list = pairs.subspan(begin, ends[i] - begin);
    for (const PairId pair : list) series[next[pair]++] = slots[i];
    m.SetList(slots[i], list);
  }
  for (PairId pair = 0; pair < end; ++pair) {
    m.postings[pair].AddAscending(std::span(series).subspan(starts[pair], starts[pair + 1] - starts[pair]));
  }
  m.all.AddAscending(slots);
  return absl::OkStatus();
}

void Index::DropUnused() {
  Impl& m = *impl_;
  std::vector<PairId> unused;
  for (PairId pair = 0; pair < m.dictionary->pair_end(); ++pair) {
    if (m.postings[pair].size() == 0 && m.IsListed(pair)) unused.push_back(pair);
  }
  Limbo limbo;
  m.DropPairs(unused, limbo);
  m.Bury(std::move(limbo));
}

size_t Index::BytesUsed() const {
  const Impl& m = *impl_;
  size_t bytes = m.dictionary->BytesUsed() + m.table.bytes() + m.postings.capacity() * sizeof(Postings) +
                 m.slots.capacity() * sizeof(uint32_t) + m.all.HeapBytes();
  for (const Postings& postings : m.postings) bytes += postings.HeapBytes();
  for (const Name& name : m.names) bytes += sizeof(Name) + name.name.size() + name.pairs.capacity() * sizeof(PairId);
  for (const Limbo& limbo : m.limbos) bytes += (limbo.pairs.capacity() + limbo.lists.capacity()) * sizeof(uint32_t);
  return bytes;
}

std::string Index::DebugString() const {
  const Impl& m = *impl_;
  return base::StrCat("index: ", m.all.size(), " series, ", m.table.size(), " labels of ", m.name_numbers.size(),
                      " names, ", m.limbos.size(), " removals still pinned, ", BytesUsed(), " bytes");
}

}  // namespace varve::index
