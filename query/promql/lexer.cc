#include "query/promql/lexer.h"

#include <array>
#include <cmath>

#include "storage/base/strings.h"

namespace varve::promql {

namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlpha(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsWord(char c) { return IsAlpha(c) || IsDigit(c); }
bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

struct Keyword {
  std::string_view word;
  TokenKind kind;
  BinaryOp op = BinaryOp::kAdd;
  AggregateOp aggregate = AggregateOp::kSum;
};
constexpr Keyword Operator(std::string_view word, BinaryOp op) { return {word, TokenKind::kOperator, op}; }
constexpr Keyword Aggregator(std::string_view word, AggregateOp op) {
  return {word, TokenKind::kAggregate, BinaryOp::kAdd, op};
}
constexpr Keyword Plain(std::string_view word, TokenKind kind) { return {word, kind}; }

constexpr std::array kKeywords = {
    Operator("and", BinaryOp::kAnd),
    Operator("or", BinaryOp::kOr),
    Operator("unless", BinaryOp::kUnless),
    Operator("atan2", BinaryOp::kAtan2),
    Aggregator("sum", AggregateOp::kSum),
    Aggregator("avg", AggregateOp::kAvg),
    Aggregator("count", AggregateOp::kCount),
    Aggregator("min", AggregateOp::kMin),
    Aggregator("max", AggregateOp::kMax),
    Aggregator("group", AggregateOp::kGroup),
    Aggregator("stddev", AggregateOp::kStddev),
    Aggregator("stdvar", AggregateOp::kStdvar),
    Aggregator("topk", AggregateOp::kTopK),
    Aggregator("bottomk", AggregateOp::kBottomK),
    Aggregator("count_values", AggregateOp::kCountValues),
    Aggregator("quantile", AggregateOp::kQuantile),
    Aggregator("limitk", AggregateOp::kLimitK),
    Aggregator("limit_ratio", AggregateOp::kLimitRatio),
    Plain("bool", TokenKind::kBool),
    Plain("by", TokenKind::kBy),
    Plain("group_left", TokenKind::kGroupLeft),
    Plain("group_right", TokenKind::kGroupRight),
    Plain("ignoring", TokenKind::kIgnoring),
    Plain("offset", TokenKind::kOffset),
    Plain("on", TokenKind::kOn),
    Plain("without", TokenKind::kWithout),
    Plain("fill", TokenKind::kFill),
    Plain("fill_left", TokenKind::kFillLeft),
    Plain("fill_right", TokenKind::kFillRight),
    Plain("anchored", TokenKind::kAnchored),
    Plain("smoothed", TokenKind::kSmoothed),
    Plain("start", TokenKind::kStart),
    Plain("end", TokenKind::kFinish),
    Plain("step", TokenKind::kStep),
    Plain("range", TokenKind::kRange),
    Plain("min_of", TokenKind::kMinOf),
    Plain("max_of", TokenKind::kMaxOf),
    Plain("inf", TokenKind::kNumber),
    Plain("nan", TokenKind::kNumber),
};

// A character as Go's %q shows a rune.
std::string QuoteRune(std::string_view text, size_t at) {
  if (at >= text.size()) return "'\xEF\xBF\xBD'";
  size_t n = 1;
  while (at + n < text.size() && (static_cast<unsigned char>(text[at + n]) & 0xC0) == 0x80) ++n;
  if (static_cast<unsigned char>(text[at]) < 0x80) n = 1;
  std::string inside = base::QuoteGo(text.substr(at, n));
  if (inside == "\"\\\"\"") return "'\"'";
  if (inside == "\"'\"") return "'\\''";
  inside.front() = '\'';
  inside.back() = '\'';
  return inside;
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> Run() {
    while (!done_) Next();
    return std::move(tokens_);
  }

 private:
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool AtEnd() const { return at_ >= text_.size(); }

  Token& Emit(TokenKind kind) {
    Token token;
    token.kind = kind;
    token.position = {static_cast<int32_t>(begin_), static_cast<int32_t>(at_)};
    token.text = text_.substr(begin_, at_ - begin_);
    tokens_.push_back(std::move(token));
    return tokens_.back();
  }
  void EmitOperator(BinaryOp op, size_t length) {
    at_ += length;
    Emit(TokenKind::kOperator).op = op;
  }
  void EmitPlain(TokenKind kind, size_t length = 1) {
    at_ += length;
    Emit(kind);
  }
  void Fail(std::string message) {
    done_ = true;
    Emit(TokenKind::kError).message = std::move(message);
  }

  void Next() {
    while (!AtEnd() && IsSpace(text_[at_])) ++at_;
    if (Peek() == '#' && !AtEnd()) {
      while (!AtEnd() && text_[at_] != '\n') ++at_;
      return;
    }
    begin_ = at_;
    if (AtEnd()) {
      if (brace_open_) return Fail("unexpected end of input inside braces");
      if (paren_depth_ > 0) return Fail("unclosed left parenthesis");
      if (bracket_open_) return Fail("unclosed left bracket");
      done_ = true;
      Emit(TokenKind::kEnd);
      return;
    }
    const char c = text_[at_];
    if (c == '"' || c == '\'' || c == '`') return String(c);
    if (brace_open_) return InsideBraces(c);
    switch (c) {
      case ',':
        return EmitPlain(TokenKind::kComma);
      case '*':
        return EmitOperator(BinaryOp::kMul, 1);
      case '/':
        return EmitOperator(BinaryOp::kDiv, 1);
      case '%':
        return EmitOperator(BinaryOp::kMod, 1);
      case '+':
        return EmitOperator(BinaryOp::kAdd, 1);
      case '-':
        return EmitOperator(BinaryOp::kSub, 1);
      case '^':
        return EmitOperator(BinaryOp::kPow, 1);
      case '@':
        return EmitPlain(TokenKind::kAt);
      case '=':
        if (Peek(1) == '=') return EmitOperator(BinaryOp::kEqual, 2);
        if (Peek(1) == '~') {
          ++at_;
          return Fail(base::StrCat("unexpected character after '=': ", QuoteRune(text_, at_)));
        }
        return EmitPlain(TokenKind::kEqual);
      case '!':
        if (Peek(1) == '=') return EmitOperator(BinaryOp::kNotEqual, 2);
        ++at_;
        return Fail(base::StrCat("unexpected character after '!': ", QuoteRune(text_, at_)));
      case '<':
        if (Peek(1) == '=') return EmitOperator(BinaryOp::kLessEqual, 2);
        if (Peek(1) == '/') return EmitOperator(BinaryOp::kTrimUpper, 2);
        return EmitOperator(BinaryOp::kLess, 1);
      case '>':
        if (Peek(1) == '=') return EmitOperator(BinaryOp::kGreaterEqual, 2);
        if (Peek(1) == '/') return EmitOperator(BinaryOp::kTrimLower, 2);
        return EmitOperator(BinaryOp::kGreater, 1);
      case '(':
        ++paren_depth_;
        return EmitPlain(TokenKind::kLeftParen);
      case ')':
        if (paren_depth_ == 0) return Fail("unexpected right parenthesis ')'");
        --paren_depth_;
        return EmitPlain(TokenKind::kRightParen);
      case '{':
        brace_open_ = true;
        return EmitPlain(TokenKind::kLeftBrace);
      case '[':
        if (bracket_open_) return Fail("unexpected left bracket '['");
        bracket_open_ = true;
        got_colon_ = false;
        return EmitPlain(TokenKind::kLeftBracket);
      case ']':
        if (!bracket_open_) return Fail("unexpected right bracket ']'");
        bracket_open_ = false;
        return EmitPlain(TokenKind::kRightBracket);
      default:
        break;
    }
    if (c == ':' && bracket_open_) {
      if (got_colon_) return Fail("unexpected colon ':'");
      got_colon_ = true;
      return EmitPlain(TokenKind::kColon);
    }
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) return NumberOrDuration();
    if (IsAlpha(c) || c == ':') return Word();
    Fail(base::StrCat("unexpected character: ", QuoteRune(text_, at_)));
  }

  void InsideBraces(char c) {
    switch (c) {
      case ',':
        return EmitPlain(TokenKind::kComma);
      case '=':
        if (Peek(1) == '~') return EmitPlain(TokenKind::kEqualRegex, 2);
        return EmitPlain(TokenKind::kEqual);
      case '!':
        if (Peek(1) == '~') return EmitPlain(TokenKind::kNotEqualRegex, 2);
        if (Peek(1) == '=') return EmitOperator(BinaryOp::kNotEqual, 2);
        ++at_;
        return Fail(base::StrCat("unexpected character after '!' inside braces: ", QuoteRune(text_, at_)));
      case '{':
        return Fail("unexpected left brace '{'");
      case '}':
        brace_open_ = false;
        return EmitPlain(TokenKind::kRightBrace);
      default:
        break;
    }
    if (!IsAlpha(c)) return Fail(base::StrCat("unexpected character inside braces: ", QuoteRune(text_, at_)));
    while (IsWord(Peek())) ++at_;
    Emit(TokenKind::kIdentifier);
  }

  void String(char quote) {
    ++at_;
    while (true) {
      if (AtEnd()) return Fail(quote == '`' ? "unterminated raw string" : "unterminated quoted string");
      const char c = text_[at_++];
      if (c == quote) break;
      if (quote == '`') continue;
      if (c == '\n') return Fail("unterminated quoted string");
      if (c == '\\') {
        if (AtEnd()) return Fail("escape sequence not terminated");
        ++at_;
      }
    }
    const Token& token = Emit(TokenKind::kString);
    if (const auto value = Unquote(token.text); !value.ok()) {
      tokens_.pop_back();
      Fail(std::string(base::Message(value.status())));
    }
  }

  void NumberOrDuration() {
    const size_t from = at_;
    while (IsDigit(Peek())) ++at_;
    if (at_ > from && AtUnit()) {  // 1h30m
      while (true) {
        at_ += Peek() == 'm' && Peek(1) == 's' ? 2 : 1;
        if (!IsDigit(Peek())) break;
        while (IsDigit(Peek())) ++at_;
        if (!AtUnit()) return BadNumber();
      }
      if (IsWord(Peek())) return BadNumber();
      Emit(TokenKind::kDuration);
      return;
    }
    at_ = from;
    const bool hex = Peek() == '0' && (Peek(1) == 'x' || Peek(1) == 'X');
    if (hex) at_ += 2;
    while (!AtEnd()) {
      const char c = text_[at_];
      if (c == '.' || c == '_' || (hex ? IsHexDigit(c) : IsDigit(c))) {
        ++at_;
      } else if (hex ? c == 'p' || c == 'P' : c == 'e' || c == 'E') {
        ++at_;
        if (Peek() == '+' || Peek() == '-') ++at_;
      } else {
        break;
      }
    }
    if (IsWord(Peek()) || !ParseNumber(text_.substr(from, at_ - from))) return BadNumber();
    Emit(TokenKind::kNumber);
  }
  bool AtUnit() const {
    const char c = Peek();
    return c == 's' || c == 'm' || c == 'h' || c == 'd' || c == 'w' || c == 'y';
  }
  void BadNumber() {
    while (IsWord(Peek()) || Peek() == '.') ++at_;
    Fail(base::StrCat("bad number or duration syntax: ", base::QuoteGo(text_.substr(begin_, at_ - begin_))));
  }

  void Word() {
    bool colon = false;
    while (IsWord(Peek()) || (Peek() == ':' && !bracket_open_)) {
      colon = colon || Peek() == ':';
      ++at_;
    }
    const std::string_view word = text_.substr(begin_, at_ - begin_);
    if (!colon && word.size() <= 12) {
      const std::string lower = base::AsciiLower(word);
      for (const Keyword& keyword : kKeywords) {
        if (keyword.word != lower) continue;
        Token& token = Emit(keyword.kind);
        token.op = keyword.op;
        token.aggregate = keyword.aggregate;
        return;
      }
    }
    Emit(colon ? TokenKind::kMetricIdentifier : TokenKind::kIdentifier);
  }

  const std::string_view text_;
  size_t at_ = 0, begin_ = 0;
  int paren_depth_ = 0;
  bool brace_open_ = false, bracket_open_ = false, got_colon_ = false;
  bool done_ = false;
  std::vector<Token> tokens_;
};

// An underscore must stand between digits (or after a base prefix).
bool UnderscoresFit(std::string_view text, bool after_prefix) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') continue;
    const bool before = i == 0 ? after_prefix : IsHexDigit(text[i - 1]);
    if (!before || i + 1 >= text.size() || !IsHexDigit(text[i + 1])) return false;
  }
  return true;
}

}  // namespace

std::vector<Token> Tokenize(std::string_view text) { return Lexer(text).Run(); }

std::string Token::Describe() const {
  const auto quoted = [this] {
    // Long texts are cut, as Go's %.10q cuts them: by characters, not bytes.
    size_t runes = 0, bytes = 0;
    while (bytes < text.size() && runes < 10) {
      ++bytes;
      while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) ++bytes;
      ++runes;
    }
    return text.size() > 10 ? base::StrCat(base::QuoteGo(text.substr(0, bytes)), "...") : base::QuoteGo(text);
  };
  switch (kind) {
    case TokenKind::kEnd:
      return "end of input";
    case TokenKind::kError:
      return message;
    case TokenKind::kIdentifier:
      return base::StrCat("identifier ", base::QuoteGo(text));
    case TokenKind::kMetricIdentifier:
      return base::StrCat("metric identifier ", base::QuoteGo(text));
    case TokenKind::kNumber:
      return base::StrCat("number ", quoted());
    case TokenKind::kDuration:
      return base::StrCat("duration ", quoted());
    case TokenKind::kString:
      return base::StrCat("string ", quoted());
    case TokenKind::kAggregate:
      return base::StrCat("<aggr:", text, ">");
    case TokenKind::kOperator:
    case TokenKind::kEqualRegex:
    case TokenKind::kNotEqualRegex:
    case TokenKind::kAt:
      return base::StrCat("<op:", text, ">");
    case TokenKind::kBool:
    case TokenKind::kBy:
    case TokenKind::kGroupLeft:
    case TokenKind::kGroupRight:
    case TokenKind::kIgnoring:
    case TokenKind::kOffset:
    case TokenKind::kOn:
    case TokenKind::kWithout:
    case TokenKind::kFill:
    case TokenKind::kFillLeft:
    case TokenKind::kFillRight:
    case TokenKind::kAnchored:
    case TokenKind::kSmoothed:
      return base::StrCat("<", text, ">");
    default:
      return quoted();
  }
}

std::optional<double> ParseNumber(std::string_view text) {
  const bool prefixed = text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  if (!UnderscoresFit(prefixed ? text.substr(2) : text, prefixed)) return std::nullopt;
  std::string plain;
  for (const char c : text) {
    if (c != '_') plain += c;
  }
  const auto all = [&](size_t from, auto fits) {
    for (size_t i = from; i < plain.size(); ++i) {
      if (!fits(plain[i])) return false;
    }
    return plain.size() > from;
  };
  int base = 0;
  size_t from = 0;
  if (prefixed && all(2, IsHexDigit)) base = 16, from = 2;
  if (plain.size() > 1 && plain[0] == '0' && all(1, [](char c) { return c >= '0' && c <= '7'; })) base = 8, from = 1;
  if (base != 0) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(plain.data() + from, plain.data() + plain.size(), value, base);
    if (error == std::errc() && end == plain.data() + plain.size()) return static_cast<double>(value);
    if (base == 16) return std::nullopt;
  }
  if (prefixed && plain.find_first_of("pP") == std::string::npos) return std::nullopt;
  const std::optional<double> value = base::ParseDouble(plain);
  if (!value) return std::nullopt;
  // A literal that is too large is a mistake, as opposed to a written Inf.
  if (std::isinf(*value) && IsDigit(plain.front())) return std::nullopt;
  return value;
}

absl::StatusOr<std::string> Unquote(std::string_view token) {
  const char quote = token.front();
  const std::string_view body = token.substr(1, token.size() - 2);
  if (quote == '`') return std::string(body);
  std::string out;
  for (size_t i = 0; i < body.size();) {
    if (body[i] != '\\') {
      out += body[i++];
      continue;
    }
    ++i;
    const auto unknown = [&] {
      return absl::InvalidArgumentError(base::StrCat("unknown escape sequence ", QuoteRune(body, i)));
    };
    if (i >= body.size()) return absl::InvalidArgumentError("escape sequence not terminated");
    const char c = body[i];
    static constexpr std::string_view kFrom = "abfnrtv\\";
    static constexpr std::string_view kTo = "\a\b\f\n\r\t\v\\";
    if (const size_t simple = kFrom.find(c); simple != std::string_view::npos) {
      out += kTo[simple];
      ++i;
      continue;
    }
    if (c == quote) {
      out += c;
      ++i;
      continue;
    }
    size_t digits = 0;
    uint32_t number_base = 16;
    if (c >= '0' && c <= '7') {
      digits = 3, number_base = 8;
    } else if (c == 'x') {
      digits = 2, ++i;
    } else if (c == 'u') {
      digits = 4, ++i;
    } else if (c == 'U') {
      digits = 8, ++i;
    } else {
      return unknown();
    }
    uint32_t rune = 0;
    for (size_t k = 0; k < digits; ++k, ++i) {
      if (i >= body.size()) return absl::InvalidArgumentError("escape sequence not terminated");
      const char d = body[i];
      if (!(number_base == 8 ? d >= '0' && d <= '7' : IsHexDigit(d))) {
        return absl::InvalidArgumentError(
            base::StrCat("illegal character ", QuoteRune(body, i), " in escape sequence"));
      }
      const auto digit = static_cast<uint32_t>(IsDigit(d) ? d - '0' : (d | 0x20) - 'a' + 10);
      rune = rune * number_base + digit;
    }
    if (c == 'u' || c == 'U') {
      if (rune > 0x10FFFF || (rune >= 0xD800 && rune < 0xE000)) {
        return absl::InvalidArgumentError("escape sequence is an invalid Unicode code point");
      }
      base::AppendUtf8(out, rune);
    } else {
      if (rune > 255) return absl::InvalidArgumentError("octal escape value above 255");
      out += static_cast<char>(rune);
    }
  }
  return out;
}

}  // namespace varve::promql
