#include "storage/index/postings.h"

#include <algorithm>
#include <cstring>

#include "storage/base/check.h"

namespace varve::index {

void Postings::Swap(Postings& other) noexcept {
  std::swap(tail_, other.tail_);
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  std::swap(tail_size_, other.tail_size_);
  std::swap(capacity_, other.capacity_);
}

void Postings::Reserve(uint32_t capacity) {
  if (capacity <= capacity_) return;
  auto* heap = static_cast<uint32_t*>(std::malloc(capacity * sizeof(uint32_t)));
  VARVE_CHECK(heap != nullptr);
  std::memcpy(heap, data(), tail_size_ * sizeof(uint32_t));
  if (capacity_ > kInline) std::free(tail_.heap);
  tail_.heap = heap;
  capacity_ = static_cast<uint16_t>(capacity);
}

void Postings::MoveToBase() {
  if (base_ == nullptr) base_ = new Bitmap();
  base_->addMany(tail_size_, data());
  tail_size_ = 0;
  if (capacity_ > kNewcomersMax) {
    std::free(tail_.heap);
    capacity_ = kInline;
  }
}

void Postings::AddSlowly(uint32_t series) {
  const uint32_t n = tail_size_;
  if (base_ != nullptr) {
    if (n > 0 && series < data()[n - 1]) {  // out of order: a slot that is used again
      base_->add(series);
      ++size_;
      return;
    }
    if (n >= kNewcomersMax)
      MoveToBase();
    else
      Reserve(std::min(kNewcomersMax, capacity_ * 4u));
  } else if (n >= kSmallMax) {
    MoveToBase();
  } else if (n == capacity_) {
    Reserve(std::min(kSmallMax, n < 8 ? n * 2 : n + n / 2));
  }
  uint32_t* const begin = data();
  uint32_t* const end = begin + tail_size_;
  uint32_t* const at = tail_size_ == 0 || end[-1] < series ? end : std::lower_bound(begin, end, series);
  std::memmove(at + 1, at, static_cast<size_t>(end - at) * sizeof(uint32_t));
  *at = series;
  ++tail_size_, ++size_;
}

void Postings::AddAscending(std::span<const uint32_t> series) {
  if (series.empty()) return;
  const bool after_all = base_ == nullptr && (tail_size_ == 0 || data()[tail_size_ - 1] < series.front());
  if (after_all && tail_size_ + series.size() <= kSmallMax) {
    Reserve(tail_size_ + static_cast<uint32_t>(series.size()));
    std::copy(series.begin(), series.end(), data() + tail_size_);
    tail_size_ = static_cast<uint16_t>(tail_size_ + series.size());
    size_ += static_cast<uint32_t>(series.size());
  } else if (size_ + series.size() <= kSmallMax) {
    for (const uint32_t s : series) Add(s);
  } else {
    MoveToBase();
    base_->addMany(series.size(), series.data());
    size_ += static_cast<uint32_t>(series.size());
  }
}

void Postings::Remove(const Bitmap& gone) {
  uint32_t* const begin = data();
  uint32_t* const end = std::remove_if(begin, begin + tail_size_, [&](uint32_t s) { return gone.contains(s); });
  tail_size_ = static_cast<uint16_t>(end - begin);
  size_ = tail_size_;
  if (base_ == nullptr) return;
  *base_ -= gone;
  const uint64_t left = base_->cardinality();
  size_ += static_cast<uint32_t>(left);
  if (left > kSmallMax / 2) return;
  // Few are left: back to an array.
  std::vector<uint32_t> all(left);
  base_->toUint32Array(all.data());
  all.insert(all.end(), data(), data() + tail_size_);
  std::sort(all.begin(), all.end());
  *this = Postings();
  AddAscending(all);
}

void Postings::AddTo(Union& out) const {
  if (base_ != nullptr) out.Add(*base_);
  out.Add(std::span<const uint32_t>(data(), tail_size_));
}

Bitmap Postings::ToBitmap() const {
  Bitmap out;
  if (base_ != nullptr) out = *base_;
  out.addMany(tail_size_, data());
  return out;
}

bool Postings::Intersects(const Bitmap& other) const {
  for (uint32_t i = 0; i < tail_size_; ++i) {
    if (other.contains(data()[i])) return true;
  }
  return base_ != nullptr && base_->intersect(other);
}

size_t Postings::HeapBytes() const {
  size_t bytes = capacity_ > kInline ? capacity_ * sizeof(uint32_t) : 0;
  // The portable size is close to what the containers take in memory.
  if (base_ != nullptr) bytes += sizeof(Bitmap) + base_->getSizeInBytes();
  return bytes;
}

}  // namespace varve::index
