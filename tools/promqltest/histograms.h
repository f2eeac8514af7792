#pragma once
// Native histograms in the plainest form, index to count, and their arithmetic written from its definition. Scripts are
// expanded and results compared with it, so that the engine's own arithmetic is not judged by itself.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "storage/base/status.h"
#include "storage/model/histogram.h"

namespace varve::promqltest {

using Buckets = std::map<int32_t, double>;  // by bucket index; a listed bucket may be empty
Buckets ToBuckets(const std::vector<model::Span>& spans, const std::vector<double>& counts);

// a + b, or a - b, with the lower schema, the wider zero bucket, the common custom bounds, and the hint that the rules
// of addition give (a difference is a gauge). InvalidArgument when one has custom buckets and the other has not.
absl::StatusOr<model::Histogram> Combine(const model::Histogram& a, const model::Histogram& b, double sign);

// True when `next` cannot follow `previous` in one chunk of counter histograms.
bool StartsChunk(const model::Histogram& previous, const model::Histogram& next);

// Scripts' own idea of equality: the same up to a relative difference of 1e-6 of the sum of magnitudes.
bool AlmostEqual(double a, double b);
enum class CompareHints { kNo, kYes };
bool AlmostEqual(const model::Histogram& a, const model::Histogram& b, CompareHints hints);

// As a literal of the script language.
std::string ToString(const model::Histogram& histogram);

}  // namespace varve::promqltest
