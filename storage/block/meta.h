#pragma once
// What a block says of itself.
#include <cstdint>
#include <string>

#include "storage/model/time_range.h"

namespace varve::block {

struct BlockMeta {
  std::string tenant;
  uint32_t shard = 0;
  model::TimeRange range;  // every sample lies in it; what the block is responsible for
  // Filled by the writer.
  uint64_t series = 0, chunks = 0, samples = 0;
  int64_t min_time_ms = 0, max_time_ms = 0;  // of the samples; both 0 when there are none
  uint64_t file_bytes = 0;
};

}  // namespace varve::block
