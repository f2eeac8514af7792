#include "storage/base/float_text.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace varve::base {

namespace {

struct Digits {  // d.ddd * 10^exponent
  char text[24];
  int count = 0;
  int exponent = 0;
};

Digits Shortest(double magnitude) {
  char buffer[40];
  const char* end = std::to_chars(buffer, buffer + sizeof buffer, magnitude, std::chars_format::scientific).ptr;
  Digits out;
  const char* p = buffer;
  for (; p != end && *p != 'e'; ++p) {
    if (*p != '.') out.text[out.count++] = *p;
  }
  if (p != end) {
    const char* number = p + 1;
    if (*number == '+') ++number;  // from_chars takes no plus
    std::from_chars(number, end, out.exponent);
  }
  return out;
}

// Writes what has no digits; true when that was all.
bool AppendSpecial(std::string& out, double v) {
  if (std::isnan(v)) return out += "NaN", true;
  if (std::isinf(v)) return out += v > 0 ? "+Inf" : "-Inf", true;
  return false;
}

void AppendFixedDigits(std::string& out, const Digits& d) {
  if (d.exponent < 0) {
    out += "0.";
    out.append(static_cast<size_t>(-d.exponent - 1), '0');
    out.append(d.text, static_cast<size_t>(d.count));
    return;
  }
  const int whole = d.exponent + 1;
  if (d.count <= whole) {
    out.append(d.text, static_cast<size_t>(d.count));
    out.append(static_cast<size_t>(whole - d.count), '0');
    return;
  }
  out.append(d.text, static_cast<size_t>(whole));
  out += '.';
  out.append(d.text + whole, static_cast<size_t>(d.count - whole));
}

void AppendExponentDigits(std::string& out, const Digits& d) {
  out += d.text[0];
  if (d.count > 1) {
    out += '.';
    out.append(d.text + 1, static_cast<size_t>(d.count - 1));
  }
  out += 'e';
  out += d.exponent < 0 ? '-' : '+';
  const int magnitude = std::abs(d.exponent);
  if (magnitude < 10) out += '0';
  char buffer[8];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, magnitude).ptr);
}

}  // namespace

char* WriteFloatQuick(char* out, double v) {
  const double magnitude = std::fabs(v);
  if (!(magnitude < 1e15) || magnitude < 1e-6) return nullptr;  // zero too, which may have a sign
  char* const limit = out + kFloatQuickBytes;
  if (const auto whole = static_cast<int64_t>(v); static_cast<double>(whole) == v) {
    return std::to_chars(out, limit, whole).ptr;
  }
  // Up to three decimals and at most 15 digits: two such decimals never share a double, so the one found is the
  // shortest.
  if (magnitude < 1e12 && magnitude >= 1e-3) {
    const auto scaled = static_cast<int64_t>(magnitude * 1000 + 0.5);
    if (static_cast<double>(scaled) / 1000 == magnitude) {
      if (v < 0) *out++ = '-';
      char* end = std::to_chars(out, limit, scaled / 1000).ptr;
      const auto rest = static_cast<int>(scaled % 1000);
      *end++ = '.';
      *end++ = static_cast<char>('0' + rest / 100);
      *end++ = static_cast<char>('0' + rest / 10 % 10);
      *end++ = static_cast<char>('0' + rest % 10);
      while (end[-1] == '0') --end;
      return end;
    }
  }
  // Below 2^53 the digits that to_chars lays out are the shortest ones; above it would print the exact integer.
  return std::to_chars(out, limit, v, std::chars_format::fixed).ptr;
}

void AppendFloatFixed(std::string& out, double v) {
  char buffer[kFloatQuickBytes];
  if (char* end = WriteFloatQuick(buffer, v); end != nullptr) {
    out.append(buffer, end);
    return;
  }
  if (AppendSpecial(out, v)) return;
  if (std::signbit(v)) out += '-';
  AppendFixedDigits(out, Shortest(std::fabs(v)));
}

void AppendFloatExponent(std::string& out, double v) {
  if (AppendSpecial(out, v)) return;
  if (std::signbit(v)) out += '-';
  AppendExponentDigits(out, Shortest(std::fabs(v)));
}

void AppendFloatGeneral(std::string& out, double v) {
  if (AppendSpecial(out, v)) return;
  if (std::signbit(v)) out += '-';
  const Digits d = Shortest(std::fabs(v));
  if (d.exponent < -4 || d.exponent > 5) {
    AppendExponentDigits(out, d);
  } else {
    AppendFixedDigits(out, d);
  }
}

std::string FloatFixed(double v) {
  std::string out;
  AppendFloatFixed(out, v);
  return out;
}

std::string FloatGeneral(double v) {
  std::string out;
  AppendFloatGeneral(out, v);
  return out;
}

}  // namespace varve::base
