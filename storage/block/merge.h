#pragma once
// Several selections of one tenant (heads, blocks) as one.
#include <memory>
#include <vector>

#include "storage/base/cancel.h"
#include "storage/base/status.h"
#include "storage/model/series_source.h"

namespace varve::block {

// Sorted by label set; equal hashes are one series. Samples are merged by time; of several at one time the first
// source's wins, so pass the freshest first. When one source alone has the series its columns pass through untouched;
// else series whose inputs share their time columns share the merged one. All sources must have been selected with the
// same range. ResourceExhausted when more than `series_max` series remain.
absl::StatusOr<std::unique_ptr<model::HashedSelection>> Merge(
    std::vector<std::unique_ptr<model::HashedSelection>> freshest_first, uint64_t series_max = UINT64_MAX,
    const base::Cancel* cancel = nullptr);

}  // namespace varve::block
