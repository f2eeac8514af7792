#pragma once
// A series' identity: its label set.
//
// Canonical form. A label set is held as the bytes in which remote write 1.0 sends it, so that the wire span can be
// hashed and compared without being taken apart (`repeated Label labels = 1` of prometheus.TimeSeries):
//   per label: 0x0A <varint size> 0x0A <varint name size> name 0x12 <varint value size> value
// with minimal varints, labels strictly ascending by name (bytewise), no empty name, no empty value (an empty value is
// no label). Two label sets are equal exactly when these bytes are.
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/base/status.h"

namespace varve::model {

inline constexpr std::string_view kMetricName = "__name__";

struct Label {
  std::string name, value;
  auto operator<=>(const Label&) const = default;
};
struct LabelRef {  // points into the bytes that it was read from
  std::string_view name, value;
};

// Borrowed canonical bytes. Iterating trusts them: build one only from bytes that were checked (Labels, the head, ...).
class LabelsView {
 public:
  LabelsView() = default;
  explicit LabelsView(std::string_view canonical) : bytes_(canonical) {}

  class Iterator {
   public:
    explicit Iterator(const char* p) : p_(p) {}
    LabelRef operator*() const;
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return p_ == other.p_; }
    bool operator!=(const Iterator& other) const { return p_ != other.p_; }

   private:
    const char* p_;
  };
  Iterator begin() const { return Iterator(bytes_.data()); }
  Iterator end() const { return Iterator(bytes_.data() + bytes_.size()); }
  bool empty() const { return bytes_.empty(); }
  size_t count() const;
  std::string_view bytes() const { return bytes_; }
  std::string_view Get(std::string_view name) const;  // "" when absent
  std::string_view MetricName() const { return Get(kMetricName); }
  // `name{a="b",c="d"}` as Prometheus prints it; `{...}` without a name; `{}` when empty. Names that are not
  // [a-zA-Z_:][a-zA-Z0-9_:]* are quoted.
  std::string ToString() const;

 private:
  std::string_view bytes_;
};

// Owned canonical bytes.
class Labels {
 public:
  Labels() = default;
  explicit Labels(LabelsView view) : bytes_(view.bytes()) {}
  // Sorts; drops labels with an empty value. The names must be distinct and not empty (checked).
  static Labels FromPairs(std::vector<Label> labels);
  static Labels Of(std::initializer_list<std::pair<std::string_view, std::string_view>> labels);
  // Bytes from outside in wire form: any order, empty values allowed, other fields inside a Label skipped.
  // InvalidArgument names what is wrong: malformed bytes, an empty name, or a name that occurs twice.
  static absl::StatusOr<Labels> FromWire(std::string_view wire);

  LabelsView view() const { return LabelsView(bytes_); }
  operator LabelsView() const { return view(); }  // NOLINT: a Labels is usable wherever it is only looked at
  std::string_view bytes() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }
  LabelsView::Iterator begin() const { return view().begin(); }
  LabelsView::Iterator end() const { return view().end(); }
  std::string_view Get(std::string_view name) const { return view().Get(name); }
  std::string ToString() const { return view().ToString(); }
  std::vector<Label> ToPairs() const;

  bool operator==(const Labels& other) const { return bytes_ == other.bytes_; }
  // Order of label sets: pair by pair, name then value, bytewise; a proper prefix sorts first.
  std::strong_ordering operator<=>(const Labels& other) const;
  template <class H>
  friend H AbslHashValue(H h, const Labels& l) {
    return H::combine(std::move(h), std::string_view(l.bytes_));
  }

 private:
  friend class LabelsBuilder;
  std::string bytes_;
};
std::strong_ordering Compare(LabelsView a, LabelsView b);

// Appends labels in ascending name order (checked), one after the other.
class LabelsBuilder {
 public:
  void Append(std::string_view name, std::string_view value);  // an empty value appends nothing
  Labels Build() &&;
  void Clear();

 private:
  Labels labels_;
  std::string last_name_;
};

// The same labels without / with only the named ones. `names` need not be sorted.
Labels Without(LabelsView labels, std::span<const std::string> names);
Labels Keep(LabelsView labels, std::span<const std::string> names);
// The same labels with `name` set to `value` (removed when empty).
Labels With(LabelsView labels, std::string_view name, std::string_view value);

// True for [a-zA-Z_:][a-zA-Z0-9_:]* respectively [a-zA-Z_][a-zA-Z0-9_]*.
bool IsClassicMetricName(std::string_view name);
bool IsClassicLabelName(std::string_view name);

// Whether bytes from outside are canonical already. Cheaper than FromWire: no allocation, one pass.
bool IsCanonical(std::string_view wire);

// 128 bits that stand for a label set within one tenant: XXH3-128 of the canonical bytes with a secret seed drawn once
// per data directory. Equal hashes are taken for equal label sets: among 10^9 series the chance that any two collide is
// below 10^-20, and who does not know the seed cannot search for a pair.
struct SeriesHash {
  uint64_t low = 0, high = 0;
  auto operator<=>(const SeriesHash&) const = default;
  template <class H>
  friend H AbslHashValue(H h, SeriesHash s) {
    return H::combine(std::move(h), s.low);
  }
};
SeriesHash HashLabels(std::string_view canonical, uint64_t seed);

}  // namespace varve::model
