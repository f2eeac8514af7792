#include "storage/base/strings.h"

#include <cmath>
#include <limits>

namespace varve::base {

std::string StrJoin(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::vector<std::string_view> StrSplit(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != std::string_view::npos; begin = end + 1) {
    parts.push_back(text.substr(begin, end - begin));
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string_view StrTrim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string AsciiLower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

namespace {
template <class T>
std::optional<T> ParseWhole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}
}  // namespace

std::optional<int64_t> ParseInt64(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  return ParseWhole<int64_t>(text);
}
std::optional<uint64_t> ParseUint64(std::string_view text) { return ParseWhole<uint64_t>(text); }

std::optional<double> ParseDouble(std::string_view text) {
  bool negative = false;
  std::string_view rest = text;
  if (rest.starts_with('+') || rest.starts_with('-')) {
    negative = rest.front() == '-';
    rest.remove_prefix(1);
  }
  if (rest.empty() || rest.front() == '+' || rest.front() == '-') return std::nullopt;
  const double sign = negative ? -1.0 : 1.0;
  const char first = rest.front();
  if (first == 'i' || first == 'I' || first == 'n' || first == 'N') {
    const std::string lower = AsciiLower(rest);
    if (lower == "inf" || lower == "infinity") return sign * std::numeric_limits<double>::infinity();
    if (lower == "nan") return std::numeric_limits<double>::quiet_NaN();
    return std::nullopt;
  }
  auto format = std::chars_format::general;
  if (rest.size() > 2 && rest[0] == '0' && (rest[1] == 'x' || rest[1] == 'X')) {
    format = std::chars_format::hex;
    rest.remove_prefix(2);
  }
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value, format);
  if (end != rest.data() + rest.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // from_chars does not say which side; the exponent's sign does.
    const size_t exponent = rest.find_first_of(format == std::chars_format::hex ? "pP" : "eE");
    const bool tiny = exponent != std::string_view::npos ? rest.find('-', exponent) != std::string_view::npos
                                                         : rest.starts_with("0.") || rest.starts_with('.');
    return sign * (tiny ? 0.0 : std::numeric_limits<double>::infinity());
  }
  if (error != std::errc()) return std::nullopt;
  return sign * value;
}

namespace {
// Length of the valid UTF-8 sequence at `p`, or 0. Overlong forms, surrogates and values above U+10FFFF are invalid.
size_t Utf8Length(const unsigned char* p, size_t left) {
  const unsigned char c = p[0];
  if (c < 0x80) return 1;
  const auto continues = [&](size_t i) { return i < left && (p[i] & 0xC0) == 0x80; };
  if (c >= 0xC2 && c <= 0xDF) return continues(1) ? 2 : 0;
  if (c >= 0xE0 && c <= 0xEF) {
    if (!continues(1) || !continues(2)) return 0;
    if (c == 0xE0 && p[1] < 0xA0) return 0;
    if (c == 0xED && p[1] > 0x9F) return 0;
    return 3;
  }
  if (c >= 0xF0 && c <= 0xF4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    if (c == 0xF0 && p[1] < 0x90) return 0;
    if (c == 0xF4 && p[1] > 0x8F) return 0;
    return 4;
  }
  return 0;
}
}  // namespace

bool IsValidUtf8(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  size_t left = text.size();
  while (left > 0) {
    while (left >= 8) {  // eight ASCII bytes at a time
      uint64_t word;
      __builtin_memcpy(&word, p, 8);
      if ((word & 0x8080808080808080u) != 0) break;
      p += 8, left -= 8;
    }
    if (left == 0) break;
    const size_t n = Utf8Length(p, left);
    if (n == 0) return false;
    p += n, left -= n;
  }
  return true;
}

namespace {
// What Go's strconv.IsPrint refuses beyond ASCII: separators, controls, formatting and private use. Code points that
// Unicode has not assigned are refused there as well and let through here; the table would be twenty times as long.
bool IsPrintable(uint32_t rune) {
  struct Range {
    uint32_t first, last;
  };
  static constexpr Range kNot[] = {
      {0x80, 0xA0},       {0xAD, 0xAD},       {0x600, 0x605},     {0x61C, 0x61C},      {0x6DD, 0x6DD},
      {0x70F, 0x70F},     {0x890, 0x891},     {0x8E2, 0x8E2},     {0x1680, 0x1680},    {0x180E, 0x180E},
      {0x2000, 0x200F},   {0x2028, 0x202F},   {0x205F, 0x206F},   {0x3000, 0x3000},    {0xD800, 0xF8FF},
      {0xFEFF, 0xFEFF},   {0xFFF0, 0xFFFB},   {0xFFFE, 0xFFFF},   {0x110BD, 0x110BD},  {0x110CD, 0x110CD},
      {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE00FF}, {0xE01F0, 0x10FFFF},
  };
  for (const Range& range : kNot) {
    if (range.first <= rune && rune <= range.last) return false;
  }
  return true;
}

uint32_t Rune(std::string_view utf8) {  // 2 to 4 bytes that are valid
  auto rune = static_cast<unsigned char>(utf8[0]) & (0xFFu >> (utf8.size() + 1));
  for (const char c : utf8.substr(1)) rune = rune << 6 | (static_cast<unsigned char>(c) & 0x3F);
  return rune;
}
}  // namespace

void AppendUtf8(std::string& out, uint32_t rune) {
  if (rune < 0x80) {
    out += static_cast<char>(rune);
  } else if (rune < 0x800) {
    out += static_cast<char>(0xC0 | rune >> 6);
    out += static_cast<char>(0x80 | (rune & 0x3F));
  } else if (rune < 0x10000) {
    out += static_cast<char>(0xE0 | rune >> 12);
    out += static_cast<char>(0x80 | (rune >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (rune & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | rune >> 18);
    out += static_cast<char>(0x80 | (rune >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (rune >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (rune & 0x3F));
  }
}

std::string QuoteGo(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x80) {
      switch (c) {
        case '"':
          out += "\\\"";
          break;
        case '\\':
          out += "\\\\";
          break;
        case '\a':
          out += "\\a";
          break;
        case '\b':
          out += "\\b";
          break;
        case '\f':
          out += "\\f";
          break;
        case '\n':
          out += "\\n";
          break;
        case '\r':
          out += "\\r";
          break;
        case '\t':
          out += "\\t";
          break;
        case '\v':
          out += "\\v";
          break;
        default:
          if (c < 0x20 || c == 0x7F) {
            out += "\\x";
            out += kHex[c >> 4];
            out += kHex[c & 15];
          } else {
            out += static_cast<char>(c);
          }
      }
      ++i;
      continue;
    }
    const size_t n = Utf8Length(reinterpret_cast<const unsigned char*>(text.data()) + i, text.size() - i);
    if (n == 0) {
      out += "\\x";
      out += kHex[c >> 4];
      out += kHex[c & 15];
      ++i;
    } else {
      const std::string_view utf8 = text.substr(i, n);
      const uint32_t rune = Rune(utf8);
      if (IsPrintable(rune)) {
        out += utf8;
      } else {
        out += rune > 0xFFFF ? "\\U" : "\\u";
        for (int shift = rune > 0xFFFF ? 28 : 12; shift >= 0; shift -= 4) out += kHex[rune >> shift & 15];
      }
      i += n;
    }
  }
  out += '"';
  return out;
}

void AppendJsonString(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t n = Utf8Length(reinterpret_cast<const unsigned char*>(text.data()) + i, text.size() - i);
    if (n == 0) {
      out += "\xEF\xBF\xBD";
      ++i;
      continue;
    }
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (c < 0x20 || c == 0x7F) {
      out += "\\u00";
      out += kHex[c >> 4];
      out += kHex[c & 15];
    } else {
      out += text.substr(i, n);
    }
    i += n;
  }
  out += '"';
}

}  // namespace varve::base
