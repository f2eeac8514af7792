#include "tools/promqltest/sequence.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "storage/base/float_text.h"
#include "storage/base/strings.h"
#include "tools/promqltest/histograms.h"

namespace varve::promqltest {
namespace {

std::string Values(std::string_view text) {
  const auto line = ParseSeriesLine(text);
  if (!line.ok()) return "error: " + std::string(base::Message(line.status()));
  std::string out = line->labels.ToString();
  for (const SequenceValue& value : line->values) {
    out += " ";
    if (value.omitted) {
      out += "_";
    } else if (value.histogram != nullptr) {
      out += ToString(*value.histogram);
    } else {
      out += value.IsStale() ? "stale" : base::FloatGeneral(value.value);
    }
  }
  return out;
}

TEST_CASE("float sequences expand") {
  CHECK(Values("m 1 2 -3.5e2") == "m 1 2 -350");
  CHECK(Values("m 1x2") == "m 1 1 1");
  CHECK(Values("m 0+10x3") == "m 0 10 20 30");
  CHECK(Values("m 5-2x2 _ stale 1") == "m 5 3 1 _ stale 1");
  CHECK(Values("m _x3 7") == "m _ _ _ 7");
  CHECK(Values("m 0x2 010 1_000") == "m 0 0 0 8 1000");
  CHECK(Values("m Inf -inf NaN +1") == "m +Inf -Inf NaN 1");
  CHECK(Values("m 1e-3+1e-3x1") == "m 0.001 0.002");
  CHECK(Values("m") == "m");
}

TEST_CASE("a running value is added up and not multiplied out") {
  const auto line = ParseSeriesLine("m 0+0.1x10");
  REQUIRE(line.ok());
  double sum = 0;
  for (int i = 0; i < 10; ++i) sum += 0.1;
  CHECK(line->values[10].value == sum);
  CHECK(sum != 1.0);
}

TEST_CASE("series are named in every way that PromQL has") {
  CHECK(Values("{} 1") == "{} 1");
  CHECK(Values(R"(a:b{x="1", y='2\'', z=`\n`,} 1)") == "a:b{x=\"1\", y=\"2'\", z=\"\\\\n\"} 1");
  CHECK(Values(R"({"http.requests", "service.name"="x"} 1)") == R"({"http.requests", "service.name"="x"} 1)");
  CHECK(Values(R"({__name__="m", a=""} 1)") == "m 1");
  CHECK(Values(R"(m{a="b"}1 2)") == R"(m{a="b"} 1 2)");
}

TEST_CASE("histogram literals expand with their hints") {
  CHECK(Values("m {{}}") == "m {{schema:0 count:0 sum:0 counter_reset_hint:unknown}}");
  CHECK(Values("m {{schema:1 sum:-2.5 count:9 z_bucket:1 z_bucket_w:0.5 buckets:[1 2 3] offset:-1 n_buckets:[2] "
               "n_offset:4}}") ==
        "m {{schema:1 count:9 sum:-2.5 z_bucket_w:0.5 z_bucket:1 offset:-1 buckets:[1 2 3] n_offset:4 n_buckets:[2] "
        "counter_reset_hint:unknown}}");
  CHECK(Values("m {{schema:-53 count:3 custom_values:[5 10] buckets:[1 2] counter_reset_hint:gauge}}x1") ==
        "m {{schema:-53 count:3 sum:0 custom_values:[5 10] buckets:[1 2] counter_reset_hint:gauge}} "
        "{{schema:-53 count:3 sum:0 custom_values:[5 10] buckets:[1 2] counter_reset_hint:gauge}}");
  CHECK(Values("m {{count:1 buckets:[1]}}+{{count:2 buckets:[1 1]}}x1") ==
        "m {{schema:0 count:1 sum:0 buckets:[1] counter_reset_hint:unknown}} "
        "{{schema:0 count:3 sum:0 buckets:[2 1] counter_reset_hint:unknown}}");
  const auto line = ParseSeriesLine("m {{counter_reset_hint:reset}}+{{}}x1 {{counter_reset_hint:not_reset}}");
  REQUIRE(line.ok());
  CHECK(!line->values[1].hint_written);
  CHECK(line->values[2].hint_written);
}

TEST_CASE("malformed series lines are refused") {
  for (const std::string_view text : {"",
                                      "{",
                                      "m{",
                                      "m{a}",
                                      "m{a=b} 1",
                                      "m{a=\"b} 1",
                                      "m{a=\"1\",a=\"2\"} 1",
                                      "m 1x",
                                      "m 1+2",
                                      "m 1+x3",
                                      "m abc",
                                      "m 1 2y",
                                      "m {{",
                                      "m {{foo:1}}",
                                      "m {{count:1 count:2}}",
                                      "m {{schema:0.5}}",
                                      "m {{buckets:[1}}",
                                      "m {{}}+{{}}",
                                      "m stalex2",
                                      "m {{schema:1}}+{{schema:0}}x1",
                                      "m {{schema:-53 custom_values:[1]}}+{{}}x1",
                                      "m 1x99999999999"}) {
    INFO(text);
    CHECK(!ParseSeriesLine(text).ok());
  }
}

TEST_CASE("start lines give distances") {
  CHECK(IsStartsLine("m{a=\"b\"}@st _ 1s"));
  CHECK(!IsStartsLine("m{a=\"b\"} 1"));
  const auto line = ParseStartsLine("m@st _ -30s-1mx2 0 _x2 5ms");
  REQUIRE(line.ok());
  using Offset = std::optional<int64_t>;
  CHECK(line->offsets_ms == std::vector<Offset>{{}, -30'000, -90'000, -150'000, 0, {}, {}, 5});
  CHECK(!ParseStartsLine("m@st 5").ok());
  CHECK(!ParseStartsLine("m _ 1s").ok());
}

TEST_CASE("bare numbers are told from series") {
  CHECK(ParseBareNumber("1.5") == 1.5);
  CHECK(ParseBareNumber("-Inf") == -INFINITY);
  CHECK(std::isnan(*ParseBareNumber("NaN")));
  CHECK(!ParseBareNumber("1 2"));
  CHECK(!ParseBareNumber("m 1"));
  CHECK(!ParseBareNumber("{} 1"));
}

TEST_CASE("combining histograms reconciles their layouts") {
  const auto sum = [](std::string_view a, std::string_view b, double sign) {
    const auto x = ParseSeriesLine("m " + std::string(a)), y = ParseSeriesLine("m " + std::string(b));
    REQUIRE((x.ok() && y.ok()));
    const auto out = Combine(*x->values[0].histogram, *y->values[0].histogram, sign);
    return out.ok() ? ToString(*out) : std::string(base::Message(out.status()));
  };
  // Schema 1 has two buckets for each one of schema 0.
  CHECK(sum("{{schema:1 count:4 buckets:[1 1 1 1] offset:1}}", "{{schema:0 count:1 buckets:[1] offset:1}}", 1) ==
        "{{schema:0 count:5 sum:0 offset:1 buckets:[3 2] counter_reset_hint:unknown}}");
  // The wider zero bucket ends inside (1, 2], which is populated: it grows to 2.
  CHECK(sum("{{count:2 z_bucket_w:1.5 z_bucket:2}}", "{{count:3 buckets:[1 1 1] offset:0}}", 1) ==
        "{{schema:0 count:5 sum:0 z_bucket_w:2 z_bucket:4 offset:2 buckets:[1] counter_reset_hint:unknown}}");
  CHECK(sum("{{schema:-53 count:6 custom_values:[1 2 3] buckets:[1 2 3]}}",
            "{{schema:-53 count:3 custom_values:[2 3 4] buckets:[1 1 1]}}",
            1) == "{{schema:-53 count:9 sum:0 custom_values:[2 3] buckets:[4 4 1] counter_reset_hint:unknown}}");
  CHECK(sum("{{count:1}}", "{{count:1}}", -1) == "{{schema:0 count:0 sum:0 counter_reset_hint:gauge}}");
  CHECK(sum("{{counter_reset_hint:reset}}", "{{counter_reset_hint:not_reset}}", 1).find("unknown") !=
        std::string::npos);
}

TEST_CASE("floats are equal up to a millionth of their magnitudes") {
  CHECK(AlmostEqual(1.0, 1.0000019));
  CHECK(!AlmostEqual(1.0, 1.0000021));
  CHECK(!AlmostEqual(0.0, 1e-300));
  CHECK(AlmostEqual(INFINITY, INFINITY));
  CHECK(!AlmostEqual(INFINITY, 1e308));
  CHECK(AlmostEqual(NAN, model::NormalNan()));
  CHECK(!AlmostEqual(NAN, model::StaleNan()));
}

}  // namespace
}  // namespace varve::promqltest
