#pragma once
// Sorting many texts that look alike: "gpu-node-0000" to "gpu-node-9999" differ only after their common beginning.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace varve::index {

struct Text {
  std::string_view text;
  uint32_t id;
  uint64_t key = 0;  // eight bytes after what all have in common, big-endian; set by SortTexts
};

inline void SortTexts(std::span<Text> texts) {
  if (texts.size() < 2) return;
  const std::string_view first = texts[0].text;
  size_t common = first.size();
  for (const Text& t : texts) {
    common = std::min(common, t.text.size());
    size_t same = 0;
    while (same < common && t.text[same] == first[same]) ++same;
    common = same;
  }
  for (Text& t : texts) {
    char raw[8] = {};
    std::memcpy(raw, t.text.data() + common, std::min<size_t>(8, t.text.size() - common));
    uint64_t key;
    std::memcpy(&key, raw, 8);
    t.key = __builtin_bswap64(key);
  }
  const auto less = [common](const Text& a, const Text& b) {
    if (a.key != b.key) return a.key < b.key;
    return a.text.substr(common) < b.text.substr(common);
  };
  if (!std::is_sorted(texts.begin(), texts.end(), less)) std::sort(texts.begin(), texts.end(), less);
}

}  // namespace varve::index
