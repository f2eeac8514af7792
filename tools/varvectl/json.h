#pragma once
// Answers of the server, read. Members keep their order; numbers keep their text, so that nothing is rounded on the way
// to the screen.
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/status.h"

namespace varve::ctl {

struct Json {
  enum class Kind { kNull, kBool, kNumber, kText, kArray, kObject };
  Kind kind = Kind::kNull;
  std::string text;  // of a text, a number ("1e3") or a bool ("true")
  std::vector<Json> items;
  struct Member;
  std::vector<Member> members;

  const Json& operator[](std::string_view key) const;  // a null one when absent
  const Json& operator[](size_t i) const;              // a null one when out of bounds
  bool Has(std::string_view key) const;
  bool is_null() const { return kind == Kind::kNull; }
  double number() const;  // NaN when it is none

  static absl::StatusOr<Json> Parse(std::string_view text);  // InvalidArgument names the byte
};

struct Json::Member {
  std::string key;
  Json value;
};

std::string ToYaml(const Json& json);

}  // namespace varve::ctl
