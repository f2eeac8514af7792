#pragma once
// Reading the protobuf wire format by hand. Every read checks bounds; the first fault stops everything and is
// remembered with its place and field.
#include <cstdint>
#include <cstring>
#include <string_view>

namespace varve::decode {

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kGroupBegin = 3, kGroupEnd = 4, kFixed32 = 5 };
constexpr uint32_t Tag(uint32_t field, WireType type) { return field << 3 | type; }

struct Fault {
  const char* at = nullptr;
  std::string_view what;
  std::string_view field;  // e.g. "timeseries.samples"
};

class Wire {
 public:
  Wire(std::string_view bytes, std::string_view field, Fault& fault)
      : p_(bytes.data()), end_(p_ + bytes.size()), field_(field), fault_(&fault) {}

  bool AtEnd() const { return p_ == end_; }
  const char* position() const { return p_; }
  size_t left() const { return static_cast<size_t>(end_ - p_); }

  [[nodiscard]] bool Varint(uint64_t& v) {
    if (p_ != end_ && static_cast<uint8_t>(*p_) < 0x80) [[likely]] {
      v = static_cast<uint8_t>(*p_++);
      return true;
    }
    return LongVarint(v);
  }
  [[nodiscard]] bool NextTag(uint32_t& tag) {
    uint64_t v = 0;
    const char* at = p_;
    if (!Varint(v)) return false;
    if (v > UINT32_MAX || v < 8) return Fail(at, "not a field tag");
    tag = static_cast<uint32_t>(v);
    return true;
  }
  template <class T>
  [[nodiscard]] bool Fixed(T& v) {  // 4 or 8 bytes, or a double
    if (left() < sizeof(T)) return Fail(p_, "cut short");
    std::memcpy(&v, p_, sizeof(T));
    p_ += sizeof(T);
    return true;
  }
  [[nodiscard]] bool Bytes(std::string_view& bytes) {
    const char* at = p_;
    uint64_t size = 0;
    if (!Varint(size)) return false;
    if (size > left()) return Fail(at, "length runs past the end");
    bytes = {p_, static_cast<size_t>(size)};
    p_ += size;
    return true;
  }
  // Passes over the content of a field that nobody wants.
  [[nodiscard]] bool Skip(uint32_t tag) { return SkipNested(tag, 0); }
  bool Fail(const char* at, std::string_view what) {
    if (fault_->at == nullptr) *fault_ = {at, what, field_};
    return false;
  }
  bool Fail(std::string_view what) { return Fail(p_, what); }
  Wire Inside(std::string_view bytes, std::string_view field) const { return Wire(bytes, field, *fault_); }

 private:
  bool LongVarint(uint64_t& v);
  bool SkipNested(uint32_t tag, int depth);

  const char* p_;
  const char* end_;
  std::string_view field_;
  Fault* fault_;
};

}  // namespace varve::decode
