#include <algorithm>
#include <bit>
#include <string>

#include "storage/base/strings.h"
#include "storage/index/dictionary.h"
#include "storage/index/pair_map.h"
#include "storage/index/text_order.h"

namespace varve::index {

namespace {

// Ranks of the pairs that occur in `lists`, from 1, in the order of (name, value).
PairMap RankPairs(const Pin& pin, std::span<const LabelList> lists) {
  PairId end = 0;
  uint64_t total = 0;
  for (const LabelList list : lists) {
    total += list.pairs().size();
    for (const PairId pair : list.pairs()) end = std::max(end, pair + 1);
  }
  PairMap rank(end, total);
  base::StringMap<uint32_t> name_numbers;
  struct Group {
    std::string name;
    std::vector<Text> values;
  };
  std::vector<Group> groups;
  for (const LabelList list : lists) {
    size_t guess = 0;
    for (const PairId pair : list.pairs()) {
      if (rank[pair] != 0) continue;
      rank[pair] = 1;
      const model::LabelRef label = pin.label(pair);
      if (guess >= groups.size() || groups[guess].name != label.name) {
        const auto [it, added] = name_numbers.try_emplace(label.name, groups.size());
        if (added) groups.push_back({std::string(label.name), {}});
        guess = it->second;
      }
      groups[guess++].values.push_back({label.value, pair});
    }
  }
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.name < b.name; });
  uint32_t next = 1;
  for (Group& group : groups) {
    SortTexts(group.values);
    for (const Text& value : group.values) rank[value.id] = next++;
  }
  return rank;
}

}  // namespace

std::vector<uint32_t> SortByLabels(const Pin& pin, std::span<const LabelList> lists) {
  std::vector<uint32_t> order(lists.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  if (lists.size() < 2) return order;
  PairMap rank = RankPairs(pin, lists);

  // A label set is its ranks one after the other, 0 beyond its end: a proper prefix sorts first. Positions need only
  // the bits in which they differ; as many as fit make a 64-bit key, which is nearly always all of them.
  struct Span {
    uint32_t low = UINT32_MAX, high = 0;
  };
  std::vector<Span> spans;
  size_t shortest = SIZE_MAX;
  for (const LabelList list : lists) {
    const auto pairs = list.pairs();
    shortest = std::min(shortest, pairs.size());
    if (spans.size() < pairs.size()) spans.resize(pairs.size());
    for (size_t i = 0; i < pairs.size(); ++i) {
      spans[i].low = std::min(spans[i].low, rank[pairs[i]]);
      spans[i].high = std::max(spans[i].high, rank[pairs[i]]);
    }
  }
  for (size_t i = shortest; i < spans.size(); ++i) spans[i].low = 0;
  size_t in_key = 0;
  int bits = 0;
  for (; in_key < spans.size(); ++in_key) {
    const int more = std::bit_width(spans[in_key].high - spans[in_key].low);
    if (bits + more > 64) break;
    bits += more;
  }
  struct Keyed {
    uint64_t key;
    uint32_t at;
  };
  std::vector<Keyed> keyed(lists.size());
  for (uint32_t at = 0; at < keyed.size(); ++at) {
    const auto pairs = lists[at].pairs();
    uint64_t key = 0;
    for (size_t i = 0; i < in_key; ++i) {
      const int width = std::bit_width(spans[i].high - spans[i].low);
      if (width == 0) continue;
      const uint32_t value = i < pairs.size() ? rank[pairs[i]] - spans[i].low : 0;
      key = width == 64 ? value : key << width | value;
    }
    keyed[at] = {key, at};
  }
  const auto less = [&](const Keyed& a, const Keyed& b) {
    if (a.key != b.key || in_key == spans.size()) return a.key < b.key;
    const auto x = lists[a.at].pairs();
    const auto y = lists[b.at].pairs();
    for (size_t i = in_key; i < x.size() && i < y.size(); ++i) {
      if (x[i] != y[i]) return rank[x[i]] < rank[y[i]];
    }
    return x.size() < y.size();
  };
  if (!std::is_sorted(keyed.begin(), keyed.end(), less)) std::sort(keyed.begin(), keyed.end(), less);
  for (size_t i = 0; i < keyed.size(); ++i) order[i] = keyed[i].at;
  return order;
}

}  // namespace varve::index
