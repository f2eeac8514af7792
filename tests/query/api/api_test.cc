#include "query/api/api.h"

#include <catch2/catch.hpp>

#include "query/api/reply.h"
#include "tools/promqltest/script.h"
#include "tools/promqltest/world.h"

namespace varve::api {
namespace {

class StoppedClock : public base::Clock {
 public:
  int64_t NowMs() const override { return 120'000; }
  int64_t MonotonicNs() const override { return 0; }
};

// A table with some exemplars, metadata and counts beside it.
class FakeSource : public model::SeriesSource {
 public:
  FakeSource() {
    const auto script = promqltest::ParseScript(R"(load 1m
      up{job="a", instance="1"}     1 1 0
      up{job="b", instance="2"}     1 1 1
      {"http.requests", path="<x>"} 0.5 1.5 2.5
      hist                          {{schema:0 count:3 sum:4 buckets:[1 2]}}x2
    )");
    REQUIRE(script.ok());
    const auto series = promqltest::Expand(std::get<promqltest::Load>((*script)[0]));
    REQUIRE(series.ok());
    REQUIRE(world_.Append(*series).ok());
  }
  absl::StatusOr<std::unique_ptr<model::Selection>> Select(const model::SelectRequest& request) const override {
    if (!failure.ok()) return failure;
    return world_.source().Select(request);
  }
  absl::StatusOr<std::vector<std::string>> LabelNames(const model::SelectRequest& request) const override {
    return world_.source().LabelNames(request);
  }
  absl::StatusOr<std::vector<std::string>> LabelValues(std::string_view name,
                                                       const model::SelectRequest& request) const override {
    return world_.source().LabelValues(name, request);
  }
  absl::StatusOr<std::vector<model::ExemplarSeries>> Exemplars(const model::SelectRequest& request) const override {
    const model::Labels labels = model::Labels::Of({{"__name__", "up"}, {"job", "a"}});
    if (!model::MatchesAll(request.matchers, labels)) return std::vector<model::ExemplarSeries>();
    model::ExemplarSeries series{labels, {}};
    for (const int64_t t_ms : {1000, 2500}) {
      if (!request.range.Contains(t_ms)) continue;
      series.exemplars.push_back({model::Labels::Of({{"trace_id", "t"}}), 6, t_ms});
    }
    return std::vector<model::ExemplarSeries>{series};
  }
  std::vector<model::Metadata> MetadataFor(std::string_view metric) const override {
    std::vector<model::Metadata> out;
    for (const model::Metadata& one : {model::Metadata{"a_total", model::MetricType::kCounter, "Things.", ""},
                                       model::Metadata{"a_total", model::MetricType::kGauge, "Other <things>.", "s"},
                                       model::Metadata{"up", model::MetricType::kUnknown, "", ""}}) {
      if (metric.empty() || metric == one.metric) out.push_back(one);
    }
    return out;
  }
  absl::StatusOr<model::SourceStats> Stats(size_t limit) const override {
    model::SourceStats stats;
    stats.series = 4;
    stats.chunks = 5;
    stats.label_pairs = 6;
    stats.min_time_ms = 7;
    stats.max_time_ms = 8;
    stats.series_by_metric = {{"up", 2}, {"hist", 1}};
    if (stats.series_by_metric.size() > limit) stats.series_by_metric.resize(limit);
    return stats;
  }

  std::vector<std::string> Warnings() const override { return missing; }

  absl::Status failure;
  std::vector<std::string> missing;

 private:
  promqltest::TableWorld world_;
};

struct Fixture {
  StoppedClock clock;
  engine::Engine engine{engine::EngineConfig(), clock};
  FakeSource source;
  Api api{engine, clock, Info()};

  static ServerInfo Info() {
    ServerInfo info;
    info.version = "1.2.3";
    info.revision = "abc";
    info.compiler = "clang";
    info.config_yaml = "a: b\n";
    info.flags = {{"x", "1"}, {"y", "<"}};
    info.start_time_ms = 1'600'000'000'120;
    info.storage_retention = "15d";
    return info;
  }
  Reply Ask(std::string_view path, std::vector<std::pair<std::string, std::string>> pairs = {}) {
    const auto reply = api.Handle(path, Params(std::move(pairs)), {&source, nullptr});
    return reply ? *reply : Reply{404, "no such endpoint"};
  }
  std::string Body(std::string_view path, std::vector<std::pair<std::string, std::string>> pairs = {}) {
    return Ask(path, std::move(pairs)).body;
  }
};

TEST_CASE_METHOD(Fixture, "instant queries answer with vectors and scalars") {
  CHECK(
      Body("query", {{"query", "up"}, {"time", "60"}}) ==
      R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"up","instance":"1","job":"a"},"value":[60,"1"]},{"metric":{"__name__":"up","instance":"2","job":"b"},"value":[60,"1"]}]}})");
  CHECK(Body("query", {{"query", "1 + 1"}, {"time", "1435781451.781"}}) ==
        R"({"status":"success","data":{"resultType":"scalar","result":[1435781451.781,"2"]}})");
  CHECK(Body("query", {{"query", "\"x\""}}) ==
        R"({"status":"success","data":{"resultType":"string","result":[120,"x"]}})");
  CHECK(Body("query", {{"query", "none"}}) == R"({"status":"success","data":{"resultType":"vector","result":[]}})");
  CHECK(
      Body("query", {{"query", "hist"}, {"time", "1970-01-01T00:01:00Z"}}) ==
      R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"hist"},"histogram":[60,{"count":"3","sum":"4","buckets":[[0,"0.5","1","1"],[0,"1","2","2"]]}]}]}})");
  CHECK(
      Body("query", {{"query", "up{job=\"a\"}[2m]"}, {"time", "60"}}) ==
      R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"up","instance":"1","job":"a"},"values":[[0,"1"],[60,"1"]]}]}})");
}

TEST_CASE_METHOD(Fixture, "limits cut results and say so") {
  CHECK(
      Body("query", {{"query", "up"}, {"time", "60"}, {"limit", "1"}}) ==
      R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"up","instance":"1","job":"a"},"value":[60,"1"]}]},"warnings":["results truncated due to limit"]})");
  CHECK(Body("query", {{"query", "up"}, {"limit", "2"}}).find("truncated") == std::string::npos);
  CHECK(
      Body("query", {{"query", "up"}, {"limit", "-1"}}) ==
      R"({"status":"error","errorType":"bad_data","error":"invalid parameter \"limit\": limit must be non-negative"})");
  CHECK(Body("labels", {{"limit", "1"}}) ==
        R"({"status":"success","data":["__name__"],"warnings":["results truncated due to limit"]})");
}

TEST_CASE_METHOD(Fixture, "range queries answer with matrices") {
  CHECK(
      Body("query_range", {{"query", "up{job=\"a\"}"}, {"start", "0"}, {"end", "120"}, {"step", "1m"}}) ==
      R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"up","instance":"1","job":"a"},"values":[[0,"1"],[60,"1"],[120,"0"]]}]}})");
  CHECK(
      Body("query_range", {{"query", "3"}, {"start", "0"}, {"end", "1"}, {"step", "0.5"}}) ==
      R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[0,"3"],[0.500,"3"],[1,"3"]]}]}})");
}

TEST_CASE_METHOD(Fixture, "bad parameters are bad data with Prometheus' words") {
  const auto error = [&](std::string_view path, std::vector<std::pair<std::string, std::string>> pairs) {
    const Reply reply = Ask(path, std::move(pairs));
    CHECK(reply.status == 400);
    constexpr std::string_view kBegin = R"({"status":"error","errorType":"bad_data","error":")";
    INFO(reply.body);
    REQUIRE(reply.body.starts_with(kBegin));
    return reply.body.substr(kBegin.size(), reply.body.size() - kBegin.size() - 2);
  };
  CHECK(error("query", {{"query", "1+"}}) ==
        R"(invalid parameter \"query\": 1:3: parse error: unexpected end of input)");
  CHECK(error("query", {{"query", "*1"}}) ==
        R"(invalid parameter \"query\": 1:1: parse error: unexpected \u003cop:*\u003e)");
  CHECK(error("query", {{"query", "1"}, {"time", "x"}}) ==
        R"(invalid parameter \"time\": cannot parse \"x\" to a valid timestamp)");
  CHECK(error("query", {{"query", "1"}, {"timeout", "x"}}) ==
        R"(invalid parameter \"timeout\": cannot parse \"x\" to a valid duration)");
  CHECK(error("query", {{"query", "1"}, {"lookback_delta", "x"}}) ==
        R"(error parsing lookback delta duration: cannot parse \"x\" to a valid duration)");
  CHECK(error("query_range", {{"query", "1"}, {"end", "1"}, {"step", "1"}}) ==
        R"(invalid parameter \"start\": cannot parse \"\" to a valid timestamp)");
  CHECK(error("query_range", {{"query", "1"}, {"start", "2"}, {"end", "1"}, {"step", "1"}}) ==
        R"(invalid parameter \"end\": end timestamp must not be before start time)");
  for (const std::string step : {"0", "-1"}) {
    CHECK(
        error("query_range", {{"query", "1"}, {"start", "0"}, {"end", "1"}, {"step", step}}) ==
        R"(invalid parameter \"step\": zero or negative query resolution step widths are not accepted. Try a positive integer)");
  }
  CHECK(error("query_range", {{"query", "1"}, {"start", "0"}, {"end", "1"}, {"step", "1e300"}}).find("overflows") !=
        std::string::npos);
  CHECK(error("query_range", {{"query", "1"}, {"start", "0"}, {"end", "11001"}, {"step", "1"}}) ==
        "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)");
  CHECK(
      error("query_range", {{"query", "up[5m]"}, {"start", "0"}, {"end", "1"}, {"step", "1"}}) ==
      R"(invalid parameter \"query\": invalid expression type \"range vector\" for range query, must be Scalar or instant Vector)");
  CHECK(error("series", {}) == "no match[] parameter provided");
  CHECK(error("series", {{"match[]", "{}"}}) ==
        R"(invalid parameter \"match[]\": match[] must contain at least one non-empty matcher)");
  CHECK(error("labels", {{"match[]", "{"}}) ==
        R"(invalid parameter \"match[]\": 1:2: parse error: unexpected end of input inside braces)");
  CHECK(error("metadata", {{"limit", "x"}}) == "limit must be a number");
  CHECK(error("status/tsdb", {{"limit", "0"}}) == "limit must be a positive number");
  CHECK(error("format_query", {{"query", ""}}) ==
        R"(invalid parameter \"query\": 1:1: parse error: no expression found in input)");
}

TEST_CASE_METHOD(Fixture, "eleven thousand and one points are allowed") {
  CHECK(Ask("query_range", {{"query", "1"}, {"start", "0"}, {"end", "11000"}, {"step", "1"}}).status == 200);
  CHECK(Ask("query_range", {{"query", "1"}, {"start", "0"}, {"end", "11000.999"}, {"step", "1"}}).status == 200);
}

TEST_CASE_METHOD(Fixture, "failures have the type and code of their cause") {
  const auto fail = [&](const absl::Status& status) {
    source.failure = status;
    const Reply reply = Ask("query", {{"query", "up"}});
    return base::StrCat(reply.status, " ", reply.body);
  };
  CHECK(fail(absl::CancelledError("gone")).starts_with(R"(499 {"status":"error","errorType":"canceled",)"));
  CHECK(fail(absl::DeadlineExceededError("late")).starts_with(R"(503 {"status":"error","errorType":"timeout",)"));
  CHECK(fail(absl::ResourceExhaustedError("much")).starts_with(R"(422 {"status":"error","errorType":"execution",)"));
  CHECK(fail(absl::DataLossError("torn")).starts_with(R"(500 {"status":"error","errorType":"internal",)"));
}

TEST_CASE_METHOD(Fixture, "series and labels come sorted and merged") {
  CHECK(
      Body("series", {{"match[]", "up{job=\"b\"}"}, {"match[]", "{job=~\"a|b\"}"}}) ==
      R"({"status":"success","data":[{"__name__":"up","instance":"1","job":"a"},{"__name__":"up","instance":"2","job":"b"}]})");
  CHECK(Body("series", {{"match[]", "none"}}) == R"({"status":"success","data":[]})");
  CHECK(Body("series", {{"match[]", "up"}, {"start", "500"}}) == R"({"status":"success","data":[]})");
  CHECK(Body("labels") == R"({"status":"success","data":["__name__","instance","job","path"]})");
  CHECK(Body("labels", {{"match[]", "hist"}, {"match[]", "up"}}) ==
        R"({"status":"success","data":["__name__","instance","job"]})");
  CHECK(Body("label/job/values") == R"({"status":"success","data":["a","b"]})");
  CHECK(Body("label/path/values") == R"({"status":"success","data":["\u003cx\u003e"]})");
  CHECK(Body("label/U__job/values") == R"({"status":"success","data":["a","b"]})");
  CHECK(Body("label/nope/values") == R"({"status":"success","data":[]})");
  CHECK(Body("label/__name__/values", {{"match[]", "{path!=\"\"}"}}) ==
        R"({"status":"success","data":["http.requests"]})");
}

TEST_CASE_METHOD(Fixture, "an answer over storage that misses something says so") {
  CHECK(Body("query", {{"query", "up"}}).find("warnings") == std::string::npos);
  source.missing = {"storage: block 3 cannot be read"};
  const std::string warning = R"("warnings":["storage: block 3 cannot be read"])";
  CHECK(Body("query", {{"query", "up"}}).find(warning) != std::string::npos);
  CHECK(Body("query_range", {{"query", "up"}, {"start", "0"}, {"end", "60"}, {"step", "60"}}).find(warning) !=
        std::string::npos);
  CHECK(Body("series", {{"match[]", "up"}}).find(warning) != std::string::npos);
  CHECK(Body("labels").find(warning) != std::string::npos);
  CHECK(Body("label/job/values").find(warning) != std::string::npos);
}

TEST_CASE_METHOD(Fixture, "metadata is grouped by metric") {
  CHECK(
      Body("metadata") ==
      R"({"status":"success","data":{"a_total":[{"type":"counter","help":"Things.","unit":""},{"type":"gauge","help":"Other \u003cthings\u003e.","unit":"s"}],"up":[{"type":"unknown","help":"","unit":""}]}})");
  CHECK(Body("metadata", {{"limit_per_metric", "1"}, {"limit", "1"}}) ==
        R"({"status":"success","data":{"a_total":[{"type":"counter","help":"Things.","unit":""}]}})");
  CHECK(Body("metadata", {{"metric", "up"}}) ==
        R"({"status":"success","data":{"up":[{"type":"unknown","help":"","unit":""}]}})");
  CHECK(Body("metadata", {{"metric", "none"}}) == R"({"status":"success","data":{}})");
}

TEST_CASE_METHOD(Fixture, "exemplars are found by any selector of the query") {
  CHECK(
      Body("query_exemplars", {{"query", "rate(up{job=\"a\"}[5m]) + up"}, {"start", "0"}, {"end", "2"}}) ==
      R"({"status":"success","data":[{"seriesLabels":{"__name__":"up","job":"a"},"exemplars":[{"labels":{"trace_id":"t"},"value":"6","timestamp":1}]}]})");
  CHECK(Body("query_exemplars", {{"query", "none"}}) == R"({"status":"success","data":[]})");
  CHECK(Ask("query_exemplars", {{"query", "up"}, {"start", "2"}, {"end", "1"}}).status == 400);
}

TEST_CASE_METHOD(Fixture, "status endpoints have their fixed shapes") {
  CHECK(
      Body("status/tsdb", {{"limit", "1"}}) ==
      R"({"status":"success","data":{"headStats":{"numSeries":4,"numLabelPairs":6,"chunkCount":5,"minTime":7,"maxTime":8},"seriesCountByMetricName":[{"name":"up","value":2}],"labelValueCountByLabelName":[],"memoryInBytesByLabelName":[],"seriesCountByLabelValuePair":[]}})");
  CHECK(
      Body("status/buildinfo") ==
      R"({"status":"success","data":{"version":"1.2.3","revision":"abc","branch":"","buildUser":"","buildDate":"","goVersion":"clang"}})");
  CHECK(Body("status/config") == R"({"status":"success","data":{"yaml":"a: b\n"}})");
  CHECK(Body("status/flags") == R"({"status":"success","data":{"x":"1","y":"\u003c"}})");
  CHECK(Body("status/walreplay") == R"({"status":"success","data":{"min":0,"max":0,"current":0}})");
  CHECK(Body("status/runtimeinfo").find(R"("startTime":"2020-09-13T12:26:40.12Z")") != std::string::npos);
  CHECK(Body("rules") == R"({"status":"success","data":{"groups":[]}})");
  CHECK(Body("alerts") == R"({"status":"success","data":{"alerts":[]}})");
  CHECK(Body("targets/metadata") == R"({"status":"success","data":[]})");
  CHECK(Body("alertmanagers") == R"({"status":"success","data":{"activeAlertmanagers":[],"droppedAlertmanagers":[]}})");
  CHECK(Body("format_query", {{"query", "foo/bar"}}) == R"({"status":"success","data":"foo / bar"})");
  CHECK(Ask("nope").status == 404);
  CHECK(Ask("status/nope").status == 404);
  CHECK(Ask("label//values").status == 404);
}

TEST_CASE_METHOD(Fixture, "statistics are there when asked for") {
  const std::string body = Body("query", {{"query", "up"}, {"stats", "true"}});
  CHECK(body.find(R"(]},"stats")") == std::string::npos);
  CHECK(body.find(R"(],"stats":{"timings":{"evalTotalTime":)") != std::string::npos);
  CHECK(body.find(R"("samples":{"totalQueryableSamples":)") != std::string::npos);
  CHECK(Body("query", {{"query", "up"}}).find("stats") == std::string::npos);
}

TEST_CASE("annotations beyond ten are counted") {
  std::vector<std::string> warnings;
  for (int i = 0; i < 12; ++i) warnings.push_back(base::StrCat("w", i));
  CHECK(
      Success("1", warnings, {"i"}).body ==
      R"({"status":"success","data":1,"warnings":["w0","w1","w2","w3","w4","w5","w6","w7","w8","w9","2 more warning annotations omitted"],"infos":["i"]})");
  warnings.resize(10);
  CHECK(Success("1", warnings).body.find("omitted") == std::string::npos);
}

TEST_CASE("times and durations read in every form") {
  CHECK(*ParseTime("1435781451.781") == 1435781451781);
  CHECK(*ParseTime("-1.5") == -1500);
  CHECK(*ParseTime("1.0004999") == 1000);
  CHECK(*ParseTime("2015-07-01T20:10:51.781Z") == 1435781451781);
  CHECK(*ParseTime("2015-07-01T22:10:51.7815+02:00") == 1435781451781);
  CHECK(*ParseTime("1969-12-31T23:59:59Z") == -1000);
  CHECK(*ParseTime("2024-02-29T00:00:00-00:30") == 1709166600000);
  for (const std::string_view text :
       {"", "x", "2015-07-01", "2015-02-29T00:00:00Z", "2015-07-01T20:10:51", "NaN", "1e300", "2015-07-01T24:00:00Z",
        "2015-07-01T20:10:51.Z", "2015-07-01T20:10:51Zx"}) {
    INFO(text);
    CHECK(!ParseTime(text).ok());
  }
  CHECK(*ParseDurationNs("1.5") == 1'500'000'000);
  CHECK(*ParseDurationNs("1h30m") == 5'400'000'000'000);
  CHECK(!ParseDurationNs("").ok());
  CHECK(!ParseDurationNs("NaN").ok());
  CHECK(FormatTime(951'782'400'000) == "2000-02-29T00:00:00Z");
  CHECK(FormatTime(-1) == "1969-12-31T23:59:59.999Z");
}

TEST_CASE("escaped label names are unescaped") {
  CHECK(UnescapeName("plain_name") == "plain_name");
  CHECK(UnescapeName("U__http_2e_requests") == "http.requests");
  CHECK(UnescapeName("U__a__b") == "a_b");
  CHECK(UnescapeName("U___1f600_") == "\xF0\x9F\x98\x80");
  CHECK(UnescapeName("U__broken_2") == "U__broken_2");
  CHECK(UnescapeName("U__broken_xyz_") == "U__broken_xyz_");
  CHECK(UnescapeName("U__broken_d800_") == "U__broken_d800_");
}

}  // namespace
}  // namespace varve::api
