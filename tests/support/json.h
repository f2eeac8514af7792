#pragma once
// Just enough JSON for reading answers in tests.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace varve::test {

struct Json {
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject } kind = Kind::kNull;
  bool boolean = false;
  std::string text;  // of a string; of a number as it was written
  std::vector<Json> items;
  std::map<std::string, Json> members;

  const Json& operator[](std::string_view key) const;  // a null Json when absent
  const Json& operator[](size_t i) const { return items.at(i); }
  size_t size() const { return kind == Kind::kObject ? members.size() : items.size(); }
  double number() const;
  bool is_null() const { return kind == Kind::kNull; }
  // Nothing when the text is not JSON.
  static std::optional<Json> Parse(std::string_view text);
};

}  // namespace varve::test
