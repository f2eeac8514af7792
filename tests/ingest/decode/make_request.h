#pragma once
// Random remote write messages, and what a decoder must make of them according to libprotobuf.
#include <bit>
#include <string>
#include <vector>

#include "proto/prom_write_v1.pb.h"
#include "proto/prom_write_v2.pb.h"
#include "storage/base/dice.h"
#include "storage/model/write_batch.h"

namespace varve::decode {

inline std::string RandomWord(base::Dice& dice, size_t most) {
  static constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_0123456789";
  std::string out;
  for (size_t n = 1 + dice.Below(most); n > 0; --n) out += kLetters[dice.Below(dice.OneIn(2) ? 26 : kLetters.size())];
  return out;
}

inline double RandomValue(base::Dice& dice) {
  switch (dice.Below(8)) {
    case 0:
      return 0;
    case 1:
      return model::StaleNan();
    case 2:
      return model::NormalNan();
    case 3:
      return -0.0;
    case 4:
      return std::bit_cast<double>(dice.Next());
    default:
      return static_cast<double>(dice.Between(-1000000, 1000000)) / 100;
  }
}
inline int64_t RandomTime(base::Dice& dice) {
  return dice.OneIn(10) ? static_cast<int64_t>(dice.Next()) : 1'700'000'000'000 + dice.Between(0, 1'000'000);
}

template <class Histogram>
void FillHistogram(base::Dice& dice, Histogram& h) {
  const bool custom = dice.OneIn(3);
  h.set_schema(custom ? -53 : static_cast<int>(dice.Between(-4, 8)));
  h.set_sum(RandomValue(dice));
  h.set_zero_threshold(dice.OneIn(2) ? 0.001 : 0);
  h.set_timestamp(RandomTime(dice));
  h.set_reset_hint(static_cast<decltype(h.reset_hint())>(dice.Below(4)));
  const bool integer = dice.OneIn(2);
  if (integer && !dice.OneIn(5)) h.set_count_int(dice.Below(1000));
  if (!integer) h.set_count_float(RandomValue(dice));
  if (dice.OneIn(2)) {
    if (integer)
      h.set_zero_count_int(dice.Below(100));
    else
      h.set_zero_count_float(RandomValue(dice));
  }
  for (uint64_t n = dice.Below(4); n > 0; --n) {
    auto* span = h.add_positive_spans();
    span->set_offset(static_cast<int>(dice.Between(-5, 5)));
    span->set_length(static_cast<uint32_t>(dice.Below(5)));
  }
  for (uint64_t n = dice.Below(3); n > 0; --n)
    h.add_negative_spans()->set_offset(static_cast<int>(dice.Between(-5, 5)));
  for (uint64_t n = dice.Below(10); n > 0; --n) {
    if (integer)
      h.add_positive_deltas(dice.Between(-100, 100));
    else
      h.add_positive_counts(RandomValue(dice));
  }
  for (uint64_t n = dice.Below(5); n > 0; --n) {
    if (integer)
      h.add_negative_deltas(dice.Between(-100, 100));
    else
      h.add_negative_counts(RandomValue(dice));
  }
  if (custom) {
    for (uint64_t n = dice.Below(6); n > 0; --n) h.add_custom_values(RandomValue(dice));
  }
}

prometheus::WriteRequest RandomV1(base::Dice& dice);
io::prometheus::write::v2::Request RandomV2(base::Dice& dice);

// The batch that DecodeWriteV1/V2 must make of the message, hashes left out. Labels are those of the bytes
// in canonical form, or "!" when they are no label set.
struct Expected {
  struct Series {
    std::string labels;
    std::vector<int64_t> times, starts;
    std::vector<double> values;
    std::vector<model::HistogramSample> histograms;
    std::vector<model::Exemplar> exemplars;
  };
  std::vector<Series> series;
  std::vector<model::Metadata> metadata;
};
Expected Expect(const prometheus::WriteRequest& request);
Expected Expect(const io::prometheus::write::v2::Request& request);
Expected Describe(const model::WriteBatch& batch);
// "" when both say the same, else the first difference.
std::string Difference(const Expected& want, const Expected& got);

// The same message with its fields in another order (the elements of one field keep theirs), numbers packed or not, and
// unknown fields in between.
std::string Shuffled(base::Dice& dice, const google::protobuf::Message& message);

}  // namespace varve::decode
