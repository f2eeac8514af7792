#include "storage/base/metrics.h"

#include <catch2/catch.hpp>
#include <limits>

namespace varve::base {
namespace {

TEST_CASE("the metrics page is sorted and in the text format") {
  Registry registry;
  registry.AddGauge("varve_b_bytes", "Bytes.").Set(1.5);
  registry.AddCounter("varve_a_total", "Things.", {{"kind", "x\"\\\n"}}).Add(3);
  registry.AddCounter("varve_a_total", "Things.", {{"kind", "a"}, {"zone", "z"}}).Add();
  registry.AddGaugeFunction("varve_c_seconds", "Age.", {}, [] { return std::numeric_limits<double>::infinity(); });
  CHECK(registry.Exposition() ==
        "# HELP varve_a_total Things.\n# TYPE varve_a_total counter\n"
        "varve_a_total{kind=\"a\",zone=\"z\"} 1\n"
        "varve_a_total{kind=\"x\\\"\\\\\\n\"} 3\n"
        "# HELP varve_b_bytes Bytes.\n# TYPE varve_b_bytes gauge\nvarve_b_bytes 1.5\n"
        "# HELP varve_c_seconds Age.\n# TYPE varve_c_seconds gauge\nvarve_c_seconds +Inf\n");
  const auto families = registry.Families();
  REQUIRE(families.size() == 3);
  CHECK(families[0].name == "varve_a_total");
  CHECK(families[0].type == "counter");
  CHECK(families[2].help == "Age.");
}

TEST_CASE("histogram buckets are cumulative and bounds belong to them") {
  Registry registry;
  Histogram& histogram = registry.AddHistogram("varve_h_seconds", "H.", {0.5, 1}, {{"op", "r"}});
  for (const double v : {0.1, 0.5, 0.75, 1.0, 7.0}) histogram.Observe(v);
  CHECK(registry.Exposition() ==
        "# HELP varve_h_seconds H.\n# TYPE varve_h_seconds histogram\n"
        "varve_h_seconds_bucket{op=\"r\",le=\"0.5\"} 2\n"
        "varve_h_seconds_bucket{op=\"r\",le=\"1\"} 4\n"
        "varve_h_seconds_bucket{op=\"r\",le=\"+Inf\"} 5\n"
        "varve_h_seconds_sum{op=\"r\"} 9.35\n"
        "varve_h_seconds_count{op=\"r\"} 5\n");
}

TEST_CASE("asking twice gives the same metric") {
  Registry registry;
  Counter& first = registry.AddCounter("varve_x_total", "X.");
  CHECK(&registry.AddCounter("varve_x_total", "X.") == &first);
  CHECK(&registry.AddCounter("varve_x_total", "X.", {{"a", "b"}}) != &first);
  Gauge& gauge = registry.AddGauge("varve_g", "G.");
  gauge.Set(2);
  gauge.Add(-0.5);
  CHECK(registry.AddGauge("varve_g", "G.").value() == 1.5);
  Histogram& histogram = registry.AddHistogram("varve_h", "H.", {1});
  CHECK(&registry.AddHistogram("varve_h", "H.", {1}) == &histogram);
}

}  // namespace
}  // namespace varve::base
