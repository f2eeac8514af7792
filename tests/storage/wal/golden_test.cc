// The bytes of version 1. When this fails, the format has changed: raise kSegmentVersion, keep reading the old golden
// file, and add a new one.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "storage/fs/posix_fs.h"
#include "storage/model/sample.h"
#include "tests/storage/wal/log_fixture.h"

namespace varve::test {
namespace {

constexpr char kGoldenFile[] = "tests/storage/wal/golden/v1.wal";

std::string OneOfEach() {
  wal::RecordBuilder builder;
  builder.Begin();
  builder.AddTenant(3, "team-a");
  builder.AddSeries(3, 1000, {1, 2}, model::Labels::Of({{"__name__", "up"}, {"instance", "a:9100"}, {"job", "node"}}));
  builder.AddSeries(3, 1001, {3, 4}, model::Labels::Of({{"__name__", "up"}, {"instance", "b:9100"}, {"job", "node"}}));
  const std::vector<uint64_t> series = {1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1000, 70000};
  const std::vector<int64_t> times = {5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 6000, 5500};
  const std::vector<double> values = {1, -0.0, 1e300, model::StaleNan(), 0.1, 5, 6, 7, 8, 9, -10};
  builder.AddFloats(3, series, times, values);
  builder.AddFloats(3, {series.data() + 9, 2}, {times.data() + 9, 2}, {values.data() + 9, 2},
                    std::vector<int64_t>{0, 4000});
  builder.AddHistogram(3, 1001, 7000, 6500, "stands for a histogram");
  builder.AddExemplar(3, 1000, {model::Labels::Of({{"trace_id", "beef"}}), 0.25, 5001});
  builder.AddMetadata(3, {"up", model::MetricType::kGauge, "1 when the target answers.", ""});
  builder.AddForget(3, 1001);
  return wal::SegmentHeader(1) + std::string(builder.Finish());
}

TEST_CASE("the bytes of a segment are those of the golden file") {
  fs::PosixFileSystem fs;
  if (std::getenv("VARVE_WRITE_GOLDEN") != nullptr) {
    REQUIRE(fs::WriteWhole(fs, kGoldenFile, OneOfEach()).ok());
  }
  const auto golden = fs.ReadAll(kGoldenFile);
  REQUIRE(golden.ok());
  CHECK(OneOfEach() == *golden);
}

TEST_CASE("the golden file reads") {
  fs::PosixFileSystem real;
  const auto golden = real.ReadAll(kGoldenFile);
  REQUIRE(golden.ok());
  MemFs fs;
  fs.Overwrite(SegmentPath(1), *golden);
  auto reader = wal::Reader::Open(fs, kFolder, {}, "");
  REQUIRE(reader.ok());
  std::string text;
  wal::Record record;
  while ((*reader)->Next(&record)) text += wal::DebugString(record.type, record.payload);
  CHECK((*reader)->report().damages.empty());
  CHECK_FALSE((*reader)->report().torn);
  CHECK(text == R"(tenant type=1 bytes=8 tenant=3
  name="team-a"
series type=2 bytes=95 tenant=3
  series=1000 hash=2:1 up{instance="a:9100", job="node"}
  series=1001 hash=4:3 up{instance="b:9100", job="node"}
floats type=3 bytes=113 tenant=3
  series=1000 t=5000 v=1
  series=1001 t=5000 v=-0
  series=1002 t=5000 v=1e+300
  series=1003 t=5000 v=nan
  series=1004 t=5000 v=0.1
  series=1005 t=5000 v=5
  series=1006 t=5000 v=6
  series=1007 t=5000 v=7
  series=1008 t=5000 v=8
  series=1000 t=6000 v=9
  series=70000 t=5500 v=-10
floats type=3 bytes=31 tenant=3
  series=1000 t=6000 v=9
  series=70000 t=5500 start=4000 v=-10
histograms type=4 bytes=31 tenant=3
  series=1001 t=7000 start=6500 histogram of 22 bytes
exemplars type=5 bytes=33 tenant=3
  series=1000 t=5001 v=0.25 {trace_id="beef"}
metadata type=6 bytes=34 tenant=3
  metric="up" type=gauge help="1 when the target answers." unit=""
forget type=7 bytes=4 tenant=3
  series=1001
)");
}

}  // namespace
}  // namespace varve::test
