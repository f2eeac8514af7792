#pragma once
// The newest exemplars of a tenant's shard.
#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "storage/model/write_batch.h"

namespace varve::head {

// Keeps the last `max` in the order of their arrival. One thread.
class ExemplarRing {
 public:
  struct Item {
    uint64_t series = 0;
    model::Exemplar exemplar;
  };
  enum class Verdict { kNew, kRepeated, kOutOfOrder };

  // What Add would make of it: per series, times do not go back, and the last one sent again is not a new one.
  Verdict Judge(uint64_t series, const model::Exemplar& exemplar) const;
  void Add(uint64_t series, model::Exemplar exemplar, uint64_t max);
  const std::deque<Item>& items() const { return items_; }  // oldest first
  size_t bytes() const { return bytes_; }

 private:
  std::deque<Item> items_;
  uint64_t dropped_ = 0;                            // number of the first item
  absl::flat_hash_map<uint64_t, uint64_t> newest_;  // series to the number of its newest item
  size_t bytes_ = 0;
};

// Remote write allows at most so many characters in an exemplar's labels, names and values together.
inline constexpr size_t kExemplarCharactersMax = 128;
size_t LabelCharacters(model::LabelsView labels);

}  // namespace varve::head
