// Bytes that are not as they were written: DataLoss, never a crash and never another answer.
#include "storage/base/bytes.h"
#include "storage/base/crc32c.h"
#include "tests/storage/block/repair.h"
#include "tests/storage/block/sample_data.h"

namespace varve::block {
namespace {

std::string SmallBlock(Table& table) {
  base::Dice dice(8);
  table = RandomTable(dice, 3, 6, 12, 1000, 1000);
  test::MemFs fs;
  WriteBlock(fs, "b", table, {0, 1'000'000});
  return fs.Bytes("b");
}

// Everything that a reader can be asked. OK only if all of it is.
absl::Status ReadAll(const std::string& bytes, const Table* table) {
  ASSIGN_OR_RETURN(const auto reader, Reader::OpenBytes(bytes, "name.block"));
  RETURN_IF_ERROR(reader->Verify());
  ASSIGN_OR_RETURN(const auto selection, reader->SelectHashed({}));
  model::SampleColumns samples;
  for (size_t i = 0; i < selection->size(); ++i) {
    RETURN_IF_ERROR(selection->Read(i, &samples));
    if (table != nullptr) RequireSame(samples, table->at(selection->labels(i)), model::TimeRange::All());
  }
  RETURN_IF_ERROR(reader->LabelNames({}).status());
  RETURN_IF_ERROR(reader->LabelValues("instance", {}).status());
  return reader->Stats(10).status();
}

TEST_CASE("any flipped byte is noticed", "[block][corrupt]") {
  Table table;
  const std::string good = SmallBlock(table);
  REQUIRE(ReadAll(good, &table).ok());
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    const absl::Status status = ReadAll(bad, nullptr);
    if (status.code() != absl::StatusCode::kDataLoss || base::Message(status).find("name.block at ") != 0) {
      FAIL("byte " << i << ": " << status);
    }
  }
}

TEST_CASE("a file cut short is noticed", "[block][corrupt]") {
  Table table;
  const std::string good = SmallBlock(table);
  for (size_t size = 0; size < good.size(); ++size) {
    if (Reader::OpenBytes(good.substr(0, size), "b").status().code() != absl::StatusCode::kDataLoss)
      FAIL("at " << size);
  }
  CHECK(Reader::OpenBytes(good + "x", "b").status().code() == absl::StatusCode::kDataLoss);
}

TEST_CASE("opening does not read chunks, reading one finds its damage", "[block][corrupt]") {
  Table table;
  std::string bytes = SmallBlock(table);
  bytes[40] = static_cast<char>(bytes[40] ^ 1);
  const auto reader = Reader::OpenBytes(bytes, "b");
  REQUIRE(reader.ok());
  const auto selection = (*reader)->SelectHashed({});
  REQUIRE(selection.ok());
  int bad = 0;
  model::SampleColumns samples;
  for (size_t i = 0; i < (*selection)->size(); ++i) bad += (*selection)->Read(i, &samples).ok() ? 0 : 1;
  CHECK(bad > 0);
}

// Checksums keep accidents out; these bytes lie with checksums that are right.
TEST_CASE("a file that lies with good checksums does no harm", "[block][corrupt]") {
  Table table;
  const std::string good = SmallBlock(table);
  const uint64_t seed = GENERATE(1u, 2u, 3u);
  CAPTURE(seed);
  base::Dice dice(seed);
  for (int round = 0; round < 3000; ++round) {
    std::string bad = good;
    for (uint64_t n = 1 + dice.Below(3); n > 0; --n) bad[dice.Below(bad.size())] = static_cast<char>(dice.Next());
    RepairChecksums(bad);
    const absl::Status status = ReadAll(bad, nullptr);
    if (!status.ok() && status.code() != absl::StatusCode::kDataLoss) FAIL("round " << round << ": " << status);
  }
}

}  // namespace
}  // namespace varve::block
