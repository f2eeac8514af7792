#pragma once
// Random remote write messages, and what a decoder must make of them according to libprotobuf.
#include <string>
#include <vector>

#include "storage/base/dice.h"
#include "storage/model/write_batch.h"

namespace prometheus {
class WriteRequest;
}
namespace io::prometheus::write::v2 {
class Request;
}
namespace google::protobuf {
class Message;
}

namespace varve::decode {

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
