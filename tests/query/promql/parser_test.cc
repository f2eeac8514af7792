#include "query/promql/parser.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "storage/base/strings.h"

namespace varve::promql {
namespace {

constexpr Options kAll{true, true, true, true};

std::string Reprint(std::string_view text) {
  const auto expr = Parse(text, kAll);
  INFO(text);
  if (!expr.ok()) return "error: " + std::string(base::Message(expr.status()));
  return Print(**expr);
}
std::string Failure(std::string_view text, const Options& options = kAll) {
  const auto expr = Parse(text, options);
  return expr.ok() ? "parsed as " + Print(**expr) : std::string(base::Message(expr.status()));
}
double Number(std::string_view text) {
  const auto expr = Parse(text, kAll);
  INFO(text);
  REQUIRE(expr.ok());
  REQUIRE((*expr)->kind == NodeKind::kNumber);
  return static_cast<const NumberLiteral&>(**expr).value;
}

TEST_CASE("number literals read as Go and durations do") {
  CHECK(Number("1") == 1);
  CHECK(Number("-1") == -1);
  CHECK(Number("+1.5e3") == 1500);
  CHECK(Number(".5") == 0.5);
  CHECK(Number("5.") == 5);
  CHECK(Number("0x1F") == 31);
  CHECK(Number("0X1f_ff") == 0x1fff);
  CHECK(Number("0x1p-2") == 0.25);
  CHECK(Number("017") == 15);
  CHECK(Number("019") == 19);
  CHECK(Number("1_000_000") == 1000000);
  CHECK(Number("1h30m") == 5400);
  CHECK(Number("-500ms") == -0.5);
  CHECK(Number("1e-400") == 0);
  CHECK(std::isinf(Number("iNf")));
  CHECK(Number("-inf") < 0);
  CHECK(std::isnan(Number("NaN")));
  CHECK(Number("- - - 1") == -1);
}

TEST_CASE("malformed numbers and durations are refused with their text") {
  CHECK(Failure("1__0") == R"(1:1: parse error: bad number or duration syntax: "1__0")");
  CHECK(Failure("0x") == R"(1:1: parse error: bad number or duration syntax: "0x")");
  CHECK(Failure("5m30") == R"(1:1: parse error: bad number or duration syntax: "5m30")");
  CHECK(Failure("1e") == R"(1:1: parse error: bad number or duration syntax: "1e")");
  CHECK(Failure("1e999") == R"(1:1: parse error: bad number or duration syntax: "1e999")");
  CHECK(Failure("foo[5m5h]") == R"(1:5: parse error: not a valid duration string: "5m5h")");
  CHECK(Failure("foo[300y]") == "1:5: parse error: duration out of range");
  CHECK(Failure("foo[0]") == "1:5: parse error: duration must be greater than 0");
  CHECK(Failure("foo[-5m]") == "1:5: parse error: duration must be greater than 0");
  CHECK(Failure("foo[5m:-1m]") == "1:8: parse error: duration must be greater than 0");
}

TEST_CASE("strings take the escapes of Go") {
  const auto value = [](std::string_view text) {
    const auto expr = Parse(text, kAll);
    INFO(text);
    REQUIRE(expr.ok());
    return static_cast<const StringLiteral&>(**expr).value;
  };
  CHECK(value(R"("a\n\t\"\\b")") == "a\n\t\"\\b");
  CHECK(value(R"('it\'s')") == "it's");
  CHECK(value(R"("\x41\101\u00e9\U0001F600")") == "AA\xC3\xA9\xF0\x9F\x98\x80");
  CHECK(value("`raw \\n\nline`") == "raw \\n\nline");
  CHECK(Failure(R"("\q")") == "1:1: parse error: unknown escape sequence 'q'");
  CHECK(Failure(R"("\'")") == "1:1: parse error: unknown escape sequence '\\''");
  CHECK(Failure(R"("\ud800")") == "1:1: parse error: escape sequence is an invalid Unicode code point");
  CHECK(Failure("\"abc") == "1:1: parse error: unterminated quoted string");
  CHECK(Failure("`abc") == "1:1: parse error: unterminated raw string");
  CHECK(Failure("\"a\nb\"") == "1:1: parse error: unterminated quoted string");
}

TEST_CASE("operators bind as in Prometheus") {
  const auto root = [](std::string_view text) {
    const auto expr = Parse(text, kAll);
    INFO(text);
    REQUIRE(expr.ok());
    REQUIRE((*expr)->kind == NodeKind::kBinary);
    const auto& binary = static_cast<const Binary&>(**expr);
    return base::StrCat(ToString(binary.op), ": ", Print(*binary.lhs), " | ", Print(*binary.rhs));
  };
  CHECK(root("1 + 2 * 3") == "+: 1 | 2 * 3");
  CHECK(root("1 * 2 + 3") == "+: 1 * 2 | 3");
  CHECK(root("2 ^ 3 ^ 4") == "^: 2 | 3 ^ 4");
  CHECK(root("8 - 4 - 2") == "-: 8 - 4 | 2");
  CHECK(root("a or b and c") == "or: a | b and c");
  CHECK(root("a and b unless c") == "unless: a and b | c");
  CHECK(root("a == b + c") == "==: a | b + c");
  CHECK(root("a > b > c") == ">: a > b | c");
  CHECK(root("a * b atan2 c") == "atan2: a * b | c");
  CHECK(root("a </ b + 1") == "</: a | b + 1");
  CHECK(root("a >/ 5 or b") == "or: a >/ 5 | b");
  CHECK(root("-a * b") == "*: -a | b");
  CHECK(root("2 ^ -3 * 4") == "*: 2 ^ -3 | 4");
  CHECK(root("foo offset 1m + 2") == "+: foo offset 1m | 2");
  CHECK(root("foo offset -2 ^ 2") == "^: foo offset -2s | 2");
  CHECK(root("foo offset -min_of(step(), 1s) ^ 0") == "^: foo offset -min_of(step(), 1s) | 0");
  CHECK(Reprint("-2 ^ 2") == "-2 ^ 2");
  CHECK((*Parse("-2 ^ 2"))->kind == NodeKind::kUnary);
}

TEST_CASE("selectors keep matchers and modifiers") {
  CHECK(Reprint("foo") == "foo");
  CHECK(Reprint("foo:bar:baz{}") == "foo:bar:baz");
  CHECK(Reprint(R"(foo{b="x",a!='y',c=~"z.*",d!~"q",})") == R"(foo{a!="y",b="x",c=~"z.*",d!~"q"})");
  CHECK(Reprint(R"({"http.requests", "service.name"="x"})") == R"({"service.name"="x",__name__="http.requests"})");
  CHECK(Reprint("foo @ 1.5 offset 5m") == "foo @ 1.500 offset 5m");
  CHECK(Reprint("foo offset -5m @ start()") == "foo @ start() offset -5m");
  CHECK(Reprint("foo[5m] @ end()") == "foo[5m] @ end()");
  CHECK(Reprint("foo[90] offset 1.5") == "foo[1m30s] offset 1s500ms");
  CHECK(Reprint("foo @ -1") == "foo @ -1.000");
  CHECK(Reprint("foo @ 2m") == "foo @ 120.000");
  CHECK(Reprint("foo[5m:]") == "foo[5m:]");
  CHECK(Reprint("sum(foo)[1h:30s] offset 1d") == "sum(foo)[1h:30s] offset 1d");
  CHECK(Reprint("foo[5m+step()*2]") == "foo[5m + step() * 2]");
  CHECK(Reprint("foo[(30m)]") == "foo[30m]");
  CHECK(Reprint("foo offset (1m+range())") == "foo offset (1m + range())");
  CHECK(Reprint("rate(foo[5m] smoothed)") == "rate(foo[5m] smoothed)");
  CHECK(Reprint("foo anchored offset 5m") == "foo anchored offset 5m");
  CHECK(Reprint("foo # comment\n + # more\nbar") == "foo + bar");
}

TEST_CASE("keywords name metrics and labels where Prometheus allows it") {
  for (const std::string_view word :
       {"sum",    "avg",    "count_values", "by",        "without", "offset",  "and",      "or",
        "unless", "start",  "end",          "step",      "range",   "limitk",  "anchored", "smoothed",
        "min_of", "max_of", "fill",         "fill_left", "group",   "quantile"}) {
    INFO(word);
    CHECK(Reprint(word) == word);
    CHECK(Reprint(base::StrCat(word, "{a=\"b\"}")) == base::StrCat(word, "{a=\"b\"}"));
    CHECK(Reprint(base::StrCat("sum by (", word, ") (x)")) == base::StrCat("sum by (", word, ") (x)"));
  }
  for (const std::string_view word : {"bool", "on", "ignoring", "group_left", "group_right", "atan2"}) {
    INFO(word);
    CHECK(Failure(word).find("parse error: unexpected <") != std::string::npos);
    CHECK(Reprint(base::StrCat("sum by (", word, ") (x)")) == base::StrCat("sum by (", word, ") (x)"));
    CHECK(Reprint(base::StrCat("x{", word, "=\"1\"}")) == base::StrCat("x{", word, "=\"1\"}"));
  }
  CHECK(Reprint("foo * sum") == "foo * sum");
  CHECK(Reprint("SUM(foo) BY (job)") == "sum by (job) (foo)");
  CHECK(Reprint("sum by (\"service.name\", a) (x)") == "sum by (\"service.name\", a) (x)");
}

TEST_CASE("vector matching prints as it was meant") {
  CHECK(Reprint("a + on(x, y) group_left(z) b") == "a + on (x, y) group_left (z) b");
  CHECK(Reprint("a + on() b") == "a + on () b");
  CHECK(Reprint("a + ignoring() group_right b") == "a + ignoring () group_right () b");
  CHECK(Reprint("a == bool ignoring(x) b") == "a == bool ignoring (x) b");
  CHECK(Reprint("a + fill(0) b") == "a + fill (0) b");
  CHECK(Reprint("a + on(x) group_left fill_left(1) fill_right(-Inf) b") ==
        "a + on (x) group_left () fill_left (1) fill_right (-Inf) b");
  CHECK(Reprint("a + fill") == "a + fill");
}

TEST_CASE("type errors carry Prometheus' words and positions") {
  CHECK(Failure("sum(1)") == "1:5: parse error: expected type instant vector in aggregation expression, got scalar");
  CHECK(Failure("topk(foo, bar)") ==
        "1:6: parse error: expected type scalar in aggregation parameter, got instant vector");
  CHECK(Failure("rate(foo)") ==
        R"(1:6: parse error: expected type range vector in call to function "rate", got instant vector)");
  CHECK(Failure("abs(foo[5m])") ==
        R"(1:5: parse error: expected type instant vector in call to function "abs", got range vector)");
  CHECK(Failure("abs()") == R"(1:1: parse error: expected 1 argument(s) in call to "abs", got 0)");
  CHECK(Failure("round(a, 1, 2)") == R"(1:1: parse error: expected at most 2 argument(s) in call to "round", got 3)");
  CHECK(Failure("label_join(a, \"b\")") ==
        R"(1:1: parse error: expected at least 3 argument(s) in call to "label_join", got 2)");
  CHECK(Failure("1 == 2") == "1:3: parse error: comparisons between scalars must use BOOL modifier");
  CHECK(Failure("a + bool b") == "1:3: parse error: bool modifier can only be used on comparison operators");
  CHECK(Failure("1 and foo") == R"(1:1: parse error: set operator "and" not allowed in binary scalar expression)");
  CHECK(Failure("a and on(x) group_left b") == R"(1:1: parse error: no grouping allowed for "and" operation)");
  CHECK(Failure("1 + on(x) foo") == "1:1: parse error: vector matching only allowed between instant vectors");
  CHECK(Failure("a + on(x) group_left(x) b") ==
        R"(1:3: parse error: label "x" must not occur in ON and GROUP clause at once)");
  CHECK(Failure("1 + fill(0) foo") ==
        "1:1: parse error: filling in missing series only allowed between instant vectors");
  CHECK(Failure("a or fill(0) b") == "1:1: parse error: filling in missing series not allowed for set operators");
  CHECK(Failure("foo + \"bar\"") ==
        "1:7: parse error: binary expression must contain only scalar and instant vector types");
  CHECK(Failure("-foo[5m]") ==
        "1:1: parse error: unary expression only allowed on expressions of type scalar or instant "
        "vector, got \"range vector\"");
  CHECK(Failure("foo[5m:1m][3m:1m]") ==
        "1:1: parse error: subquery is only allowed on instant vector, got matrix instead");
  CHECK(Failure("{}") == "1:1: parse error: vector selector must contain at least one non-empty matcher");
  CHECK(Failure("{x=~\".*\"}") == "1:1: parse error: vector selector must contain at least one non-empty matcher");
  CHECK(Failure("foo{__name__=\"bar\"}") == R"(1:1: parse error: metric name must not be set twice: "foo" or "bar")");
  CHECK(Failure("{\"foo\", __name__=\"bar\"}") ==
        R"(1:1: parse error: metric name must not be set twice: "foo" or "bar")");
  CHECK(Failure("sum()") == "1:1: parse error: no arguments for aggregate expression provided");
  CHECK(Failure("sum(a, b)") ==
        "1:1: parse error: wrong number of arguments for aggregate expression provided, expected 1, got 2");
  CHECK(Failure("info(foo, bar)") == "1:11: parse error: expected label selectors only, got vector selector instead");
  CHECK(Reprint("info(foo, {a=\"\"})") == "info(foo, {a=\"\"})");
  CHECK(Reprint("{__name__=~\".+\"}") == "{__name__=~\".+\"}");
}

TEST_CASE("syntax errors say what was seen and where") {
  CHECK(Failure("") == "1:1: parse error: no expression found in input");
  CHECK(Failure(" # nothing") == "1:1: parse error: no expression found in input");
  CHECK(Failure("1+") == "1:3: parse error: unexpected end of input");
  CHECK(Failure("foo bar") == R"(1:5: parse error: unexpected identifier "bar")");
  CHECK(Failure("1 1") == R"(1:3: parse error: unexpected number "1")");
  CHECK(Failure("*1") == "1:1: parse error: unexpected <op:*>");
  CHECK(Failure("(1") == "1:3: parse error: unclosed left parenthesis");
  CHECK(Failure("1)") == "1:2: parse error: unexpected right parenthesis ')'");
  CHECK(Failure("foo{") == "1:5: parse error: unexpected end of input inside braces");
  CHECK(Failure("foo{a}") == R"(1:6: parse error: unexpected "}" in label matching, expected label matching operator)");
  CHECK(Failure("foo{a=b}") == R"(1:7: parse error: unexpected identifier "b" in label matching, expected string)");
  CHECK(Failure("foo{1}") == "1:5: parse error: unexpected character inside braces: '1'");
  CHECK(Failure("foo{a=\"b\" c=\"d\"}") ==
        R"(1:11: parse error: unexpected identifier "c" in label matching, expected "," or "}")");
  CHECK(Failure("foo{a=~\"(\"}").starts_with("1:5: parse error: error parsing regexp"));
  CHECK(Failure("foo[5m") == "1:7: parse error: unclosed left bracket");
  CHECK(
      Failure("foo[]") ==
      R"(1:5: parse error: unexpected "]" in subquery or range selector, expected number, duration, step(), or range())");
  CHECK(Failure("(foo + bar)[5m]") == "1:12: parse error: ranges only allowed for vector selectors");
  CHECK(Failure("foo offset 5m[5m]") == "1:14: parse error: no offset modifiers allowed before range");
  CHECK(Failure("foo @ 1 [5m]") == "1:9: parse error: no @ modifiers allowed before range");
  CHECK(Failure("foo offset 1m offset 2m") == "1:1: parse error: offset may not be set multiple times");
  CHECK(Failure("foo @ 1 @ 2") == "1:1: parse error: @ <timestamp> may not be set multiple times");
  CHECK(Failure("foo @ Inf").starts_with("1:1: parse error: timestamp out of bounds for @ modifier"));
  CHECK(Failure("1 offset 1d") ==
        "1:1: parse error: offset modifier must be preceded by an instant vector selector or range "
        "vector selector or a subquery");
  CHECK(Failure("sum by (a b) (x)") ==
        R"x(1:11: parse error: unexpected identifier "b" in grouping opts, expected "," or ")")x");
  CHECK(Failure("sum by (1) (x)") == R"(1:9: parse error: unexpected number "1" in grouping opts, expected label)");
  CHECK(Failure("sum(a,)") == "1:6: parse error: trailing commas not allowed in function call args");
  CHECK(Failure("nope(1)") == R"(1:1: parse error: unknown function with name "nope")");
  CHECK(Failure("a\n + b $") == "2:6: parse error: unexpected character: '$'");
  CHECK(Failure("a ! b") == "1:3: parse error: unexpected character after '!': ' '");
  CHECK(Failure("a =~ b") == "1:3: parse error: unexpected character after '=': '~'");
}

TEST_CASE("what stands behind a flag is refused without it and named") {
  const Options none;
  CHECK(Failure("mad_over_time(foo[5m])", none) == R"(1:1: parse error: function "mad_over_time" is not enabled)");
  CHECK(Failure("limitk(1, foo)", none) ==
        "1:1: parse error: limitk() is experimental and must be enabled with "
        "--enable-feature=promql-experimental-functions");
  CHECK(Failure("foo[5m] anchored", none).starts_with("1:9: parse error: anchored modifier is experimental"));
  CHECK(Failure("a + fill(1) b", none).starts_with("1:5: parse error: binop fill modifiers are experimental"));
  CHECK(Parse("foo[5m + step()]", none).ok());
  Options strict;
  strict.duration_expressions = false;
  CHECK(Failure("foo[5m + step()]", strict) == "1:5: parse error: experimental duration expression is not enabled");
  CHECK(Parse("limitk + start + fill", none).ok());
}

TEST_CASE("positions cover the text of a node") {
  const std::string text = "sum by (a) (rate(foo{x=\"y\"}[5m] offset 1m)) + 2";
  const auto expr = Parse(text, kAll);
  REQUIRE(expr.ok());
  const auto slice = [&](const Expr& node) {
    return text.substr(static_cast<size_t>(node.position.begin),
                       static_cast<size_t>(node.position.end - node.position.begin));
  };
  const auto& binary = static_cast<const Binary&>(**expr);
  CHECK(slice(binary) == text);
  CHECK(slice(*binary.lhs) == "sum by (a) (rate(foo{x=\"y\"}[5m] offset 1m))");
  const auto& call = static_cast<const Call&>(*static_cast<const Aggregate&>(*binary.lhs).expr);
  CHECK(slice(call) == "rate(foo{x=\"y\"}[5m] offset 1m)");
  CHECK(slice(*call.arguments[0]) == "foo{x=\"y\"}[5m] offset 1m");
  CHECK(text.substr(static_cast<size_t>(binary.operator_position.begin), 1) == "+");
  CHECK(LineColumn("ab\ncd", 4) == "2:2");
}

TEST_CASE("nesting is bounded everywhere") {
  const auto nested = [](std::string_view open, std::string_view inner, std::string_view close, int n) {
    std::string text;
    for (int i = 0; i < n; ++i) text += open;
    text += inner;
    for (int i = 0; i < n; ++i) text += close;
    return text;
  };
  CHECK(Parse(nested("(", "1", ")", 200), kAll).ok());
  for (const auto& text : {nested("(", "1", ")", 100000), nested("-", "a", "", 100000), nested("1 + ", "1", "", 100000),
                           nested("2 ^ ", "1", "", 100000), nested("sum(", "x", ")", 100000),
                           "x[" + nested("(", "1m", ")", 100000) + "]", "x[" + nested("1m + ", "1m", "", 100000) + "]",
                           "x offset " + nested("-", "1m", "", 100000), nested("", "x", "[1m:1m]", 100000)}) {
    const auto expr = Parse(text, kAll);
    CHECK(!expr.ok());
  }
}

TEST_CASE("metric selectors stand alone") {
  const auto matchers = ParseMetricSelector("foo{a=\"b\"}");
  REQUIRE(matchers.ok());
  CHECK(matchers->size() == 2);
  CHECK(!ParseMetricSelector("foo[5m]").ok());
  CHECK(!ParseMetricSelector("foo + bar").ok());
  CHECK(!ParseMetricSelector("{}").ok());
  CHECK(!ParseMetricSelector("").ok());
  CHECK(ParseMetricSelector("{__name__=~\"a.*\"}").ok());
}

TEST_CASE("durations parse and print") {
  for (const std::string_view text : {"0s", "1ms", "1s500ms", "1h30m", "1d", "2w", "1y", "53w", "4d12h", "292y"}) {
    const auto ms = ParseDuration(text);
    INFO(text);
    REQUIRE(ms.ok());
    CHECK(FormatDuration(*ms) == (text == "53w" ? "53w" : text));
  }
  CHECK(*ParseDuration("0") == 0);
  for (const std::string_view text :
       {"", "1", "1h1h", "1m1h", "-1m", "1.5h", "1 m", "m", "1x", "99999999999999999999s", "300y"}) {
    INFO(text);
    CHECK(!ParseDuration(text).ok());
  }
  CHECK(FormatDuration(-90'000) == "-1m30s");
}

TEST_CASE("long expressions are broken over lines") {
  const auto expr = Parse(
      "histogram_quantile(0.99, sum by (le, cluster) (rate(request_duration_seconds_bucket{job=\"api\", "
      "env=\"production\"}[5m])))"
      " > on (cluster) group_left () topk(5, some_other_metric_with_a_long_name)",
      kAll);
  REQUIRE(expr.ok());
  CHECK(PrettyPrint(**expr) ==
        "  histogram_quantile(\n"
        "    0.99,\n"
        "    sum by (le, cluster) (rate(request_duration_seconds_bucket{env=\"production\",job=\"api\"}[5m]))\n"
        "  )\n"
        "> on (cluster) group_left ()\n"
        "  topk(5, some_other_metric_with_a_long_name)");
  CHECK(PrettyPrint(**Parse("foo+bar")) == "foo + bar");
}

}  // namespace
}  // namespace varve::promql
