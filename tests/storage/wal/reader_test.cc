#include "storage/wal/reader.h"

#include <algorithm>

#include "storage/base/bytes.h"
#include "storage/base/dice.h"
#include "tests/storage/wal/log_fixture.h"

namespace varve::test {
namespace {

// Three segments with records 0..9, 10..19, 20..29.
void WriteThree(MemFs& fs) {
  LogWorld world;
  auto log = world.Open(fs);
  for (uint32_t i = 0; i < 30; ++i) {
    if (i > 0 && i % 10 == 0) log->Rotate();
    REQUIRE(log->Write(Numbered(i, 50 + i)).ok());
  }
}
std::vector<uint32_t> Without(std::vector<uint32_t> gone) {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < 30; ++i) {
    if (std::find(gone.begin(), gone.end(), i) == gone.end()) out.push_back(i);
  }
  return out;
}
void Flip(MemFs& fs, uint64_t segment, uint64_t offset, char with = 0x20) {
  std::string bytes = fs.Bytes(SegmentPath(segment));
  bytes.at(offset) = static_cast<char>(bytes.at(offset) ^ with);
  fs.Overwrite(SegmentPath(segment), bytes);
}

TEST_CASE("a folder that does not exist is an empty log") {
  MemFs fs;
  CHECK(ReadBack(fs).numbers.empty());
}

TEST_CASE("a flipped byte anywhere in a record loses that record and no other") {
  MemFs whole;
  WriteThree(whole);
  const ReadBackResult good = ReadBack(whole);
  for (const uint32_t victim : {0u, 4u, 9u, 15u, 22u}) {
    const uint64_t begin = good.begins[victim].offset;
    const uint64_t size = wal::kRecordHeaderBytes + 2 + 50 + victim;
    for (uint64_t offset = begin; offset < begin + size; ++offset) {
      CAPTURE(victim, offset - begin);
      MemFs fs;
      WriteThree(fs);
      Flip(fs, good.begins[victim].segment, offset);
      const std::string damaged = fs.Bytes(SegmentPath(good.begins[victim].segment)).substr(begin, size);
      const ReadBackResult read = ReadBack(fs, {}, kQuarantine);
      CHECK(read.numbers == Without({victim}));
      REQUIRE(read.report.damages.size() == 1);
      const wal::Damage& damage = read.report.damages[0];
      CHECK(damage.segment == good.begins[victim].segment);
      CHECK(damage.offset == begin);
      CHECK(damage.bytes == size);
      CHECK_FALSE(damage.reason.empty());
      CHECK(fs.Bytes(damage.quarantined_to) == damaged);
      CHECK_FALSE(read.report.torn);
      CHECK(read.report.DebugString().find(damage.reason) != std::string::npos);
    }
  }
}

TEST_CASE("a last segment cut at any byte is a torn tail and not damage") {
  MemFs whole;
  WriteThree(whole);
  const ReadBackResult good = ReadBack(whole);
  const std::string bytes = whole.Bytes(SegmentPath(3));
  for (size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    MemFs fs;
    WriteThree(fs);
    fs.Overwrite(SegmentPath(3), bytes.substr(0, size));
    const ReadBackResult read = ReadBack(fs, {}, kQuarantine);
    uint32_t expected = 20;
    uint64_t end = 0;
    while (expected < 30 &&
           (end = good.begins[expected].offset + wal::kRecordHeaderBytes + 2 + 50 + expected) <= size) {
      ++expected;
    }
    CHECK(read.numbers.size() == expected);
    CHECK(read.report.damages.empty());
    const bool at_boundary = size >= wal::kSegmentHeaderBytes &&
                             size == (expected == 20 ? wal::kSegmentHeaderBytes : good.begins[expected].offset);
    CHECK(read.report.torn.has_value() != at_boundary);
    REQUIRE(wal::CutTornTail(fs, kFolder, read.report).ok());
    const ReadBackResult again = ReadBack(fs);
    CHECK(again.numbers == read.numbers);
    CHECK_FALSE(again.report.torn);
  }
}

TEST_CASE("a segment cut short in the middle of the log is reported and the next one is read") {
  MemFs whole;
  WriteThree(whole);
  const std::string bytes = whole.Bytes(SegmentPath(2));
  for (size_t size = 0; size < bytes.size(); size += 7) {
    CAPTURE(size);
    MemFs fs;
    WriteThree(fs);
    fs.Overwrite(SegmentPath(2), bytes.substr(0, size));
    const ReadBackResult read = ReadBack(fs);
    CHECK(std::vector<uint32_t>(read.numbers.end() - 10, read.numbers.end()) ==
          std::vector<uint32_t>{20, 21, 22, 23, 24, 25, 26, 27, 28, 29});
    CHECK(read.numbers.size() >= 20);
    CHECK_FALSE(read.report.torn);
    CHECK(read.report.damages.size() <= 1);
    if (size < wal::kSegmentHeaderBytes) CHECK(read.report.damages.size() == 1);
  }
}

TEST_CASE("a segment that is missing or cannot be opened is reported") {
  MemFs fs;
  WriteThree(fs);
  REQUIRE(fs.Remove(SegmentPath(2)).ok());
  ReadBackResult read = ReadBack(fs);
  CHECK(read.numbers.size() == 20);
  REQUIRE(read.report.damages.size() == 1);
  CHECK(read.report.damages[0].segment == 2);
  CHECK(read.report.damages[0].reason.find("missing") != std::string::npos);

  read = ReadBack(fs, {2, 24});  // also when it is the first that is asked for
  CHECK(read.numbers.size() == 10);
  CHECK(read.report.damages.size() == 1);
}

TEST_CASE("a damaged segment header costs no record") {
  for (const uint64_t offset : {0u, 8u, 12u, 16u, 23u}) {
    for (const char flip : {char{1}, static_cast<char>(0x80)}) {
      if (offset == 8 && flip == 1) continue;  // version 0: damage as well, but see the next test for versions
      CAPTURE(offset);
      MemFs fs;
      WriteThree(fs);
      Flip(fs, 2, offset, flip);
      const ReadBackResult read = ReadBack(fs);
      CHECK(read.numbers == Without({}));
      REQUIRE(read.report.damages.size() == 1);
      CHECK(read.report.damages[0].bytes == wal::kSegmentHeaderBytes);
    }
  }
}

TEST_CASE("cutting the tail never takes a record that was read") {
  // A record stands where the header should be, so that the torn part begins before where a header would end.
  MemFs fs;
  fs.Overwrite(SegmentPath(1), "x" + Numbered(5) + std::string(wal::kRecordMarker));
  const ReadBackResult read = ReadBack(fs);
  CHECK(read.numbers == std::vector<uint32_t>{5});
  REQUIRE(read.report.torn);
  CHECK(read.report.torn->offset < wal::kSegmentHeaderBytes);
  REQUIRE(wal::CutTornTail(fs, kFolder, read.report).ok());
  CHECK(ReadBack(fs).numbers == std::vector<uint32_t>{5});
}

TEST_CASE("a segment of a later version is left alone") {
  MemFs fs;
  WriteThree(fs);
  Flip(fs, 3, 8, 3);  // version 1 becomes 2
  const std::string before = fs.Bytes(SegmentPath(3));
  const ReadBackResult read = ReadBack(fs);
  CHECK(read.numbers.size() == 20);
  REQUIRE(read.report.damages.size() == 1);
  CHECK(read.report.damages[0].reason.find("version 2") != std::string::npos);
  REQUIRE(wal::CutTornTail(fs, kFolder, read.report).ok());
  CHECK(fs.Bytes(SegmentPath(3)) == before);
}

TEST_CASE("a record hidden in the payload of a damaged one does not come to life") {
  LogWorld world;
  MemFs fs;
  auto log = world.Open(fs);
  wal::RecordBuilder builder;
  builder.Begin();
  builder.AddTenant(1, Numbered(666));
  REQUIRE(log->Write(builder.Finish()).ok());
  REQUIRE(log->Write(Numbered(2)).ok());
  Flip(fs, 1, wal::kSegmentHeaderBytes + wal::kRecordHeaderBytes);  // in the payload
  CHECK(ReadBack(fs).numbers == std::vector<uint32_t>{2});

  // Nor when the write behind it is torn, or it is itself.
  const std::string bytes = fs.Bytes(SegmentPath(1));
  fs.Overwrite(SegmentPath(1), bytes.substr(0, bytes.size() - 1));
  CHECK(ReadBack(fs).numbers.empty());
  fs.Overwrite(SegmentPath(1), bytes.substr(0, bytes.size() - Numbered(2).size()));
  CHECK(ReadBack(fs).numbers.empty());
  wal::RecordBuilder torn;
  torn.Begin();
  torn.AddTenant(1, Numbered(666) + std::string(100, 'x'));
  const std::string whole = wal::SegmentHeader(1) + std::string(torn.Finish());
  fs.Overwrite(SegmentPath(1), whole.substr(0, whole.size() - 50));
  CHECK(ReadBack(fs).numbers.empty());
}

TEST_CASE("record types that this version does not know are handed out") {
  MemFs fs;
  const std::string payload = "from the future";
  std::string bytes = wal::SegmentHeader(1);
  bytes += wal::kRecordMarker;
  base::PutFixed<uint32_t>(bytes, static_cast<uint32_t>(payload.size()));
  base::PutFixed<uint32_t>(bytes, wal::RecordCrc(static_cast<uint32_t>(payload.size()), 200, payload));
  base::PutU8(bytes, 200);
  bytes += payload;
  fs.Overwrite(SegmentPath(1), bytes + Numbered(5));
  auto reader = wal::Reader::Open(fs, kFolder, {}, "");
  REQUIRE(reader.ok());
  wal::Record record;
  REQUIRE((*reader)->Next(&record));
  CHECK(static_cast<int>(record.type) == 200);
  CHECK(record.payload == payload);
  CHECK(wal::DebugString(record.type, record.payload).starts_with("unknown type=200"));
  REQUIRE((*reader)->Next(&record));
  CHECK_FALSE((*reader)->Next(&record));
}

TEST_CASE("bytes made to be slow to search are given up in time") {
  // Headers that overlap, each of which claims to reach to the end of the segment.
  std::string bytes = wal::SegmentHeader(1);
  const size_t size = 4u << 20u;
  while (bytes.size() < size) {
    bytes += wal::kRecordMarker;
    base::PutFixed<uint32_t>(bytes, static_cast<uint32_t>(size - bytes.size() - 9));
    base::PutFixed<uint32_t>(bytes, 0);
    base::PutU8(bytes, 1);
  }
  MemFs fs;
  fs.Overwrite(SegmentPath(1), bytes);
  fs.Overwrite(SegmentPath(2), wal::SegmentHeader(2) + Numbered(7));
  CHECK(ReadBack(fs).numbers == std::vector<uint32_t>{7});
}

TEST_CASE("a log with random damage gives every record that was not hit") {
  const uint64_t seed = GENERATE(range(1, 60));
  CAPTURE(seed);
  base::Dice dice(seed);
  MemFs fs;
  WriteThree(fs);
  const ReadBackResult good = ReadBack(fs);
  std::vector<uint32_t> hit;
  for (size_t n = 1 + dice.Below(5); n > 0; --n) {
    const auto victim = static_cast<uint32_t>(dice.Below(30));
    hit.push_back(victim);
    const uint64_t size = wal::kRecordHeaderBytes + 2 + 50 + victim;
    std::string bytes = fs.Bytes(SegmentPath(good.begins[victim].segment));
    const size_t at = dice.Below(size);
    const size_t length = 1 + dice.Below(size - at);
    for (size_t i = 0; i < length; ++i) bytes[good.begins[victim].offset + at + i] = static_cast<char>(dice.Next());
    fs.Overwrite(SegmentPath(good.begins[victim].segment), bytes);
  }
  const ReadBackResult read = ReadBack(fs);
  for (const uint32_t number : Without(hit)) {
    CAPTURE(number);
    CHECK(std::find(read.numbers.begin(), read.numbers.end(), number) != read.numbers.end());
  }
  CHECK(std::is_sorted(read.numbers.begin(), read.numbers.end()));
}

}  // namespace
}  // namespace varve::test
