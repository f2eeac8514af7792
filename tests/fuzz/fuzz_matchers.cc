// A selector, then (after a NUL) a value that every matcher is tried on: shortcuts must agree with the full match.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "query/promql/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace varve;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t nul = input.find('\0');
  const std::string_view value = nul == std::string_view::npos ? std::string_view() : input.substr(nul + 1);
  const auto matchers = promql::ParseMetricSelector(input.substr(0, nul));
  if (!matchers.ok()) return 0;
  for (const model::Matcher& matcher : *matchers) {
    const bool matches = matcher.Matches(value);
    const bool positive = matcher.type() == model::MatchType::kRegex || matcher.type() == model::MatchType::kEqual;
    const auto set = matcher.set_matches();
    bool wrong = matcher.MatchesEmpty() != matcher.Matches("");
    if (positive && matches) {
      wrong = wrong || !value.starts_with(matcher.prefix());
      if (!set.empty()) wrong = wrong || std::find(set.begin(), set.end(), value) == set.end();
    }
    const auto again = model::Matcher::Create(matcher.type(), matcher.name(), matcher.value());
    wrong = wrong || !again.ok() || again->Matches(value) != matches;
    if (wrong) {
      std::fprintf(stderr, "%s on %zu bytes\n", matcher.ToString().c_str(), value.size());
      std::abort();
    }
  }
  return 0;
}
