#include "storage/model/labels.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "storage/base/bytes.h"
#include "storage/base/check.h"
#include "storage/base/strings.h"

namespace varve::model {

namespace {

constexpr char kFieldOne = 0x0A;  // field 1, length-delimited: a Label in a TimeSeries, the name in a Label
constexpr char kFieldTwo = 0x12;  // field 2, length-delimited: the value in a Label

size_t VarintSize(size_t v) {
  size_t n = 1;
  for (; v >= 0x80; v >>= 7) ++n;
  return n;
}

// Reads a varint of trusted bytes.
size_t TrustedVarint(const char*& p) {
  auto byte = static_cast<uint8_t>(*p++);
  if (byte < 0x80) [[likely]]
    return byte;
  size_t v = byte & 0x7F;
  for (int shift = 7;; shift += 7) {
    byte = static_cast<uint8_t>(*p++);
    v |= static_cast<size_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return v;
  }
}

void AppendCanonical(std::string& out, std::string_view name, std::string_view value) {
  const size_t size = 2 + VarintSize(name.size()) + name.size() + VarintSize(value.size()) + value.size();
  out += kFieldOne;
  base::PutVarint(out, size);
  out += kFieldOne;
  base::PutBytes(out, name);
  out += kFieldTwo;
  base::PutBytes(out, value);
}

// Skips one protobuf field whose tag was read. False when the bytes are malformed.
bool SkipField(base::ByteReader& in, uint64_t tag) {
  switch (tag & 7) {
    case 0:
      in.Varint();
      break;
    case 1:
      in.Fixed<uint64_t>();
      break;
    case 2:
      in.Bytes();
      break;
    case 5:
      in.Fixed<uint32_t>();
      break;
    default:
      in.Fail();
  }
  return in.ok();
}

}  // namespace

LabelRef LabelsView::Iterator::operator*() const {
  const char* p = p_ + 1;
  TrustedVarint(p);
  ++p;
  const size_t name_size = TrustedVarint(p);
  const std::string_view name(p, name_size);
  p += name_size + 1;
  const size_t value_size = TrustedVarint(p);
  return {name, std::string_view(p, value_size)};
}

LabelsView::Iterator& LabelsView::Iterator::operator++() {
  const char* p = p_ + 1;
  const size_t size = TrustedVarint(p);
  p_ = p + size;
  return *this;
}

size_t LabelsView::count() const {
  size_t n = 0;
  for (auto it = begin(); it != end(); ++it) ++n;
  return n;
}

std::string_view LabelsView::Get(std::string_view name) const {
  for (const LabelRef label : *this) {
    if (label.name == name) return label.value;
    if (label.name > name) break;
  }
  return {};
}

std::string LabelsView::ToString() const {
  std::string out;
  std::string inside;
  for (const LabelRef label : *this) {
    if (label.name == kMetricName && IsClassicMetricName(label.value)) {
      out = label.value;
      continue;
    }
    if (!inside.empty()) inside += ", ";
    if (label.name == kMetricName) {
      inside += base::QuoteGo(label.value);
      continue;
    }
    inside += IsClassicLabelName(label.name) ? std::string(label.name) : base::QuoteGo(label.name);
    base::StrAppend(inside, "=", base::QuoteGo(label.value));
  }
  if (!inside.empty() || out.empty()) base::StrAppend(out, "{", inside, "}");
  return out;
}

Labels Labels::FromPairs(std::vector<Label> labels) {
  std::sort(labels.begin(), labels.end());
  LabelsBuilder builder;
  for (const Label& label : labels) builder.Append(label.name, label.value);
  return std::move(builder).Build();
}

Labels Labels::Of(std::initializer_list<std::pair<std::string_view, std::string_view>> labels) {
  std::vector<Label> pairs;
  for (const auto& [name, value] : labels) pairs.push_back({std::string(name), std::string(value)});
  return FromPairs(std::move(pairs));
}

absl::StatusOr<Labels> Labels::FromWire(std::string_view wire) {
  std::vector<LabelRef> refs;
  base::ByteReader in(wire);
  while (!in.AtEnd()) {
    const uint64_t tag = in.Varint();
    if (tag != static_cast<uint64_t>(kFieldOne)) return absl::InvalidArgumentError("malformed label bytes");
    base::ByteReader label(in.Bytes());
    LabelRef ref;
    while (in.ok() && !label.AtEnd()) {
      const uint64_t field = label.Varint();
      if (field == static_cast<uint64_t>(kFieldOne))
        ref.name = label.Bytes();
      else if (field == static_cast<uint64_t>(kFieldTwo))
        ref.value = label.Bytes();
      else if (!SkipField(label, field))
        break;
    }
    if (!in.ok() || !label.ok()) return absl::InvalidArgumentError("malformed label bytes");
    if (ref.name.empty()) return absl::InvalidArgumentError("a label has an empty name");
    refs.push_back(ref);
  }
  std::stable_sort(refs.begin(), refs.end(), [](LabelRef a, LabelRef b) { return a.name < b.name; });
  Labels out;
  out.bytes_.reserve(wire.size());
  for (size_t i = 0; i < refs.size(); ++i) {
    if (i > 0 && refs[i].name == refs[i - 1].name) {
      return absl::InvalidArgumentError(base::StrCat("label name ", base::QuoteGo(refs[i].name), " occurs twice"));
    }
    if (!refs[i].value.empty()) AppendCanonical(out.bytes_, refs[i].name, refs[i].value);
  }
  return out;
}

std::vector<Label> Labels::ToPairs() const {
  std::vector<Label> out;
  for (const LabelRef label : *this) out.push_back({std::string(label.name), std::string(label.value)});
  return out;
}

std::strong_ordering Labels::operator<=>(const Labels& other) const { return Compare(*this, other); }

std::strong_ordering Compare(LabelsView a, LabelsView b) {
  auto i = a.begin();
  auto j = b.begin();
  for (; i != a.end() && j != b.end(); ++i, ++j) {
    const LabelRef x = *i;
    const LabelRef y = *j;
    if (const auto order = x.name <=> y.name; order != 0) return order;
    if (const auto order = x.value <=> y.value; order != 0) return order;
  }
  if (i != a.end()) return std::strong_ordering::greater;
  if (j != b.end()) return std::strong_ordering::less;
  return std::strong_ordering::equal;
}

void LabelsBuilder::Append(std::string_view name, std::string_view value) {
  VARVE_CHECK(!name.empty() && (last_name_.empty() || last_name_ < name));
  last_name_ = name;
  if (!value.empty()) AppendCanonical(labels_.bytes_, name, value);
}

Labels LabelsBuilder::Build() && {
  last_name_.clear();
  return std::move(labels_);
}

void LabelsBuilder::Clear() {
  labels_.bytes_.clear();
  last_name_.clear();
}

namespace {
bool Has(std::span<const std::string> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
}  // namespace

Labels Without(LabelsView labels, std::span<const std::string> names) {
  LabelsBuilder builder;
  for (const LabelRef label : labels) {
    if (!Has(names, label.name)) builder.Append(label.name, label.value);
  }
  return std::move(builder).Build();
}

Labels Keep(LabelsView labels, std::span<const std::string> names) {
  LabelsBuilder builder;
  for (const LabelRef label : labels) {
    if (Has(names, label.name)) builder.Append(label.name, label.value);
  }
  return std::move(builder).Build();
}

Labels With(LabelsView labels, std::string_view name, std::string_view value) {
  LabelsBuilder builder;
  bool done = false;
  for (const LabelRef label : labels) {
    if (!done && label.name >= name) {
      builder.Append(name, value);
      done = true;
    }
    if (label.name != name) builder.Append(label.name, label.value);
  }
  if (!done) builder.Append(name, value);
  return std::move(builder).Build();
}

namespace {
bool IsClassicName(std::string_view name, bool colon) {
  if (name.empty()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (colon && c == ':');
    if (!letter && !(i > 0 && c >= '0' && c <= '9')) return false;
  }
  return true;
}
}  // namespace

bool IsClassicMetricName(std::string_view name) { return IsClassicName(name, true); }
bool IsClassicLabelName(std::string_view name) { return IsClassicName(name, false); }

bool IsCanonical(std::string_view wire) {
  const char* p = wire.data();
  const char* const end = p + wire.size();
  // A length of one or two bytes in minimal form; longer labels are rare enough to go the slow way.
  const auto length = [&](size_t* v) {
    if (p == end) return false;
    *v = static_cast<uint8_t>(*p++);
    if (*v < 0x80) return true;
    if (p == end) return false;
    const auto high = static_cast<uint8_t>(*p++);
    *v = (*v & 0x7F) | static_cast<size_t>(high) << 7;
    return high < 0x80 && high > 0;
  };
  std::string_view last;
  while (p != end) {
    size_t size = 0;
    size_t name_size = 0;
    size_t value_size = 0;
    if (*p++ != kFieldOne || !length(&size) || size > static_cast<size_t>(end - p)) return false;
    const char* const label_end = p + size;
    if (p == label_end || *p++ != kFieldOne || !length(&name_size)) return false;
    if (name_size == 0 || p > label_end || name_size >= static_cast<size_t>(label_end - p)) return false;
    const std::string_view name(p, name_size);
    p += name_size;
    if (*p++ != kFieldTwo || p >= label_end || !length(&value_size)) return false;
    if (value_size == 0 || p + value_size != label_end) return false;
    p = label_end;
    if (!last.empty() && !(last < name)) return false;
    last = name;
  }
  return true;
}

SeriesHash HashLabels(std::string_view canonical, uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(canonical.data(), canonical.size(), seed);
  return {hash.low64, hash.high64};
}

}  // namespace varve::model
