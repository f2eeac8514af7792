#include "query/api/json.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "query/promql/parser.h"
#include "storage/base/dice.h"
#include "storage/base/float_text.h"
#include "storage/base/strings.h"

namespace varve::api {
namespace {

std::string Value(double v) {
  std::string out;
  AppendSampleValue(out, v);
  return out;
}
std::string Time(int64_t t_ms) {
  std::string out;
  AppendTimestamp(out, t_ms);
  return out;
}

TEST_CASE("sample values are laid out as Prometheus does") {
  CHECK(Value(0) == "0");
  CHECK(Value(-0.0) == "-0");
  CHECK(Value(1) == "1");
  CHECK(Value(-42.5) == "-42.5");
  CHECK(Value(0.1) == "0.1");
  CHECK(Value(0.1 + 0.2) == "0.30000000000000004");
  CHECK(Value(1.0 / 3) == "0.3333333333333333");
  CHECK(Value(1e-6) == "0.000001");
  CHECK(Value(1e-7) == "1e-07");
  CHECK(Value(1.5e-9) == "1.5e-09");
  CHECK(Value(123456789012) == "123456789012");
  CHECK(Value(1e20) == "100000000000000000000");
  CHECK(Value(1e21) == "1e+21");
  CHECK(Value(-1.25e22) == "-1.25e+22");
  CHECK(Value(9007199254740993.0) == "9007199254740992");
  CHECK(Value(5e-324) == "5e-324");
  CHECK(Value(std::numeric_limits<double>::max()) == "1.7976931348623157e+308");
  CHECK(Value(NAN) == "NaN");
  CHECK(Value(INFINITY) == "+Inf");
  CHECK(Value(-INFINITY) == "-Inf");
}

TEST_CASE("every printed value reads back as the same number and is the shortest such text") {
  base::Dice dice(7);
  for (int i = 0; i < 200'000; ++i) {
    double v;
    switch (i % 4) {
      case 0:
        v = std::bit_cast<double>(dice.Next());
        break;
      case 1:
        v = static_cast<double>(dice.Between(-1'000'000'000, 1'000'000'000)) / 1000;
        break;
      case 2:
        v = static_cast<double>(dice.Between(0, int64_t{1} << 62));
        break;
      default:
        v = dice.Unit() * 100;
    }
    if (!std::isfinite(v)) continue;
    for (const std::string& text : {Value(v), base::FloatGeneral(v), base::FloatFixed(v)}) {
      const auto back = base::ParseDouble(text);
      if (!back || !model::SameBits(*back, v)) FAIL(text << " is not " << v);
    }
    char shortest[64];
    const auto end = std::to_chars(shortest, shortest + sizeof shortest, v, std::chars_format::scientific).ptr;
    const auto digits = [](std::string_view text) {
      std::string out;
      for (const char c : text.substr(0, text.find('e'))) {
        if (c >= '0' && c <= '9') out += c;
      }
      out.erase(0, out.find_first_not_of('0'));
      out.erase(out.find_last_not_of('0') + 1);
      return out;
    };
    if (digits(Value(v)) != digits({shortest, end}))
      FAIL(Value(v) << " is not as short as " << std::string(shortest, end));
  }
}

TEST_CASE("timestamps have no or three decimals") {
  CHECK(Time(1435781451781) == "1435781451.781");
  CHECK(Time(1000) == "1");
  CHECK(Time(50) == "0.050");
  CHECK(Time(0) == "0");
  CHECK(Time(-1) == "-0.001");
  CHECK(Time(-61500) == "-61.500");
}

TEST_CASE("strings are escaped") {
  std::string out;
  AppendString(out, "a\"b\\c\n\t\r\x01<é>&");
  CHECK(out == "\"a\\\"b\\\\c\\n\\t\\r\\u0001\\u003cé\\u003e\\u0026\"");
  out.clear();
  AppendLabels(out, model::Labels::Of({{"__name__", "up"}, {"path", "<a&b>\"\n"}}));
  CHECK(out == R"({"__name__":"up","path":"<a&b>\"\n"})");
  out.clear();
  AppendLabels(out, model::Labels());
  CHECK(out == "{}");
}

model::Histogram Exponential() {
  model::Histogram h;
  h.schema = 0;
  h.count = 9;
  h.sum = 18.4;
  h.zero_threshold = 0.001;
  h.zero_count = 2;
  h.positive_spans = {{0, 2}, {1, 1}};
  h.positive_buckets = {1, 0, 3};
  h.negative_spans = {{0, 1}, {0, 1}};
  h.negative_buckets = {2, 1};
  return h;
}

TEST_CASE("histograms list their buckets in order and leave out empty ones") {
  std::string out;
  AppendHistogram(out, Exponential());
  CHECK(
      out ==
      R"({"count":"9","sum":"18.4","buckets":[[1,"-2","-1","1"],[1,"-1","-0.5","2"],[3,"-0.001","0.001","2"],[0,"0.5","1","1"],[0,"4","8","3"]]})");
  model::Histogram custom;
  custom.schema = model::kCustomBucketsSchema;
  custom.count = 6;
  custom.sum = 7;
  custom.custom_values = {5, 10};
  custom.positive_spans = {{0, 3}};
  custom.positive_buckets = {1, 2, 3};
  out.clear();
  AppendHistogram(out, custom);
  CHECK(out == R"({"count":"6","sum":"7","buckets":[[3,"-Inf","5","1"],[0,"5","10","2"],[0,"10","+Inf","3"]]})");
  out.clear();
  AppendHistogram(out, model::Histogram());
  CHECK(out == R"({"count":"0","sum":"0"})");
  model::Histogram edge;
  edge.schema = 0;
  edge.positive_spans = {{1024, 2}};
  edge.positive_buckets = {1, 1};
  out.clear();
  AppendHistogram(out, edge);
  CHECK(out.find(
            R"([0,"8.98846567431158e+307","1.7976931348623157e+308","1"],[0,"1.7976931348623157e+308","+Inf","1"])") !=
        std::string::npos);
}

TEST_CASE("results have the shape of their type") {
  engine::Result result;
  std::string out;
  const auto written = [&] {
    out.clear();
    AppendResult(out, result);
    return out;
  };
  result.type = promql::ValueType::kScalar;
  result.t_ms = 1435781451781;
  result.scalar = 0.5;
  CHECK(written() == R"({"resultType":"scalar","result":[1435781451.781,"0.5"])");
  result.type = promql::ValueType::kString;
  result.string = "a\"b";
  CHECK(written() == R"({"resultType":"string","result":[1435781451.781,"a\"b"])");
  result.type = promql::ValueType::kVector;
  CHECK(written() == R"({"resultType":"vector","result":[])");
  result.series.resize(2);
  result.series[0].labels = model::Labels::Of({{"a", "1"}});
  result.series[0].points = {{1000, 2}};
  result.series[1].histograms = {{1500, std::make_shared<const model::Histogram>()}};
  CHECK(
      written() ==
      R"({"resultType":"vector","result":[{"metric":{"a":"1"},"value":[1,"2"]},{"metric":{},"histogram":[1.500,{"count":"0","sum":"0"}]}])");
  result.type = promql::ValueType::kMatrix;
  result.series[0].points.push_back({2000, NAN});
  result.series[0].histograms = {{3000, std::make_shared<const model::Histogram>()}};
  CHECK(
      written() ==
      R"({"resultType":"matrix","result":[{"metric":{"a":"1"},"values":[[1,"2"],[2,"NaN"]],"histograms":[[3,{"count":"0","sum":"0"}]]},{"metric":{},"histograms":[[1.500,{"count":"0","sum":"0"}]]}])");
}

TEST_CASE("syntax trees have sorted keys") {
  const auto tree = [](std::string_view text) {
    const auto expr = promql::Parse(text);
    REQUIRE(expr.ok());
    std::string out;
    AppendTree(out, **expr);
    return out;
  };
  CHECK(
      tree("foo{a=~\"b\"} @ 1 offset 5m") ==
      R"({"matchers":[{"name":"a","type":"=~","value":"b"},{"name":"__name__","type":"=","value":"foo"}],"name":"foo","offset":300000,"startOrEnd":null,"timestamp":1000,"type":"vectorSelector"})");
  CHECK(tree("-(1)") ==
        R"({"expr":{"expr":{"type":"numberLiteral","val":"1"},"type":"parenExpr"},"op":"-","type":"unaryExpr"})");
  CHECK(
      tree("sum by (a) (x)") ==
      R"({"expr":{"matchers":[{"name":"__name__","type":"=","value":"x"}],"name":"x","offset":0,"startOrEnd":null,"timestamp":null,"type":"vectorSelector"},"grouping":["a"],"op":"sum","param":null,"type":"aggregation","without":false})");
  CHECK(
      tree("1 > bool 2") ==
      R"({"bool":true,"lhs":{"type":"numberLiteral","val":"1"},"matching":null,"op":"\u003e","rhs":{"type":"numberLiteral","val":"2"},"type":"binaryExpr"})");
  CHECK(tree("time()") ==
        R"({"args":[],"func":{"argTypes":[],"name":"time","returnType":"scalar","variadic":0},"type":"call"})");
}

}  // namespace
}  // namespace varve::api
