#include "tools/varvectl/json.h"

#include <limits>

#include "storage/base/strings.h"

namespace varve::ctl {
namespace {

constexpr int kDepthMax = 200;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<Json> Document() {
    ASSIGN_OR_RETURN(Json json, Value(0));
    Space();
    if (at_ != text_.size()) return Bad("something after the end");
    return json;
  }

 private:
  absl::Status Bad(std::string_view what) const {
    return absl::InvalidArgumentError(base::StrCat("not JSON at byte ", at_, ": ", what));
  }
  void Space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool Take(char c) {
    Space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool TakeWord(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  absl::StatusOr<Json> Value(int depth) {
    if (depth > kDepthMax) return Bad("nested too deeply");
    Space();
    if (at_ >= text_.size()) return Bad("unexpected end");
    Json json;
    if (TakeWord("null")) return json;
    for (const std::string_view word : {"true", "false"}) {
      if (TakeWord(word)) {
        json.kind = Json::Kind::kBool;
        json.text = word;
        return json;
      }
    }
    const char c = text_[at_];
    if (c == '"') {
      json.kind = Json::Kind::kText;
      ASSIGN_OR_RETURN(json.text, Text());
    } else if (c == '[') {
      ++at_;
      json.kind = Json::Kind::kArray;
      if (Take(']')) return json;
      do {
        ASSIGN_OR_RETURN(Json item, Value(depth + 1));
        json.items.push_back(std::move(item));
      } while (Take(','));
      if (!Take(']')) return Bad("want , or ]");
    } else if (c == '{') {
      ++at_;
      json.kind = Json::Kind::kObject;
      if (Take('}')) return json;
      do {
        Space();
        ASSIGN_OR_RETURN(std::string key, Text());
        if (!Take(':')) return Bad("want :");
        ASSIGN_OR_RETURN(Json value, Value(depth + 1));
        json.members.push_back({std::move(key), std::move(value)});
      } while (Take(','));
      if (!Take('}')) return Bad("want , or }");
    } else {
      const size_t begin = at_;
      while (at_ < text_.size() && std::string_view("+-0123456789.eE").find(text_[at_]) != std::string_view::npos)
        ++at_;
      json.kind = Json::Kind::kNumber;
      json.text = text_.substr(begin, at_ - begin);
      if (!base::ParseDouble(json.text)) {
        at_ = begin;
        return Bad("not a value");
      }
    }
    return json;
  }

  absl::StatusOr<std::string> Text() {
    if (at_ >= text_.size() || text_[at_] != '"') return Bad("want \"");
    ++at_;
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) return Bad("control character in a text");
      if (text_[at_] != '\\') {
        out += text_[at_++];
        continue;
      }
      if (++at_ >= text_.size()) break;
      switch (const char c = text_[at_++]) {
        case 'b':
          out += '\b';
          break;
        case 'f':
          out += '\f';
          break;
        case 'n':
          out += '\n';
          break;
        case 'r':
          out += '\r';
          break;
        case 't':
          out += '\t';
          break;
        case 'u': {
          ASSIGN_OR_RETURN(uint32_t code, Hex4());
          if (code >= 0xD800 && code < 0xDC00 && TakeWord("\\u")) {
            ASSIGN_OR_RETURN(const uint32_t low, Hex4());
            if (low < 0xDC00 || low > 0xDFFF) return Bad("half a surrogate pair");
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
          } else if (code >= 0xD800 && code <= 0xDFFF) {
            return Bad("half a surrogate pair");
          }
          base::AppendUtf8(out, code);
          break;
        }
        case '"':
        case '\\':
        case '/':
          out += c;
          break;
        default:
          --at_;
          return Bad("unknown escape");
      }
    }
    if (at_ >= text_.size()) return Bad("text without an end");
    ++at_;
    return out;
  }

  absl::StatusOr<uint32_t> Hex4() {
    uint32_t code = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() != 4 || error != std::errc() || end != digits.data() + 4) return Bad("want four hex digits");
    at_ += 4;
    return code;
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::string Scalar(const Json& json) {
  switch (json.kind) {
    case Json::Kind::kNull:
      return "null";
    case Json::Kind::kText:
      return base::QuoteGo(json.text);
    case Json::Kind::kArray:
      return "[]";
    case Json::Kind::kObject:
      return "{}";
    default:
      return json.text;
  }
}

bool IsLeaf(const Json& json) { return json.items.empty() && json.members.empty(); }

// `json` is not a leaf; its first line begins where the cursor stands.
void AppendYaml(const Json& json, int indent, std::string& out) {
  bool first = true;
  const auto line = [&](std::string_view head, const Json& value) {
    if (!first) out.append(static_cast<size_t>(indent), ' ');
    first = false;
    out += head;
    if (IsLeaf(value)) {
      base::StrAppend(out, head == "-" ? " " : ": ", Scalar(value), "\n");
    } else if (head == "-") {
      out += ' ';
      AppendYaml(value, indent + 2, out);
    } else {
      base::StrAppend(out, ":\n", std::string(static_cast<size_t>(indent) + 2, ' '));
      AppendYaml(value, indent + 2, out);
    }
  };
  for (const Json& item : json.items) line("-", item);
  for (const auto& [key, value] : json.members) {
    const bool plain = !key.empty() && key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") ==
                                           std::string::npos;
    line(plain ? key : base::QuoteGo(key), value);
  }
}

const Json kNull;

}  // namespace

const Json& Json::operator[](std::string_view key) const {
  for (const auto& [name, value] : members) {
    if (name == key) return value;
  }
  return kNull;
}
const Json& Json::operator[](size_t i) const { return i < items.size() ? items[i] : kNull; }
double Json::number() const {
  return kind == Kind::kNumber ? base::ParseDouble(text).value_or(std::numeric_limits<double>::quiet_NaN())
                               : std::numeric_limits<double>::quiet_NaN();
}
bool Json::Has(std::string_view key) const { return &(*this)[key] != &kNull; }

absl::StatusOr<Json> Json::Parse(std::string_view text) { return Parser(text).Document(); }

std::string ToYaml(const Json& json) {
  if (IsLeaf(json)) return Scalar(json) + "\n";
  std::string out;
  AppendYaml(json, 0, out);
  return out;
}

}  // namespace varve::ctl
