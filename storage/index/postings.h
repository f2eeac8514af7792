#pragma once
// The series that have one label.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "storage/index/bitmap.h"
#include "storage/index/match.h"

namespace varve::index {

// Up to kSmallMax numbers are a sorted array (two of them without any allocation); beyond that a bitmap with a short
// array of newcomers in front of it, since adding to a bitmap one by one costs ten times as much. One thread.
class Postings {
 public:
  static constexpr uint32_t kSmallMax = 512;
  static constexpr uint32_t kNewcomersMax = 128;

  Postings() = default;
  Postings(Postings&& other) noexcept { Swap(other); }
  Postings& operator=(Postings&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~Postings() {
    if (capacity_ > kInline) std::free(tail_.heap);
    delete base_;
  }

  uint32_t size() const { return size_; }
  void Add(uint32_t series) {  // must not be there yet
    const uint32_t n = tail_size_;
    if (n < capacity_ && (n == 0 || data()[n - 1] < series)) [[likely]] {
      data()[n] = series;
      ++tail_size_, ++size_;
      return;
    }
    AddSlowly(series);
  }
  void AddAscending(std::span<const uint32_t> series);  // none of them there yet
  void Remove(const Bitmap& gone);
  void AddTo(Union& out) const;
  Bitmap ToBitmap() const;
  bool Intersects(const Bitmap& other) const;
  template <class F>
  void ForEachSmall(F&& f) const {
    for (uint32_t i = 0; i < tail_size_; ++i) f(data()[i]);
  }
  size_t HeapBytes() const;

 private:
  static constexpr uint32_t kInline = 2;
  union Tail {
    uint32_t direct[kInline];
    uint32_t* heap;
  };
  uint32_t* data() { return capacity_ > kInline ? tail_.heap : tail_.direct; }
  const uint32_t* data() const { return capacity_ > kInline ? tail_.heap : tail_.direct; }
  void Swap(Postings& other) noexcept;
  void AddSlowly(uint32_t series);
  void Reserve(uint32_t capacity);
  void MoveToBase();

  Tail tail_ = {};
  Bitmap* base_ = nullptr;
  uint32_t size_ = 0;
  uint16_t tail_size_ = 0;
  uint16_t capacity_ = kInline;
};
static_assert(sizeof(Postings) == 24);

}  // namespace varve::index
