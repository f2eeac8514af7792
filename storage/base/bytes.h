#pragma once
// Little-endian integers and LEB128 varints over byte strings. The reader never reads past its end: once it would, it
// turns bad for good and returns zeros, so that a decoder checks ok() once per record and not once per field.
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace varve::base {

inline void PutU8(std::string& out, uint8_t v) { out.push_back(static_cast<char>(v)); }
template <class T>
void PutFixed(std::string& out, T v) {  // 1, 2, 4 or 8 bytes, or a double
  char raw[sizeof(T)];
  std::memcpy(raw, &v, sizeof(T));
  out.append(raw, sizeof(T));
}
inline void PutVarint(std::string& out, uint64_t v) {
  while (v >= 0x80) {
    out.push_back(static_cast<char>(v | 0x80));
    v >>= 7;
  }
  out.push_back(static_cast<char>(v));
}
constexpr uint64_t ZigZag(int64_t v) { return (static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63); }
constexpr int64_t UnZigZag(uint64_t v) { return static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1); }
inline void PutSigned(std::string& out, int64_t v) { PutVarint(out, ZigZag(v)); }
inline void PutBytes(std::string& out, std::string_view bytes) {  // varint length, then the bytes
  PutVarint(out, bytes.size());
  out.append(bytes);
}

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : p_(bytes.data()), end_(p_ + bytes.size()) {}
  bool ok() const { return ok_; }
  bool AtEnd() const { return p_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - p_); }
  const char* position() const { return p_; }

  uint8_t U8() { return Fixed<uint8_t>(); }
  template <class T>
  T Fixed() {
    if (left() < sizeof(T)) return Fail(), T{};
    T v;
    std::memcpy(&v, p_, sizeof(T));
    p_ += sizeof(T);
    return v;
  }
  uint64_t Varint() {  // at most 10 bytes and 64 bits
    uint64_t v = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (p_ == end_) return Fail(), 0;
      const auto byte = static_cast<uint8_t>(*p_++);
      if (shift == 63 && byte > 1) return Fail(), 0;
      v |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return v;
    }
    return Fail(), 0;
  }
  int64_t Signed() { return UnZigZag(Varint()); }
  std::string_view Take(size_t n) {
    if (left() < n) return Fail(), std::string_view{};
    std::string_view bytes(p_, n);
    p_ += n;
    return bytes;
  }
  std::string_view Bytes() { return Take(Varint()); }
  void Fail() { ok_ = false, p_ = end_; }

 private:
  const char* p_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace varve::base
