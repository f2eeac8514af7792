#include "tools/promqltest/script.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "query/promql/parser.h"
#include "storage/base/strings.h"
#include "tools/promqltest/rewrite.h"
#include "tools/promqltest/world.h"

namespace varve::promqltest {
namespace {

std::string Failure(std::string_view text) {
  const auto script = ParseScript(text);
  return script.ok() ? "parsed" : std::string(base::Message(script.status()));
}

TEST_CASE("a script becomes commands") {
  const auto script = ParseScript(R"(
# A comment ends a block.
load 5m
  m{a="b"}@st  _ -1m
  m{a="b"}     1 2
# here
CLEAR
eval range from 1m to 3m step 1m m + 1
  expect no_info
  {a="b"} 1 _ 3

eval instant at 5m count(m)
  expect warn msg:PromQL warning: x (1:1)
  expect warn regex: ^PromQL
  {} 1

eval instant at 0 1
  1
eval instant at 0 "x"
  expect string `x`

eval_fail instant at 1m m
  expected_fail_message no
eval instant at 5m m[2m]
  expect range vector from 1m to 2m step 60s
  m 1 2)");
  INFO(base::Message(script.status()));
  REQUIRE(script.ok());
  REQUIRE(script->size() == 8);
  const Load& load = std::get<Load>((*script)[0]);
  CHECK(load.step_ms == 300'000);
  REQUIRE(load.series.size() == 1);
  CHECK(load.series[0].series.line == 5);
  CHECK(load.series[0].start_offsets_ms[1] == -60'000);
  CHECK(std::holds_alternative<Clear>((*script)[1]));
  const Eval& range = std::get<Eval>((*script)[2]);
  CHECK(!range.instant);
  CHECK(range.time.end_ms == 180'000);
  CHECK(range.expr == "m + 1");
  CHECK(range.no_info);
  CHECK(range.series.size() == 1);
  const Eval& count = std::get<Eval>((*script)[3]);
  CHECK(count.warn.size() == 2);
  CHECK(count.warn[0].text == "PromQL warning: x (1:1)");
  CHECK(std::get<Eval>((*script)[4]).scalar == 1);
  CHECK(std::get<Eval>((*script)[5]).string == "x");
  CHECK(std::get<Eval>((*script)[6]).fail->text == "no");
  CHECK(std::get<Eval>((*script)[7]).range_vector->end_ms == 120'000);
}

TEST_CASE("mistakes in a script are named with their line") {
  CHECK(Failure("bogus") == "line 1: unknown command \"bogus\"");
  CHECK(Failure("\nload 5x\n m 1").starts_with("line 2: not a valid duration"));
  CHECK(Failure("load 5m\n m 1+").starts_with("line 2: "));
  CHECK(Failure("eval instant at 5m rate(m)").starts_with("line 1: 1:6: parse error"));
  CHECK(Failure("eval instant 5m m").find("want `at`") != std::string::npos);
  CHECK(Failure("eval range from 5m to 1m step 1m m").find("ends before") != std::string::npos);
  CHECK(Failure("eval instant at 1m m\n expect fail\n expect fail").find("more than one") != std::string::npos);
  CHECK(Failure("eval instant at 1m m\n expect warn\n expect no_warn").find("both") != std::string::npos);
  CHECK(Failure("eval range from 0 to 1m step 1m m\n expect ordered").find("order") != std::string::npos);
  CHECK(Failure("eval instant at 1m m\n m 1 2").find("one value") != std::string::npos);
  CHECK(Failure("eval range from 0 to 1m step 1m m\n m 1 2 3").find("3 positions") != std::string::npos);
  CHECK(Failure("load 1m\n m@st 1s 2s\n m 1").find("positions") != std::string::npos);
  CHECK(Failure("load 1m\n m@st 1s\n n 1").find("another series") != std::string::npos);
  CHECK(Failure("load 1m\n m@st 1s\n").find("without its series") != std::string::npos);
}

TEST_CASE("classic histograms load as native ones too") {
  const auto script = ParseScript(R"(load_with_nhcb 1m
  h_bucket{le="1", a="x"}    1 2
  h_bucket{le="5", a="x"}    3 5
  h_bucket{le="+Inf", a="x"} 4 _
  h_bucket{le="bad", a="x"}  9 9
  h_count{a="x"}             4 6
  h_sum{a="x"}               7 _
  other_count                3 3
)");
  REQUIRE(script.ok());
  const auto series = Expand(std::get<Load>((*script)[0]));
  REQUIRE(series.ok());
  const auto find = [&](std::string_view name) -> const WorldSeries* {
    for (const WorldSeries& one : *series) {
      if (one.labels.Get(model::kMetricName) == name) return &one;
    }
    return nullptr;
  };
  CHECK(find("other") == nullptr);
  const WorldSeries* native = find("h");
  REQUIRE(native != nullptr);
  CHECK(native->labels.ToString() == "h{a=\"x\"}");
  REQUIRE(native->samples.size() == 2);
  const model::Histogram& first = *native->samples[0].histogram;
  CHECK(first.custom_values == std::vector<double>{1, 5});
  CHECK(first.positive_buckets == std::vector<double>{1, 2, 1});
  CHECK(first.sum == 7);
  const model::Histogram& second = *native->samples[1].histogram;
  CHECK(second.positive_buckets == std::vector<double>{2, 3, 1});
  CHECK(second.count == 6);
  const auto bad = ParseScript("load_with_nhcb 1m\n h_bucket{le=\"+Inf\"} 3\n h_count 4\n");
  CHECK(!Expand(std::get<Load>((*bad)[0])).ok());
}

TEST_CASE("the table reads hints back per chunk") {
  const auto script = ParseScript(R"(load 1m
  h {{count:1 buckets:[1]}} {{count:2 buckets:[2]}} {{count:1 buckets:[1]}} {{count:1 buckets:[1]}} 5 {{count:1 buckets:[1]}} stale {{count:9 buckets:[9]}}
  g {{count:1 buckets:[1] counter_reset_hint:gauge}} {{count:1 buckets:[1] counter_reset_hint:gauge}}
  r {{count:1 buckets:[1]}} {{count:2 buckets:[2] counter_reset_hint:reset}} {{count:2 buckets:[2] counter_reset_hint:not_reset}}
)");
  REQUIRE(script.ok());
  TableWorld world;
  REQUIRE(world.Append(*Expand(std::get<Load>((*script)[0]))).ok());
  const auto hints = [&](std::string_view name) {
    model::SelectRequest request;
    request.matchers = {model::Matcher::Equal(model::kMetricName, name)};
    const auto selection = world.source().Select(request);
    REQUIRE(selection.ok());
    REQUIRE((*selection)->size() == 1);
    model::SampleColumns columns;
    REQUIRE((*selection)->Read(0, &columns).ok());
    std::string out;
    for (const auto& histogram : columns.histograms) {
      base::StrAppend(out, histogram->IsStale() ? "s" : base::StrCat(static_cast<int>(histogram->hint)));
    }
    return out;
  };
  CHECK(hints("h") == "02020s0");
  CHECK(hints("g") == "33");
  CHECK(hints("r") == "002");
}

TEST_CASE("the table refuses to go back in time and stores nothing then") {
  TableWorld world;
  const auto append = [&](std::string_view text) {
    const auto script = ParseScript(text);
    REQUIRE(script.ok());
    return world.Append(*Expand(std::get<Load>((*script)[0])));
  };
  CHECK(append("load 1m\n a 1 2").ok());
  CHECK(append("load 1m\n a _ 2 3").ok());
  CHECK(!append("load 1m\n a _ 9\n b 1").ok());
  CHECK(!append("load 1m\n a 1\n b 1").ok());
  const auto selection = world.source().Select({});
  REQUIRE(selection.ok());
  CHECK((*selection)->size() == 1);
}

TEST_CASE("pinning leaves the inside of subqueries alone") {
  constexpr promql::Options kAll{true, true, true, true};
  const auto pin = [&](std::string_view text) {
    const auto expr = promql::Parse(text, kAll);
    REQUIRE(expr.ok());
    return PinToTime(**expr, 60'000).value_or("unsafe");
  };
  CHECK(pin("a + rate(b[5m] offset 1m)") == "a @ 60.000 + rate(b[5m] @ 60.000 offset 1m)");
  CHECK(pin("sum_over_time(a[5m:1m])") == "sum_over_time(a[5m:1m] @ 60.000)");
  CHECK(pin("a @ 10 + b @ end()") == "a @ 10.000 + b @ end()");
  CHECK(pin("time() + a") == "unsafe");
  CHECK(pin("sum_over_time(timestamp(a)[5m:1m])") == "unsafe");
}

TEST_CASE("every script of the reference parses") {
  const std::filesystem::path folder = "../shared/promqltest";
  if (!std::filesystem::exists(folder)) {
    WARN("SKIPPED: " << folder << " is not there");
    return;
  }
  int evals = 0, files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".test") continue;
    ++files;
    std::ifstream in(entry.path());
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const auto script = ParseScript(text);
    INFO(entry.path().string());
    if (!script.ok()) FAIL_CHECK(base::Message(script.status()));
    if (!script.ok()) continue;
    TableWorld world;
    for (const Command& command : *script) {
      evals += std::holds_alternative<Eval>(command) ? 1 : 0;
      if (std::holds_alternative<Clear>(command)) CHECK(world.Clear().ok());
      if (const Load* load = std::get_if<Load>(&command)) {
        const auto series = Expand(*load);
        if (!series.ok()) FAIL_CHECK(load->line << ": " << base::Message(series.status()));
        if (!series.ok()) continue;
        const absl::Status stored = world.Append(*series);
        if (!stored.ok()) FAIL_CHECK(load->line << ": " << base::Message(stored));
      }
    }
  }
  CHECK(files == 21);
  CHECK(evals == 1328);  // as FORMAT.md counts them
}

}  // namespace
}  // namespace varve::promqltest
