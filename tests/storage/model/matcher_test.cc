#include "storage/model/matcher.h"

#include <re2/re2.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "storage/base/dice.h"
#include "storage/base/strings.h"

namespace varve::model {
namespace {

Matcher Make(MatchType type, std::string_view name, std::string_view value) {
  auto matcher = Matcher::Create(type, name, value);
  REQUIRE(matcher.ok());
  return *std::move(matcher);
}

TEST_CASE("the four kinds of matchers") {
  CHECK(Make(MatchType::kEqual, "a", "b").Matches("b"));
  CHECK_FALSE(Make(MatchType::kEqual, "a", "b").Matches("bb"));
  CHECK(Make(MatchType::kNotEqual, "a", "b").Matches("bb"));
  CHECK(Make(MatchType::kNotEqual, "a", "b").MatchesEmpty());
  CHECK(Make(MatchType::kRegex, "a", "b.*").Matches("b\nc"));
  CHECK_FALSE(Make(MatchType::kRegex, "a", "b").Matches("abc"));  // anchored
  CHECK(Make(MatchType::kRegex, "a", ".*").MatchesEmpty());
  CHECK_FALSE(Make(MatchType::kRegex, "a", ".+").MatchesEmpty());
  CHECK(Make(MatchType::kNotRegex, "a", "b|c").Matches("d"));
  CHECK_FALSE(Make(MatchType::kNotRegex, "a", "b|c").Matches("c"));
  CHECK(Matcher::Equal("a", "").MatchesEmpty());
  CHECK(Matcher::Equal("a", "b") == Make(MatchType::kEqual, "a", "b"));
}

TEST_CASE("a matcher prints as PromQL has it") {
  CHECK(Make(MatchType::kEqual, "a", "x\"y").ToString() == R"(a="x\"y")");
  CHECK(Make(MatchType::kNotRegex, "a.b", "x\\d").ToString() == R"("a.b"!~"x\\d")");
}

TEST_CASE("expressions that do not compile say why") {
  for (const std::string pattern : {"(", "[a", "a**", "(?P<n", "\\8", "x{1001}"}) {
    CAPTURE(pattern);
    const auto matcher = Matcher::Create(MatchType::kRegex, "a", pattern);
    REQUIRE_FALSE(matcher.ok());
    CHECK(absl::IsInvalidArgument(matcher.status()));
    CHECK(base::Message(matcher.status()).starts_with("error parsing regexp: "));
  }
}

TEST_CASE("sets are found in plain alternations only") {
  const auto set = [](std::string_view pattern) {
    const Matcher matcher = Make(MatchType::kRegex, "a", pattern);
    return std::vector<std::string>(matcher.set_matches().begin(), matcher.set_matches().end());
  };
  using Set = std::vector<std::string>;
  CHECK(set("a|b|c") == Set{"a", "b", "c"});
  CHECK(set("one") == Set{"one"});
  CHECK(set("") == Set{""});
  CHECK(set("a|") == Set{"a", ""});
  CHECK(set("a|b.*").empty());
  CHECK(set("a\\.b").empty());
  CHECK(set("(?i)a|b").empty());
}

TEST_CASE("prefixes are what every match begins with") {
  const auto prefix = [](std::string_view pattern) { return Make(MatchType::kRegex, "a", pattern).prefix(); };
  CHECK(prefix("node_.*") == "node_");
  CHECK(prefix("node_cpu") == "node_cpu");
  CHECK(prefix("ab*").size() <= 1);
  CHECK(prefix("ab?c").size() <= 1);
  CHECK(prefix("ab{0,3}").size() <= 1);
  CHECK(prefix("a|b").empty());
  CHECK(prefix("(?i)node").empty());
  CHECK(prefix("\xC3\xA4*").empty());  // a quantifier takes the whole character back
}

// Random expressions over few letters against random texts: whatever short cut is taken, RE2 has the last word.
TEST_CASE("short cuts never change what an expression matches") {
  const uint64_t seed = GENERATE(1u, 2u, 3u, 4u);
  CAPTURE(seed);
  base::Dice dice(seed);
  const std::vector<std::string> pieces = {"a",   "b",    "ab",       "|",    ".",     "*",   "+",
                                           "?",   "(",    ")",        "[ab]", "{0,2}", "^",   "$",
                                           "\\.", "(?i)", "\xC3\xA4", "(?:",  "\\d",   "\\Q", "\\E"};
  int compiled = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string pattern;
    for (size_t n = dice.Below(6); n > 0; --n) pattern += pieces[dice.Below(pieces.size())];
    CAPTURE(pattern);
    const auto matcher = Matcher::Create(MatchType::kRegex, "l", pattern);
    RE2::Options options;
    options.set_dot_nl(true);
    options.set_log_errors(false);
    const RE2 oracle("\\A(?:" + pattern + ")\\z", options);
    const RE2 alone(pattern, options);
    REQUIRE(matcher.ok() == alone.ok());
    if (!matcher.ok() || !oracle.ok()) continue;
    ++compiled;
    const Matcher negated = Make(MatchType::kNotRegex, "l", pattern);
    for (int k = 0; k < 30; ++k) {
      std::string text;
      static const std::vector<std::string> kLetters = {"a", "b", "A", "\xC3\xA4", "\n", ".", "1"};
      for (size_t n = k == 0 ? 0 : dice.Below(5); n > 0; --n) text += kLetters[dice.Below(kLetters.size())];
      CAPTURE(text);
      // FullMatch anchors as we do; \A and \z say the same in the expression itself.
      const bool expected = RE2::PartialMatch(text, oracle);
      CHECK(matcher->Matches(text) == expected);
      CHECK(negated.Matches(text) == !expected);
      if (expected) CHECK(text.starts_with(matcher->prefix()));
      if (!matcher->set_matches().empty()) {
        const auto set = matcher->set_matches();
        CHECK((std::find(set.begin(), set.end(), text) != set.end()) == expected);
      }
    }
    CHECK(matcher->MatchesEmpty() == matcher->Matches(""));
  }
  CHECK(compiled > 1000);
}

TEST_CASE("all matchers have to match and absent labels are empty") {
  const Labels labels = Labels::Of({{"__name__", "up"}, {"job", "node"}});
  const std::vector<Matcher> both = {Matcher::Equal("__name__", "up"), Make(MatchType::kRegex, "job", "n.*")};
  CHECK(MatchesAll(both, labels));
  CHECK(MatchesAll({}, labels));
  CHECK(MatchesAll(std::vector<Matcher>{Matcher::Equal("absent", "")}, labels));
  CHECK_FALSE(MatchesAll(std::vector<Matcher>{Make(MatchType::kNotEqual, "absent", "")}, labels));
  CHECK_FALSE(MatchesAll(std::vector<Matcher>{both[0], Matcher::Equal("job", "x")}, labels));
}

}  // namespace
}  // namespace varve::model
