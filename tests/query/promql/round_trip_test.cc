// Random expressions, printed and parsed again.
#include <catch2/catch.hpp>

#include "query/promql/parser.h"
#include "storage/base/dice.h"
#include "storage/base/strings.h"

namespace varve::promql {
namespace {

using base::StrCat;

class Author {  // writes random PromQL that is well-typed
 public:
  explicit Author(uint64_t seed) : dice_(seed) {}

  std::string Scalar(int depth) {
    if (depth <= 0)
      return Pick({"1", "-2.5", "0x1F", "1e3", "Inf", "NaN", "5m", "017", "-Inf", "1_000", "time()", "pi()"});
    switch (dice_.Below(6)) {
      case 0:
        return StrCat("(", Scalar(depth - 1), ")");
      case 1:
        return StrCat("-", Scalar(depth - 1));
      case 2:
        return StrCat("scalar(", Vector(depth - 1), ")");
      case 3:
        return StrCat(Scalar(depth - 1), Pick({" > bool ", " == bool "}), Scalar(depth - 1));
      case 4:
        return StrCat("max_of(", Scalar(depth - 1), ",", Scalar(depth - 1), ")");
      default:
        return StrCat(Scalar(depth - 1), Pick({"+", "-", "*", "/", "%", "^", " atan2 "}), Scalar(depth - 1));
    }
  }

  std::string Vector(int depth) {
    if (depth <= 0) return Selector() + Modifiers();
    switch (dice_.Below(9)) {
      case 0:
        return StrCat("(", Vector(depth - 1), ")");
      case 1:
        return StrCat(Pick({"-", "+"}), Vector(depth - 1));
      case 2:
        return Join(depth);
      case 3:
        return StrCat(Vector(depth - 1), Pick({" > bool ", " + ", "^", " </ ", " >/ ", " <= "}), Scalar(depth - 1));
      case 4:
        return StrCat(Pick({"sum", "count", "group"}), Grouping(), "(", Vector(depth - 1), ")");
      case 5:
        return StrCat(Pick({"topk", "quantile", "limitk"}), "(", Scalar(depth - 1), ",", Vector(depth - 1), ")",
                      Grouping());
      case 6:
        return StrCat(Pick({"rate", "sum_over_time", "deriv"}), "(", Matrix(depth - 1), ")");
      case 7:
        return StrCat("label_replace(", Vector(depth - 1), R"(,"d\u00e9","$1",'s',`(.*)`))");
      default:
        return StrCat("count_values('v\\n',", Vector(depth - 1), ")");
    }
  }

  std::string Matrix(int depth) {
    const std::string extension = dice_.OneIn(6) ? Pick({" anchored", " smoothed"}) : "";
    if (dice_.OneIn(2)) return StrCat(Selector(), "[", Duration(2), "]", extension, Modifiers());
    return StrCat("(", Vector(depth), ")[", Duration(2), ":", dice_.OneIn(2) ? Duration(1) : "", "]", Modifiers());
  }

 private:
  std::string Pick(std::initializer_list<std::string_view> from) {
    return std::string(from.begin()[dice_.Below(from.size())]);
  }
  std::string Selector() {
    return Pick({"foo", "a:b{}", "{__name__=\"x\"}", "sum{b=\"1\",a!=\"2\"}", "{\"utf.8\"}", "by", "or{or=~\"a|b\"}",
                 "start", "x{\"l.n\"!~\"a\\\\d\", c=''}", "fill"});
  }
  std::string Modifiers() {
    std::string at = dice_.OneIn(4) ? Pick({" @ 1.25", " @ start()", " @ end()", " @ -7"}) : "";
    std::string offset =
        dice_.OneIn(4) ? StrCat(" offset ", Pick({"5m", "-1.5", "(1m + 2)", "step()", "-(range() * 2)", "-step()"}))
                       : "";
    return dice_.OneIn(2) ? at + offset : offset + at;
  }
  std::string Duration(int depth) {
    if (depth <= 0 || dice_.OneIn(2)) return Pick({"5m", "90", "1h30m", "step()", "range()", "0.5"});
    switch (dice_.Below(4)) {
      case 0:
        return StrCat("(", Duration(depth - 1), ")");
      case 1:
        return StrCat("min_of(", Duration(depth - 1), ",", Duration(depth - 1), ")");
      case 2:
        return StrCat("1h + -", Duration(0), "^2");
      default:
        return StrCat(Duration(depth - 1), Pick({"+", "*", "/", "%", "^", "-"}), Duration(depth - 1));
    }
  }
  std::string Grouping() {
    if (dice_.OneIn(2)) return " ";
    return StrCat(Pick({" by", " without"}), "(", Pick({"", "a", "a,by", "\"x.y\",", "bool"}), ") ");
  }
  // Matching clauses need vectors on both sides, which only parentheses make sure of.
  std::string Join(int depth) {
    const std::string op = Operator();
    if (op.find("o") == std::string::npos && op.find("fill") == std::string::npos) {
      return StrCat(Vector(depth - 1), op, Vector(depth - 1));
    }
    return StrCat("(", Vector(depth - 1), ")", op, "(", Vector(depth - 1), ")");
  }
  std::string Operator() {
    std::string op =
        Pick({"+", "-", "*", "/", "%", "^", " atan2 ", "==", "> bool", "</", ">/", " and ", " or ", " unless "});
    const bool set = op == " and " || op == " or " || op == " unless ";
    if (dice_.OneIn(3)) {
      op += Pick({" on()", " on(a,b)", " ignoring(c)", " ignoring()"});
      if (!set && dice_.OneIn(2)) op += Pick({" group_left()", " group_right(z)", " group_left(y, z)"});
    }
    if (!set && dice_.OneIn(6)) op += Pick({" fill(0)", " fill_left(NaN)", " fill_left(1) fill_right(-Inf)"});
    return op + " ";
  }
  base::Dice dice_;
};

TEST_CASE("printed expressions parse to the same tree") {
  constexpr Options kAll{true, true, true, true};
  constexpr uint64_t kSeed = 20260101;
  for (uint64_t i = 0; i < 6'000; ++i) {
    Author author(kSeed + i);
    const std::string text = author.Vector(static_cast<int>(i % 5));
    INFO("seed " << kSeed + i << ": " << text);
    const auto expr = Parse(text, kAll);
    if (!expr.ok()) FAIL(base::Message(expr.status()));
    const std::string printed = Print(**expr);
    INFO("printed: " << printed);
    const auto again = Parse(printed, kAll);
    if (!again.ok()) FAIL(base::Message(again.status()));
    if (!Equal(**expr, **again)) FAIL("another tree: " << Print(**again));
    if (Print(**again) != printed) FAIL("another text: " << Print(**again));
    const auto pretty = Parse(PrettyPrint(**expr), kAll);
    if (!pretty.ok()) FAIL(base::Message(pretty.status()) << "\n" << PrettyPrint(**expr));
    if (!Equal(**expr, **pretty)) FAIL("pretty is another tree: " << PrettyPrint(**expr));
    const ExprPtr copy = Clone(**expr);
    if (!Equal(**expr, *copy) || Print(*copy) != printed || copy->depth != (*expr)->depth) FAIL("the copy differs");
  }
}

}  // namespace
}  // namespace varve::promql
