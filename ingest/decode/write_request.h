#pragma once
// Remote write messages, one pass over the protobuf wire format, no objects in between.
//
// Both functions append to `batch`, whose views then point into `message` and into strings that they add to
// batch.bodies: the message must live as long as the batch. The usual way is to keep it there as well:
//   batch.bodies.emplace_back();
//   RETURN_IF_ERROR(Uncompress(encoding, body, bytes_max, batch.bodies.back()));
//   RETURN_IF_ERROR(DecodeWriteV1(batch.bodies.back(), seed, batch));
// Any thread. InvalidArgument, with byte offset and field, when the bytes are no such message or hold more than the
// limits below; then the batch is half filled and fit for Clear() only. What is wrong with a single series or exemplar
// is left out and told in batch.refused.
#include <cstdint>
#include <string_view>

#include "storage/base/status.h"
#include "storage/model/write_batch.h"

namespace varve::decode {

// Bounds on what one message may grow into. A message is at most some 32 MiB, but two bytes of it can become an object
// of hundreds; senders put 2,000 samples into a request, and these are far above that.
inline constexpr size_t kSeriesMax = 500'000;
inline constexpr size_t kSamplesMax = 5'000'000;
inline constexpr size_t kHistogramsMax = 100'000;
inline constexpr size_t kExemplarsMax = 100'000;
inline constexpr size_t kMetadataMax = 100'000;
inline constexpr size_t kSymbolsMax = 2'000'000;
inline constexpr size_t kLabelsPerSeriesMax = 10'000;           // 2.0; the tenant's limit is judged later
inline constexpr size_t kExpandedBytesMax = size_t{128} << 20;  // 2.0: symbols written out

// prometheus.WriteRequest. A series' labels stay the sender's bytes, hashed as they are (HashLabels with `hash_seed`).
absl::Status DecodeWriteV1(std::string_view message, uint64_t hash_seed, model::WriteBatch& batch);
// io.prometheus.write.v2.Request. Labels are written out from the symbols in canonical form.
absl::Status DecodeWriteV2(std::string_view message, uint64_t hash_seed, model::WriteBatch& batch);

}  // namespace varve::decode
