#pragma once
// Writes canonical label bytes (storage/model/labels.h) into strings owned by the batch.
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "storage/model/write_batch.h"

namespace varve::decode {

constexpr size_t VarintSize(size_t v) {
  size_t n = 1;
  for (; v >= 0x80; v >>= 7) ++n;
  return n;
}
inline char* PutVarint(char* p, size_t v) {
  for (; v >= 0x80; v >>= 7) *p++ = static_cast<char>(v | 0x80);
  *p++ = static_cast<char>(v);
  return p;
}
// At least what PutCanonical writes.
inline size_t CanonicalSizeMax(model::LabelRef label) { return label.name.size() + label.value.size() + 33; }
inline char* PutText(char* p, char tag, std::string_view text) {
  *p++ = tag;
  p = PutVarint(p, text.size());
  if (!text.empty()) std::memcpy(p, text.data(), text.size());
  return p + text.size();
}
inline char* PutCanonical(char* p, model::LabelRef label) {
  const size_t inside =
      2 + VarintSize(label.name.size()) + label.name.size() + VarintSize(label.value.size()) + label.value.size();
  *p++ = 0x0A;
  p = PutVarint(p, inside);
  p = PutText(p, 0x0A, label.name);
  return PutText(p, 0x12, label.value);
}

// Bytes that live as long as the batch, handed out from large pieces.
class Arena {
 public:
  explicit Arena(model::WriteBatch& batch, size_t piece = size_t{64} << 10) : batch_(batch), piece_(piece) {}
  // Room for `size` bytes; what is not kept is handed out again.
  char* Reserve(size_t size) {
    if (static_cast<size_t>(end_ - p_) < size) {
      std::string& body = batch_.bodies.emplace_back();
      body.resize(std::max(size, piece_));
      p_ = body.data();
      end_ = p_ + body.size();
    }
    return p_;
  }
  std::string_view Keep(const char* end) {
    const std::string_view kept(p_, static_cast<size_t>(end - p_));
    p_ += kept.size();
    return kept;
  }

 private:
  model::WriteBatch& batch_;
  const size_t piece_;
  char* p_ = nullptr;
  char* end_ = nullptr;
};

}  // namespace varve::decode
