#include "tests/support/json.h"

#include <cstdlib>

namespace varve::test {

namespace {

void PutUtf8(std::string& out, unsigned code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 63));
  } else {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 63));
    out += static_cast<char>(0x80 | (code & 63));
  }
}

struct Parser {
  std::string_view in;
  size_t at = 0;

  void Space() {
    while (at < in.size() && (in[at] == ' ' || in[at] == '\n' || in[at] == '\t' || in[at] == '\r')) ++at;
  }
  bool Take(char c) {
    Space();
    if (at >= in.size() || in[at] != c) return false;
    ++at;
    return true;
  }
  bool String(std::string& out) {
    if (!Take('"')) return false;
    while (at < in.size() && in[at] != '"') {
      if (static_cast<unsigned char>(in[at]) < 0x20) return false;
      if (in[at] != '\\') {
        out += in[at++];
        continue;
      }
      if (++at >= in.size()) return false;
      const char c = in[at++];
      switch (c) {
        case 'n':
          out += '\n';
          break;
        case 't':
          out += '\t';
          break;
        case 'r':
          out += '\r';
          break;
        case 'b':
          out += '\b';
          break;
        case 'f':
          out += '\f';
          break;
        case 'u':
          if (at + 4 > in.size()) return false;
          PutUtf8(out, static_cast<unsigned>(std::strtoul(std::string(in.substr(at, 4)).c_str(), nullptr, 16)));
          at += 4;
          break;
        default:
          out += c;
      }
    }
    return Take('"');
  }
  bool Value(Json& out) {
    Space();
    if (at >= in.size()) return false;
    if (in[at] == '{') {
      ++at;
      out.kind = Json::Kind::kObject;
      if (Take('}')) return true;
      do {
        std::string key;
        if (Space(), !String(key) || !Take(':') || !Value(out.members[key])) return false;
      } while (Take(','));
      return Take('}');
    }
    if (in[at] == '[') {
      ++at;
      out.kind = Json::Kind::kArray;
      if (Take(']')) return true;
      do {
        if (!Value(out.items.emplace_back())) return false;
      } while (Take(','));
      return Take(']');
    }
    if (in[at] == '"') {
      out.kind = Json::Kind::kString;
      return String(out.text);
    }
    for (const auto& [word, kind, boolean] : {std::tuple{std::string_view("null"), Json::Kind::kNull, false},
                                              std::tuple{std::string_view("true"), Json::Kind::kBool, true},
                                              std::tuple{std::string_view("false"), Json::Kind::kBool, false}}) {
      if (in.substr(at).starts_with(word)) {
        at += word.size();
        out.kind = kind;
        out.boolean = boolean;
        return true;
      }
    }
    out.kind = Json::Kind::kNumber;
    while (at < in.size() && (std::isdigit(static_cast<unsigned char>(in[at])) || in[at] == '-' || in[at] == '+' ||
                              in[at] == '.' || in[at] == 'e' || in[at] == 'E')) {
      out.text += in[at++];
    }
    return !out.text.empty();
  }
};

}  // namespace

const Json& Json::operator[](std::string_view key) const {
  static const Json kNull;
  const auto it = members.find(std::string(key));
  return it == members.end() ? kNull : it->second;
}

double Json::number() const { return std::strtod(text.c_str(), nullptr); }

std::optional<Json> Json::Parse(std::string_view text) {
  Parser parser{text};
  Json out;
  if (!parser.Value(out)) return std::nullopt;
  parser.Space();
  if (parser.at != text.size()) return std::nullopt;
  return out;
}

}  // namespace varve::test
