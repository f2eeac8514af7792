#pragma once
#include <memory>

#include "storage/base/status.h"
#include "storage/block/file.h"
#include "storage/model/series_source.h"

namespace varve::block {

// The series that match and have a chunk in the range; samples are decoded as they are asked for. Holds the file.
// Series whose samples lie in the same columns get the same TimeColumn.
absl::StatusOr<std::unique_ptr<model::HashedSelection>> SelectFrom(std::shared_ptr<const File> file,
                                                                   const model::SelectRequest& request);

// Chunks of a series that overlap the range; DataLoss when they are not in time order.
absl::Status ChunksInRange(const File& file, const std::vector<File::Chunk>& chunks, const model::TimeRange& range,
                           std::vector<File::Chunk>& out);

}  // namespace varve::block
