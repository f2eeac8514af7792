#pragma once
// Cuts a query into tokens. Words are classified without regard to case; whether a keyword is meant as one is the
// parser's business, since most of them are legal metric and label names too.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "query/promql/ast.h"

namespace varve::promql {

enum class TokenKind : uint8_t {
  kEnd,
  kError,
  kIdentifier,
  kMetricIdentifier,
  kNumber,
  kDuration,
  kString,
  kLeftParen,
  kRightParen,
  kLeftBrace,
  kRightBrace,
  kLeftBracket,
  kRightBracket,
  kComma,
  kColon,
  kEqual,
  kAggregate,
  kOperator,  // a binary operator; `!=` also matches labels
  kEqualRegex,
  kNotEqualRegex,
  kAt,
  kBool,
  kBy,
  kGroupLeft,
  kGroupRight,
  kIgnoring,
  kOffset,
  kOn,
  kWithout,
  kFill,
  kFillLeft,
  kFillRight,
  kAnchored,
  kSmoothed,
  kStart,
  kFinish /* end */,
  kStep,
  kRange,
  kMinOf,
  kMaxOf
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  BinaryOp op = BinaryOp::kAdd;               // of a kOperator
  AggregateOp aggregate = AggregateOp::kSum;  // of a kAggregate
  PositionRange position;
  std::string_view text;  // as written
  std::string message;    // of a kError

  // In the words of Prometheus' errors: `identifier "x"`, `<op:+>`, `")"`, `end of input`.
  std::string Describe() const;
};

// Always ends in a kEnd or kError token; nothing follows the first error.
std::vector<Token> Tokenize(std::string_view text);

// Numbers as literals have them: decimal, hexadecimal, octal with a leading 0, underscores, Inf, NaN.
std::optional<double> ParseNumber(std::string_view text);
// The value of a string token with its quotes; InvalidArgument when an escape is wrong.
absl::StatusOr<std::string> Unquote(std::string_view token);

}  // namespace varve::promql
