#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "storage/base/status.h"
#include "storage/model/labels.h"

namespace varve::model {

enum class MatchType : uint8_t { kEqual = 0, kNotEqual = 1, kRegex = 2, kNotRegex = 3 };
std::string_view ToString(MatchType type);  // "=", "!=", "=~", "!~"

// One label matcher. Regular expressions are RE2's, fully anchored, `.` matches newlines. Immutable and cheap to copy;
// matching may be done from any thread.
class Matcher {
 public:
  // InvalidArgument carries the regular expression compiler's words.
  static absl::StatusOr<Matcher> Create(MatchType type, std::string_view name, std::string_view value);
  static Matcher Equal(std::string_view name, std::string_view value);

  MatchType type() const { return type_; }
  const std::string& name() const { return name_; }
  const std::string& value() const { return value_; }
  bool Matches(std::string_view value) const;  // "" stands for an absent label
  bool MatchesEmpty() const { return matches_empty_; }
  // The literal that every match begins with; "" when unknown. Lets an index skip values.
  const std::string& prefix() const { return prefix_; }
  // The finite set of values that match, when the expression is a plain alternation such as "a|b|c"; else empty.
  std::span<const std::string> set_matches() const { return set_; }
  std::string ToString() const;  // name="value", quoted as PromQL quotes
  bool operator==(const Matcher& other) const {
    return type_ == other.type_ && name_ == other.name_ && value_ == other.value_;
  }

 private:
  struct Regex;
  Matcher(MatchType type, std::string_view name, std::string_view value);
  MatchType type_;
  bool matches_empty_ = false;
  std::string name_, value_, prefix_;
  std::vector<std::string> set_;
  std::shared_ptr<const Regex> regex_;
};

bool MatchesAll(std::span<const Matcher> matchers, LabelsView labels);

}  // namespace varve::model
