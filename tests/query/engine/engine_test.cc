#include "query/engine/engine.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>

#include "storage/base/dice.h"
#include "storage/base/strings.h"
#include "tests/support/manual_clock.h"
#include "tests/support/table_source.h"

namespace varve::engine {
namespace {

struct Fixture {
  test::ManualClock clock;
  test::TableSource source;
  EngineConfig config;

  void Add(std::initializer_list<std::pair<std::string_view, std::string_view>> labels,
           const std::vector<std::pair<int64_t, double>>& samples) {
    source.Add(model::Labels::Of(labels), samples);
  }
  absl::StatusOr<Result> Instant(std::string text, int64_t t_ms) const {
    Query query;
    query.text = std::move(text);
    query.start_ms = query.end_ms = t_ms;
    return Engine(config, clock).Run(query, source);
  }
  absl::StatusOr<Result> Range(std::string text, int64_t start_ms, int64_t end_ms, int64_t step_ms) const {
    Query query;
    query.text = std::move(text);
    query.start_ms = start_ms;
    query.end_ms = end_ms;
    query.step_ms = step_ms;
    return Engine(config, clock).Run(query, source);
  }
};

std::string Code(const absl::Status& status) { return base::FromAbsl(absl::StatusCodeToString(status.code())).data(); }

TEST_CASE("an instant query gives each of the four types", "[engine]") {
  Fixture f;
  f.Add({{"__name__", "m"}}, {{1000, 1}, {2000, 2}});
  const Result scalar = f.Instant("1 + 2", 2000).value();
  CHECK(scalar.type == promql::ValueType::kScalar);
  CHECK(scalar.scalar == 3);
  CHECK(f.Instant("\"text\"", 2000).value().string == "text");
  const Result vector = f.Instant("m", 2500).value();
  REQUIRE(vector.series.size() == 1);
  CHECK(vector.series[0].points[0].t_ms == 2500);
  CHECK(vector.series[0].points[0].value == 2);
  const Result matrix = f.Instant("m[2s]", 2000).value();
  CHECK(matrix.type == promql::ValueType::kMatrix);
  REQUIRE(matrix.series.size() == 1);
  CHECK(matrix.series[0].points.size() == 2);
}

TEST_CASE("a range query gives a matrix even of a scalar", "[engine]") {
  Fixture f;
  const Result result = f.Range("time()", 0, 3500, 1000).value();
  CHECK(result.type == promql::ValueType::kMatrix);
  REQUIRE(result.series.size() == 1);
  CHECK(result.series[0].labels.empty());
  REQUIRE(result.series[0].points.size() == 4);  // the end need not be hit
  CHECK(result.series[0].points[3].value == 3);
}

TEST_CASE("errors carry the code that the API needs", "[engine]") {
  Fixture f;
  f.Add({{"__name__", "a"}, {"x", "1"}}, {{1000, 1}});
  f.Add({{"__name__", "b"}, {"x", "1"}}, {{1000, 2}});
  CHECK(Code(f.Instant("sum(", 1000).status()) == "INVALID_ARGUMENT");
  CHECK(Code(f.Range("\"text\"", 0, 1000, 100).status()) == "INVALID_ARGUMENT");
  CHECK(base::Message(f.Range("a[5m]", 0, 1000, 100).status()) ==
        "invalid expression type \"range vector\" for range query, must be Scalar or instant Vector");
  CHECK(Code(f.Range("a", 1000, 0, 100).status()) == "INVALID_ARGUMENT");
  CHECK(Code(f.Range("a", 0, 1000, -1).status()) == "INVALID_ARGUMENT");
  const absl::Status same = f.Instant("-{x=\"1\"}", 1000).status();
  CHECK(Code(same) == "FAILED_PRECONDITION");
  CHECK(base::Message(same) == "vector contains metrics with the same labelset");
  const absl::Status many = f.Instant("a * on() {x=\"1\"}", 1000).status();
  CHECK(Code(many) == "FAILED_PRECONDITION");
  CHECK(base::Message(many).find("found duplicate series for the match group {} on the right hand-side") == 0);
  f.source.failure = absl::DataLossError("a block is broken");
  CHECK(Code(f.Instant("a", 1000).status()) == "DATA_LOSS");
}

TEST_CASE("a query may hold so many samples and so much memory and no more", "[engine]") {
  Fixture f;
  for (int i = 0; i < 100; ++i) {
    f.Add({{"__name__", "m"}, {"i", base::StrCat(i)}}, {{1000, 1}, {2000, 2}, {3000, 3}});
  }
  f.config.samples_max = 50;
  CHECK(base::Message(f.Instant("topk(3, m)", 3000).status()) ==
        "query processing would load too many samples into memory in query execution");
  f.config.samples_max = 0;
  CHECK(f.Instant("topk(3, m)", 3000).ok());
  f.config.memory_bytes_max = 1000;
  CHECK(Code(f.Instant("topk(3, m)", 3000).status()) == "RESOURCE_EXHAUSTED");
  // A grid that is too long is refused before it is made.
  f.config.memory_bytes_max = 1 << 20;
  CHECK(Code(f.Range("vector(1)", 0, INT64_MAX / 8, 1).status()) == "RESOURCE_EXHAUSTED");
  CHECK(Code(f.Instant("sum_over_time(vector(1)[10000w:1ms])", 3000).status()) == "RESOURCE_EXHAUSTED");
}

TEST_CASE("labels that a query makes are paid for", "[engine]") {
  Fixture f;
  for (int i = 0; i < 100; ++i) f.Add({{"__name__", "m"}, {"i", std::string(100, 'x') + base::StrCat(i)}}, {{1000, 1}});
  std::string twice;
  for (int i = 0; i < 1000; ++i) twice += "$1";
  const std::string replace = base::StrCat("label_replace(m, \"i\", \"", twice, "\", \"i\", \"(.*)\")");
  CHECK(f.Instant(replace, 1000).ok());
  std::string join = "label_join(m, \"j\", \"\"";
  for (int i = 0; i < 1000; ++i) join += ", \"i\"";
  CHECK(f.Instant(join + ")", 1000).ok());
  f.config.memory_bytes_max = 1 << 20;
  CHECK(Code(f.Instant(replace, 1000).status()) == "RESOURCE_EXHAUSTED");
  CHECK(Code(f.Instant(join + ")", 1000).status()) == "RESOURCE_EXHAUSTED");
  // Each call doubles the label: one value alone would not fit anywhere.
  std::string doubled = "m";
  for (int i = 0; i < 60; ++i) doubled = base::StrCat("label_replace(", doubled, R"q(, "i", "$1$1", "i", "(.*)"))q");
  CHECK(Code(f.Instant(doubled, 1000).status()) == "RESOURCE_EXHAUSTED");
}

TEST_CASE("a cancelled query and a late one end", "[engine]") {
  Fixture f;
  for (int i = 0; i < 100; ++i) f.Add({{"__name__", "m"}, {"i", base::StrCat(i)}}, {{1000, 1}});
  base::Cancel cancel;
  cancel.Request();
  Query query;
  query.text = "sum(m)";
  query.start_ms = query.end_ms = 1000;
  query.cancel = &cancel;
  CHECK(Code(Engine(f.config, f.clock).Run(query, f.source).status()) == "CANCELLED");
  class Late : public base::Clock {  // a second passes whenever it is looked at
   public:
    int64_t NowMs() const override { return 0; }
    int64_t MonotonicNs() const override { return now_ += 1'000'000'000; }
    mutable int64_t now_ = 0;
  } late;
  query.cancel = nullptr;
  query.timeout_ms = 1;
  CHECK(Code(Engine(f.config, late).Run(query, f.source).status()) == "DEADLINE_EXCEEDED");
}

TEST_CASE("identical selectors are selected once", "[engine]") {
  Fixture f;
  f.Add({{"__name__", "m"}}, {{1000, 4}});
  const Result result = f.Instant("m / m + m", 1000).value();
  CHECK(f.source.selects == 1);
  REQUIRE(result.series.size() == 1);
  CHECK(result.series[0].points[0].value == 5);
}

TEST_CASE("a name is dropped at once or at the end", "[engine]") {
  Fixture f;
  f.Add({{"__name__", "m_total"}, {"x", "1"}}, {{1000, 1}, {2000, 2}});
  CHECK(f.Instant("sum by (__name__) (rate(m_total[5s]))", 2000).value().series[0].labels.empty());
  const std::string restore = "label_replace(rate(m_total[5s]), \"__name__\", \"$1\", \"__name__\", \"(.+)\")";
  CHECK(f.Instant(restore, 2000).value().series[0].labels.ToString() == "{x=\"1\"}");
  f.config.delayed_name_removal = true;
  CHECK(f.Instant(restore, 2000).value().series[0].labels.ToString() == "m_total{x=\"1\"}");
  CHECK(f.Instant("rate(m_total[5s])", 2000).value().series[0].labels.ToString() == "{x=\"1\"}");
}

TEST_CASE("annotations say where and are not repeated", "[engine]") {
  Fixture f;
  f.Add({{"__name__", "gauge"}, {"i", "1"}}, {{1000, 1}, {2000, 2}});
  f.Add({{"__name__", "gauge"}, {"i", "2"}}, {{1000, 1}, {2000, 2}});
  const Result result = f.Instant("sum(rate(gauge[5s])) +\n  sum(rate(gauge[5s]))", 2000).value();
  CHECK(result.infos == std::vector<std::string>{"PromQL info: metric might not be a counter, name does not end in "
                                                 "_total/_sum/_count/_bucket: \"gauge\" (1:10)"});
  CHECK(result.warnings.empty());
}

// Random series: gaps, resets, staleness markers, NaN.
void AddRandomSeries(base::Dice& dice, test::TableSource& source, bool zero_starts) {
  for (int s = 0; s < 6; ++s) {
    model::SampleColumns columns;
    auto times = std::make_shared<std::vector<int64_t>>();
    double value = static_cast<double>(dice.Below(100));
    for (int64_t t = 0; t < 600'000; t += 10'000 + static_cast<int64_t>(dice.Below(3)) * 500) {
      if (dice.OneIn(12)) t += static_cast<int64_t>(dice.Below(400'000));
      times->push_back(t);
      value = dice.OneIn(8) ? 0 : value + static_cast<double>(dice.Below(50)) / 4;
      columns.values.push_back(dice.OneIn(15) ? model::StaleNan() : (dice.OneIn(25) ? std::nan("") : value));
      if (zero_starts) columns.start_times.push_back(0);
    }
    columns.times = std::move(times);
    source.Add(model::Labels::Of({{"__name__", "m_total"}, {"g", base::StrCat(s % 2)}, {"s", base::StrCat(s)}}),
               std::move(columns));
  }
}

bool SameBits(const Result& a, const Result& b) {
  if (a.series.size() != b.series.size()) return false;
  for (size_t i = 0; i < a.series.size(); ++i) {
    if (a.series[i].labels != b.series[i].labels || a.series[i].points.size() != b.series[i].points.size())
      return false;
    for (size_t p = 0; p < a.series[i].points.size(); ++p) {
      if (a.series[i].points[p].t_ms != b.series[i].points[p].t_ms) return false;
      const double x = a.series[i].points[p].value, y = b.series[i].points[p].value;
      if (!(std::isnan(x) && std::isnan(y)) && !model::SameBits(x, y)) return false;
    }
  }
  return true;
}

TEST_CASE("column kernels give what window kernels give to the last bit", "[engine]") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Fixture plain, slow;  // known start times, even if all are unknown, keep a series off the fast path
    slow.config.start_timestamps = true;
    plain.config.parser.experimental_functions = slow.config.parser.experimental_functions = true;
    base::Dice a(seed), b(seed);
    AddRandomSeries(a, plain.source, false);
    AddRandomSeries(b, slow.source, true);
    for (const std::string_view function :
         {"rate", "increase", "delta", "min_over_time", "max_over_time", "sum_over_time", "avg_over_time",
          "count_over_time", "present_over_time", "last_over_time", "first_over_time"}) {
      INFO("seed " << seed << " " << function);
      const std::string text = base::StrCat(function, "(m_total[47s])");
      REQUIRE(SameBits(plain.Range(text, 0, 700'000, 7'000).value(), slow.Range(text, 0, 700'000, 7'000).value()));
    }
  }
}

TEST_CASE("a range query equals instant queries at its steps", "[engine]") {
  const std::vector<std::string> queries = {"m_total",
                                            "m_total offset 33s",
                                            "rate(m_total[1m])",
                                            "sum by (g) (m_total)",
                                            "avg(m_total) without (s)",
                                            "max by (g) (rate(m_total[2m])) > 0.3",
                                            "m_total > on(s) group_left 40 * (m_total > bool 20)",
                                            "sum(m_total) / count(m_total)",
                                            "topk(2, m_total)",
                                            "quantile by (g) (0.3, m_total)",
                                            "m_total and m_total > 50",
                                            "m_total{g=\"0\"} or m_total{g=\"1\"} offset 1m",
                                            "m_total unless on(g) (m_total > 80)",
                                            "count_values(\"v\", floor(m_total / 50))",
                                            "sum_over_time(m_total[1m:7s])",
                                            "absent(m_total{s=\"2\"})",
                                            "stddev_over_time(m_total[90s])",
                                            "max_over_time(rate(m_total[1m])[2m:13s])",
                                            "scalar(m_total{s=\"1\"}) + 1",
                                            "label_replace(m_total, \"h\", \"$1\", \"s\", \"(.*)\")",
                                            "timestamp(m_total)",
                                            "m_total @ 300 + m_total",
                                            "rate(m_total[1m] @ 400)",
                                            "deriv(m_total[2m])",
                                            "predict_linear(m_total[2m], 60)",
                                            "clamp(m_total, 10, 60)",
                                            "absent_over_time(m_total{s=\"3\"}[20s])",
                                            "day_of_week()",
                                            "sum(m_total * 0.5) by (g) - sum(m_total) by (g)"};
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Fixture f;
    base::Dice dice(seed);
    AddRandomSeries(dice, f.source, false);
    for (const std::string& text : queries) {
      INFO("seed " << seed << " " << text);
      const absl::StatusOr<Result> range = f.Range(text, 5'000, 605'000, 20'000);
      std::map<std::string, std::map<int64_t, double>> want, got;
      absl::Status failure;
      for (int64_t t = 5'000; t <= 605'000 && failure.ok(); t += 20'000) {
        const absl::StatusOr<Result> instant = f.Instant(text, t);
        if (!instant.ok()) {
          failure = instant.status();
          break;
        }
        if (instant->type == promql::ValueType::kScalar) {
          want["{}"][t] = instant->scalar;
          continue;
        }
        for (const ResultSeries& one : instant->series) want[one.labels.ToString()][t] = one.points[0].value;
      }
      REQUIRE(range.ok() == failure.ok());
      if (!range.ok()) continue;
      for (const ResultSeries& one : range->series) {
        for (const Point& point : one.points) got[one.labels.ToString()][point.t_ms] = point.value;
      }
      REQUIRE(got.size() == want.size());
      for (const auto& [labels, points] : want) {
        INFO(labels);
        REQUIRE(got[labels].size() == points.size());
        for (const auto& [t, value] : points) {
          const double other = got[labels][t];
          REQUIRE(((std::isnan(value) && std::isnan(other)) || value == other));
        }
      }
    }
  }
}

TEST_CASE("explain shows what was decided before running", "[engine]") {
  Fixture f;
  Query query;
  query.text = "sum(rate(m[5m] @ 100)) + 2 * 3";
  query.end_ms = 1000;
  query.step_ms = 100;
  CHECK(Engine(f.config, f.clock).Explain(query).value() ==
        "once\n"
        "  binary +\n"
        "    aggregate sum by ()\n"
        "      call rate\n"
        "        select range {__name__=\"m\"} range=300000ms at=100000ms\n"
        "    number 6\n");
}

}  // namespace
}  // namespace varve::engine
