#pragma once
// Numbers by pair id, for the pairs of one request: an array when the request touches a good part of all pairs, else a
// hash map, since clearing an array for a million pairs takes longer than most requests.
#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <vector>

namespace varve::index {

class PairMap {
 public:
  // Ids are below `end`; about `expected` different ones will be set.
  PairMap(uint64_t end, uint64_t expected) : dense_(expected * 16 >= end ? end : 0) {}
  // 0 until it is set.
  uint32_t& operator[](uint32_t pair) { return dense_.empty() ? sparse_[pair] : dense_[pair]; }

 private:
  std::vector<uint32_t> dense_;
  absl::flat_hash_map<uint32_t, uint32_t> sparse_;
};

}  // namespace varve::index
