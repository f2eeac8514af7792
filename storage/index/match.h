#pragma once
// Matchers to a bitmap of series, over anything that has label values with postings: the head's index and a block file.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/cancel.h"
#include "storage/base/status.h"
#include "storage/index/bitmap.h"
#include "storage/model/matcher.h"

namespace varve::index {

// Collects postings of many values into one bitmap; short ones are gathered and added in one go.
class Union {
 public:
  void Add(uint32_t series) { loose_.push_back(series); }
  void Add(std::span<const uint32_t> ascending) { loose_.insert(loose_.end(), ascending.begin(), ascending.end()); }
  void Add(const Bitmap& bitmap) { bitmap_ |= bitmap; }
  Bitmap Take();

 private:
  std::vector<uint32_t> loose_;
  Bitmap bitmap_;
};

// Values of a name are numbered from 0; the number means nothing outside one call of Match.
class PostingsView {
 public:
  virtual ~PostingsView() = default;
  virtual Bitmap All() const = 0;
  // What the other calls take; nothing when no series has the name.
  virtual std::optional<uint32_t> FindName(std::string_view name) const = 0;
  virtual uint32_t value_count(uint32_t name) const = 0;
  virtual absl::StatusOr<std::optional<uint32_t>> FindValue(uint32_t name, std::string_view value) const = 0;
  // Numbers of the values that begin with `prefix` and for which `accept` holds, in any order.
  virtual absl::Status ScanValues(uint32_t name, std::string_view prefix,
                                  const std::function<absl::StatusOr<bool>(std::string_view)>& accept,
                                  std::vector<uint32_t>& out) const = 0;
  virtual uint64_t Count(uint32_t name, uint32_t value) const = 0;  // of series; an estimate will do
  virtual absl::Status AddPostings(uint32_t name, uint32_t value, Union& out) const = 0;
  // The series' value of the name, "" when it has none. `scratch` may be used to hold it.
  virtual absl::StatusOr<std::string_view> ValueOf(uint32_t series, uint32_t name, std::string& scratch) const = 0;
};

// Equality and sets are looked up; regular expressions run over the values of their name, or over the candidates when
// the other matchers leave fewer of those. Selective matchers first.
absl::StatusOr<Bitmap> Match(const PostingsView& view, std::span<const model::Matcher> matchers,
                             const base::Cancel* cancel);

}  // namespace varve::index
