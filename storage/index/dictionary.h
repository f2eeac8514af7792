#pragma once
// The memory behind label pairs and label lists: addresses never change, so that other threads may read what they were
// handed while the shard's thread goes on adding.
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "storage/base/check.h"
#include "storage/index/index.h"

namespace varve::index {

// An array that grows without moving: page k holds 64 * 2^k zeroed items, so that 26 page pointers reach every uint32.
template <class T>
class StablePages {
 public:
  StablePages() = default;
  StablePages(const StablePages&) = delete;
  StablePages& operator=(const StablePages&) = delete;
  ~StablePages() {
    for (T* page : pages_) std::free(page);
  }
  T& operator[](uint32_t i) { return pages_[Page(i)][Within(i)]; }
  const T& operator[](uint32_t i) const { return pages_[Page(i)][Within(i)]; }
  // Makes item i usable.
  void Reach(uint32_t i) {
    const int page = Page(i);
    if (pages_[static_cast<size_t>(page)] != nullptr) [[likely]]
      return;
    const size_t items = size_t{64} << page;
    auto* memory = static_cast<T*>(std::calloc(items, sizeof(T)));
    VARVE_CHECK(memory != nullptr);
    pages_[static_cast<size_t>(page)] = memory;
    bytes_ += items * sizeof(T);
  }
  size_t bytes() const { return bytes_; }

 private:
  static_assert(std::is_trivially_copyable_v<T>);
  static int Page(uint32_t i) { return std::bit_width(uint64_t{i} + 64) - 7; }
  static size_t Within(uint32_t i) { return uint64_t{i} + 64 - (uint64_t{64} << Page(i)); }
  std::array<T*, 27> pages_{};
  size_t bytes_ = 0;
};

struct PairEntry {
  const char* bytes;  // canonical bytes of the label
  uint32_t size;      // 0: no such entry
  uint32_t name;      // the index's number of the label's name
};
static_assert(sizeof(PairEntry) == 16);

// Label texts, pair entries and label lists. Written by one thread; entries and lists that were handed over with a pin
// may be read from any. Memory that is given back must not be readable by any pin (Limbo sees to that).
class Dictionary {
 public:
  ~Dictionary();
  PairId NewPair(std::string_view canonical, uint32_t name);
  void FreePair(PairId pair);
  PairId pair_end() const { return pair_end_; }
  const PairEntry& entry(PairId pair) const { return pairs_[pair]; }
  std::string_view bytes(PairId pair) const { return {pairs_[pair].bytes, pairs_[pair].size}; }
  model::LabelRef label(PairId pair) const { return *model::LabelsView(bytes(pair)).begin(); }

  // Positions of lists are handles for the index; 0 is none. At most 65535 labels.
  uint32_t NewList(std::span<const PairId> pairs);
  void FreeList(uint32_t list);
  const uint32_t* list(uint32_t at) const { return lists_[at >> kListChunkBits].get() + (at & (kListChunkWords - 1)); }

  size_t BytesUsed() const;

 private:
  static constexpr uint32_t kListChunkBits = 17;
  static constexpr uint32_t kListChunkWords = 1u << kListChunkBits;
  static constexpr size_t kTextChunkBytes = size_t{64} << 10;
  static constexpr size_t kTextClassMax = 128;  // in 8 bytes; larger texts are allocated one by one

  char* NewText(size_t size);
  void FreeText(const char* text, size_t size);

  StablePages<PairEntry> pairs_;
  PairId pair_end_ = 0;
  std::vector<PairId> free_pairs_;

  std::vector<std::unique_ptr<char[]>> text_chunks_;
  size_t text_used_ = kTextChunkBytes;                 // of the last chunk
  std::array<char*, kTextClassMax + 1> free_texts_{};  // linked through their first bytes
  size_t large_text_bytes_ = 0;

  std::vector<std::unique_ptr<uint32_t[]>> lists_;
  uint32_t list_used_ = kListChunkWords;           // of the last chunk
  std::vector<std::vector<uint32_t>> free_lists_;  // by length
};

// The dictionary, held for as long as somebody reads. Letting go is announced through `released`.
struct Pin::Hold {
  Hold(std::shared_ptr<const Dictionary> d, std::shared_ptr<std::atomic<bool>> r)
      : dictionary(std::move(d)), released(std::move(r)) {}
  ~Hold() { released->store(true, std::memory_order_release); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  const std::shared_ptr<const Dictionary> dictionary;
  const std::shared_ptr<std::atomic<bool>> released;
};

}  // namespace varve::index
