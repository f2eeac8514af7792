#pragma once
// The samples of a chunk to bytes and back; its times are in a column of their own.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "storage/base/status.h"
#include "storage/model/series_source.h"

namespace varve::block {

// Samples [begin, end) of `samples`.
void EncodeChunk(const model::SampleColumns& samples, size_t begin, size_t end, std::string& out);

// Appends samples [begin, end) of the chunk to the columns behind the times, which the caller sets. `times` are the
// whole column's; they may be empty unless ChunkNeedsTimes.
absl::Status DecodeChunk(std::string_view bytes, std::span<const int64_t> times, size_t count, size_t begin, size_t end,
                         model::SampleColumns& out);
bool ChunkNeedsTimes(std::string_view bytes);

}  // namespace varve::block
