#include "storage/model/matcher.h"

#include <re2/re2.h>

#include "storage/base/strings.h"

namespace varve::model {

struct Matcher::Regex {
  explicit Regex(std::string_view pattern, const RE2::Options& options)
      : re(re2::StringPiece(pattern.data(), pattern.size()), options) {}
  RE2 re;
};

std::string_view ToString(MatchType type) {
  static constexpr std::string_view kTexts[] = {"=", "!=", "=~", "!~"};
  return kTexts[static_cast<int>(type)];
}

Matcher::Matcher(MatchType type, std::string_view name, std::string_view value)
    : type_(type), name_(name), value_(value) {}

Matcher Matcher::Equal(std::string_view name, std::string_view value) {
  Matcher matcher(MatchType::kEqual, name, value);
  matcher.matches_empty_ = value.empty();
  matcher.prefix_ = value;
  return matcher;
}

namespace {
constexpr std::string_view kMeta = R"(\.+*?()|[]{}^$)";

// "a|b|c" without any other special character, or nothing.
std::vector<std::string> PlainAlternatives(std::string_view pattern) {
  std::vector<std::string> out;
  for (const std::string_view part : base::StrSplit(pattern, '|')) {
    if (part.find_first_of(kMeta) != std::string_view::npos) return {};
    out.emplace_back(part);
  }
  return out;
}

// Literal text before the first special character. A quantifier that may repeat zero times takes its character back.
std::string LiteralPrefix(std::string_view pattern) {
  if (pattern.find('|') != std::string_view::npos || pattern.starts_with("(?")) return "";
  const size_t end = pattern.find_first_of(kMeta);
  if (end == std::string_view::npos) return std::string(pattern);
  size_t keep = end;
  // "(?i)" and "\Q\E" are nothing that could be repeated, so a quantifier behind them reaches over to the character
  // before.
  const std::string_view rest = pattern.substr(end);
  const bool nothing =
      (rest.starts_with("(?") && !rest.starts_with("(?:")) || rest.starts_with("\\Q") || rest.starts_with("\\E");
  if (nothing || pattern[end] == '*' || pattern[end] == '?' || pattern[end] == '{') {
    if (keep > 0) --keep;
    while (keep > 0 && (static_cast<unsigned char>(pattern[keep]) & 0xC0) == 0x80) --keep;
  }
  return std::string(pattern.substr(0, keep));
}
}  // namespace

absl::StatusOr<Matcher> Matcher::Create(MatchType type, std::string_view name, std::string_view value) {
  Matcher matcher(type, name, value);
  if (type == MatchType::kRegex || type == MatchType::kNotRegex) {
    RE2::Options options;
    options.set_dot_nl(true);
    options.set_log_errors(false);
    auto regex = std::make_shared<Regex>(value, options);
    if (!regex->re.ok()) {
      return absl::InvalidArgumentError(base::StrCat("error parsing regexp: ", regex->re.error()));
    }
    matcher.regex_ = std::move(regex);
    matcher.set_ = PlainAlternatives(value);
    matcher.prefix_ = LiteralPrefix(value);
  } else if (type == MatchType::kEqual) {
    matcher.prefix_ = value;
  }
  matcher.matches_empty_ = matcher.Matches("");
  return matcher;
}

bool Matcher::Matches(std::string_view value) const {
  switch (type_) {
    case MatchType::kEqual:
      return value == value_;
    case MatchType::kNotEqual:
      return value != value_;
    default:
      break;
  }
  bool matches;
  if (!set_.empty()) {
    matches = false;
    for (const std::string& member : set_) matches = matches || member == value;
  } else {
    matches = RE2::FullMatch(re2::StringPiece(value.data(), value.size()), regex_->re);
  }
  return matches == (type_ == MatchType::kRegex);
}

std::string Matcher::ToString() const {
  return base::StrCat(IsClassicLabelName(name_) ? name_ : base::QuoteGo(name_), model::ToString(type_),
                      base::QuoteGo(value_));
}

bool MatchesAll(std::span<const Matcher> matchers, LabelsView labels) {
  for (const Matcher& matcher : matchers) {
    if (!matcher.Matches(labels.Get(matcher.name()))) return false;
  }
  return true;
}

}  // namespace varve::model
