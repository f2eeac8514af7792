#pragma once
// std::string_view on this side, Debian's absl::string_view on that side. Also number formatting that PromQL needs.
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/strings/string_view.h>

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace varve::base {

inline absl::string_view ToAbsl(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view FromAbsl(absl::string_view s) { return {s.data(), s.size()}; }

inline void StrAppendPiece(std::string& out, std::string_view piece) { out += piece; }
inline void StrAppendPiece(std::string& out, char piece) { out += piece; }
// A template, since a string literal would rather become a bool than a string_view.
template <std::same_as<bool> T>
void StrAppendPiece(std::string& out, T piece) {
  out += piece ? "true" : "false";
}
template <std::integral T>
  requires(!std::same_as<T, bool>)
void StrAppendPiece(std::string& out, T piece) {
  char buffer[24];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, piece).ptr);
}
template <std::floating_point T>
void StrAppendPiece(std::string& out, T piece) {  // shortest text that reads back as the same number
  char buffer[40];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, piece).ptr);
}
template <class... Pieces>
void StrAppend(std::string& out, const Pieces&... pieces) {
  (StrAppendPiece(out, pieces), ...);
}
template <class... Pieces>
std::string StrCat(const Pieces&... pieces) {
  std::string out;
  (StrAppendPiece(out, pieces), ...);
  return out;
}
std::string StrJoin(std::span<const std::string> parts, std::string_view separator);
// Splits at every separator; "a,,b" gives three parts and "" gives one empty part.
std::vector<std::string_view> StrSplit(std::string_view text, char separator);
std::string_view StrTrim(std::string_view text);  // ASCII white space
std::string AsciiLower(std::string_view text);

// The whole text as a decimal number, or nothing.
std::optional<int64_t> ParseInt64(std::string_view text);
std::optional<uint64_t> ParseUint64(std::string_view text);
// Like Go's strconv.ParseFloat(text, 64): decimal or hexadecimal, "Inf", "+Inf", "-inf", "infinity", "NaN" in any case.
// A number too large for a double is ±Inf, as Prometheus' text parser takes it.
std::optional<double> ParseDouble(std::string_view text);

bool IsValidUtf8(std::string_view text);
void AppendUtf8(std::string& out, uint32_t rune);  // a code point up to 0x10FFFF
// `text` in double quotes with Go's escapes (strconv.Quote): printable UTF-8 stays as it is.
std::string QuoteGo(std::string_view text);
// `text` as a JSON string. Bytes that are not UTF-8 become U+FFFD, control characters \n, \r, \t or \u00xx: one line,
// fit for a terminal.
void AppendJsonString(std::string& out, std::string_view text);

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return absl::Hash<std::string_view>{}(s); }
};
struct StringEqual {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const { return a == b; }
};
// Maps keyed by std::string that are searched with std::string_view without a copy.
template <class V>
using StringMap = absl::flat_hash_map<std::string, V, StringHash, StringEqual>;
using StringSet = absl::flat_hash_set<std::string, StringHash, StringEqual>;

}  // namespace varve::base
