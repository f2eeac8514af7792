#include "query/promql/parser.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "query/promql/check.h"
#include "query/promql/lexer.h"
#include "storage/base/strings.h"

namespace varve::promql {

namespace {

using base::QuoteGo;
using base::StrCat;

// Deep enough for any query that a person or a dashboard writes, shallow enough that a recursion over the tree fits any
// thread's stack, also with sanitizers.
constexpr int kDepthMax = 500;
// Of all duration expressions of a query together; bounds the depth of their trees too.
constexpr int kDurationOperatorsMax = 1000;

enum Precedence { kOrLevel = 1, kAndLevel, kCompareLevel, kAddLevel, kMulLevel, kPowLevel };

int PrecedenceOf(BinaryOp op) {
  switch (op) {
    case BinaryOp::kOr:
      return kOrLevel;
    case BinaryOp::kAnd:
    case BinaryOp::kUnless:
      return kAndLevel;
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
      return kAddLevel;
    case BinaryOp::kMul:
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
    case BinaryOp::kAtan2:
      return kMulLevel;
    case BinaryOp::kPow:
      return kPowLevel;
    default:
      return kCompareLevel;
  }
}

// Words that name a metric where an operand is expected.
bool MayNameMetric(const Token& token) {
  switch (token.kind) {
    case TokenKind::kIdentifier:
    case TokenKind::kMetricIdentifier:
    case TokenKind::kAggregate:
    case TokenKind::kBy:
    case TokenKind::kOffset:
    case TokenKind::kWithout:
    case TokenKind::kFill:
    case TokenKind::kFillLeft:
    case TokenKind::kFillRight:
    case TokenKind::kAnchored:
    case TokenKind::kSmoothed:
    case TokenKind::kStart:
    case TokenKind::kFinish:
    case TokenKind::kStep:
    case TokenKind::kRange:
    case TokenKind::kMinOf:
    case TokenKind::kMaxOf:
      return true;
    case TokenKind::kOperator:
      return token.op == BinaryOp::kAnd || token.op == BinaryOp::kOr || token.op == BinaryOp::kUnless;
    default:
      return false;
  }
}

// Words that name a label in by(...), on(...) and the like.
bool MayNameLabel(const Token& token) {
  switch (token.kind) {
    case TokenKind::kBool:
    case TokenKind::kOn:
    case TokenKind::kIgnoring:
    case TokenKind::kGroupLeft:
    case TokenKind::kGroupRight:
      return true;
    case TokenKind::kOperator:
      return !token.text.empty() && ((token.text[0] | 0x20) >= 'a' && (token.text[0] | 0x20) <= 'z');
    default:
      return MayNameMetric(token);
  }
}

template <class T>
std::unique_ptr<T> NewNode(PositionRange position) {
  auto node = std::make_unique<T>();
  node->position = position;
  return node;
}

class Parser {
 public:
  Parser(std::string_view text, const Options& options) : text_(text), options_(options), tokens_(Tokenize(text)) {}

  absl::StatusOr<ExprPtr> Whole() {
    if (tokens_[0].kind == TokenKind::kEnd) {
      Fail({0, 0}, "no expression found in input");
      return Error();
    }
    ExprPtr expr = ParseExpr(kOrLevel);
    if (!failed() && Now().kind != TokenKind::kEnd) Unexpected("", "");
    if (failed()) return Error();
    if (auto problem = CheckTypes(*expr)) {
      Fail(problem->position, std::move(problem->text));
      return Error();
    }
    DropIdleMatching(*expr);
    return expr;
  }

  absl::StatusOr<std::vector<model::Matcher>> Selector() {
    std::unique_ptr<VectorSelector> selector;
    if (Now().kind == TokenKind::kLeftBrace || MayNameMetric(Now())) {
      selector = ParseSelector();
    } else {
      Unexpected("", "");
    }
    if (!failed() && Now().kind != TokenKind::kEnd) Unexpected("", "");
    if (failed()) return Error();
    if (auto problem = CheckTypes(*selector)) {
      Fail(problem->position, std::move(problem->text));
      return Error();
    }
    return std::move(selector->matchers);
  }

 private:
  const Token& Now() const { return tokens_[at_]; }
  const Token& Peek() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool Is(TokenKind kind) const { return Now().kind == kind; }
  bool IsSign() const { return Is(TokenKind::kOperator) && (Now().op == BinaryOp::kAdd || Now().op == BinaryOp::kSub); }
  const Token& Take() {
    const Token& token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    end_ = token.position.end;
    return token;
  }
  bool Accept(TokenKind kind) {
    if (!Is(kind)) return false;
    Take();
    return true;
  }

  bool failed() const { return failed_; }
  std::nullptr_t Fail(PositionRange position, std::string text) {
    if (!failed_) {
      failed_ = true;
      problem_ = {position, std::move(text)};
    }
    return nullptr;
  }
  std::nullptr_t Unexpected(std::string_view context, std::string_view expected) {
    const Token& token = Now();
    if (token.kind == TokenKind::kError) return Fail(token.position, token.message);
    std::string text = StrCat("unexpected ", token.Describe());
    if (!context.empty()) base::StrAppend(text, " in ", context);
    if (!expected.empty()) base::StrAppend(text, ", expected ", expected);
    return Fail(token.position, std::move(text));
  }
  absl::Status Error() const {
    return absl::InvalidArgumentError(
        StrCat(LineColumn(text_, problem_.position.begin), ": parse error: ", problem_.text));
  }

  // Sets the depth of a finished node; false when the tree got too deep.
  bool Deepen(Expr& node, const ExprPtr& child) {
    if (child != nullptr) node.depth = std::max(node.depth, child->depth + 1);
    if (node.depth <= kDepthMax) return true;
    Fail(node.position, StrCat("expression is nested more than ", kDepthMax, " levels deep"));
    return false;
  }

  class Level {  // counts recursion of the parser itself
   public:
    explicit Level(Parser& parser) : parser_(parser) {
      if (++parser_.level_ > kDepthMax) {
        parser_.Fail(parser_.Now().position, StrCat("expression is nested more than ", kDepthMax, " levels deep"));
      }
    }
    ~Level() { --parser_.level_; }

   private:
    Parser& parser_;
  };

  ExprPtr ParseExpr(int lowest) {
    const Level level(*this);
    if (failed()) return nullptr;
    ExprPtr left = ParseUnary();
    while (!failed() && Is(TokenKind::kOperator)) {
      const int precedence = PrecedenceOf(Now().op);
      if (precedence < lowest) break;
      auto binary = std::make_unique<Binary>();
      binary->op = Now().op;
      binary->operator_position = Now().position;
      Take();
      binary->matching = ParseMatching(*binary);
      if (failed()) return nullptr;
      ExprPtr right = ParseExpr(precedence == kPowLevel ? kPowLevel : precedence + 1);
      if (failed()) return nullptr;
      binary->position = {left->position.begin, right->position.end};
      if (!Deepen(*binary, left) || !Deepen(*binary, right)) return nullptr;
      binary->lhs = std::move(left);
      binary->rhs = std::move(right);
      left = std::move(binary);
    }
    return failed() ? nullptr : std::move(left);
  }

  std::unique_ptr<VectorMatching> ParseMatching(Binary& binary) {
    auto matching = std::make_unique<VectorMatching>();
    binary.return_bool = Accept(TokenKind::kBool);
    if (Is(TokenKind::kOn) || Is(TokenKind::kIgnoring)) {
      matching->on = Take().kind == TokenKind::kOn;
      matching->explicit_labels = true;
      matching->labels = ParseLabelList();
      if (failed()) return nullptr;
      if (Is(TokenKind::kGroupLeft) || Is(TokenKind::kGroupRight)) {
        matching->cardinality =
            Take().kind == TokenKind::kGroupLeft ? Cardinality::kManyToOne : Cardinality::kOneToMany;
        if (Is(TokenKind::kLeftParen)) matching->include = ParseLabelList();
        if (failed()) return nullptr;
      }
    }
    if (IsSetOperator(binary.op) && matching->cardinality == Cardinality::kOneToOne) {
      matching->cardinality = Cardinality::kManyToMany;
    }
    // `fill` is a legal metric name, hence only a keyword before a parenthesis.
    while ((Is(TokenKind::kFill) || Is(TokenKind::kFillLeft) || Is(TokenKind::kFillRight)) &&
           Peek().kind == TokenKind::kLeftParen) {
      const Token fill = Take();
      if (!options_.fill_modifiers) {
        return Fail(
            fill.position,
            "binop fill modifiers are experimental and not enabled (--enable-feature=promql-binop-fill-modifiers)");
      }
      Take();
      const std::optional<double> value = ParseSignedNumber();
      if (!value) return Unexpected("fill modifier", "number");
      if (!Accept(TokenKind::kRightParen)) return Unexpected("fill modifier", "\")\"");
      const bool left = fill.kind != TokenKind::kFillRight, right = fill.kind != TokenKind::kFillLeft;
      if ((left && matching->fill_left) || (right && matching->fill_right)) {
        return Fail(fill.position, "fill modifiers may not be set multiple times");
      }
      if (left) matching->fill_left = value;
      if (right) matching->fill_right = value;
    }
    return matching;
  }

  // [sign] number-or-duration, consumed only when complete.
  std::optional<double> ParseSignedNumber() {
    double sign = 1;
    if (IsSign()) {
      if (Peek().kind != TokenKind::kNumber && Peek().kind != TokenKind::kDuration) {
        Take();
        return std::nullopt;
      }
      sign = Take().op == BinaryOp::kSub ? -1 : 1;
    }
    if (!Is(TokenKind::kNumber) && !Is(TokenKind::kDuration)) return std::nullopt;
    const std::optional<double> value = LiteralValue(Take());
    if (!value) return std::nullopt;
    return sign * *value;
  }

  std::optional<double> LiteralValue(const Token& token) {
    if (token.kind == TokenKind::kDuration) {
      const auto ms = ParseDuration(token.text);
      if (!ms.ok()) {
        Fail(token.position, std::string(base::Message(ms.status())));
        return std::nullopt;
      }
      return static_cast<double>(*ms) / 1000;
    }
    const std::optional<double> value = ParseNumber(token.text);
    if (!value) Fail(token.position, StrCat("error parsing number: ", token.text));
    return value;
  }

  std::vector<std::string> ParseLabelList() {
    std::vector<std::string> labels;
    if (!Accept(TokenKind::kLeftParen)) return Unexpected("grouping opts", "\"(\""), labels;
    while (!Accept(TokenKind::kRightParen)) {
      if (Is(TokenKind::kString)) {
        const std::string name = *Unquote(Now().text);
        if (name.empty() || !base::IsValidUtf8(name)) {
          Fail(Now().position, StrCat("invalid label name for grouping: ", QuoteGo(name)));
          return labels;
        }
        labels.push_back(name);
      } else if (MayNameLabel(Now())) {
        labels.emplace_back(Now().text);
      } else {
        return Unexpected("grouping opts", "label"), labels;
      }
      Take();
      if (!Accept(TokenKind::kComma) && !Is(TokenKind::kRightParen)) {
        return Unexpected("grouping opts", "\",\" or \")\""), labels;
      }
    }
    return labels;
  }

  ExprPtr ParseUnary() {
    if (!IsSign()) return ParsePostfix();
    const Level level(*this);
    if (failed()) return nullptr;
    const Token sign = Take();
    const bool negative = sign.op == BinaryOp::kSub;
    ExprPtr operand = ParseExpr(kPowLevel);
    if (failed()) return nullptr;
    operand->position.begin = operand->kind == NodeKind::kNumber ? sign.position.begin : operand->position.begin;
    if (operand->kind == NodeKind::kNumber) {
      auto& number = static_cast<NumberLiteral&>(*operand);
      if (negative) number.value = -number.value;
      return operand;
    }
    auto unary = NewNode<Unary>({sign.position.begin, operand->position.end});
    unary->negative = negative;
    if (!Deepen(*unary, operand)) return nullptr;
    unary->expr = std::move(operand);
    return unary;
  }

  ExprPtr ParsePostfix() {
    ExprPtr expr = ParsePrimary();
    while (!failed()) {
      if (Is(TokenKind::kLeftBracket)) {
        expr = ParseBrackets(std::move(expr));
      } else if (Is(TokenKind::kOffset)) {
        ParseOffset(*expr);
      } else if (Is(TokenKind::kAt)) {
        ParseAt(*expr);
      } else if (Is(TokenKind::kAnchored) || Is(TokenKind::kSmoothed)) {
        ParseExtension(*expr);
      } else {
        break;
      }
    }
    return failed() ? nullptr : std::move(expr);
  }

  ExprPtr ParsePrimary() {
    const Token& token = Now();
    switch (token.kind) {
      case TokenKind::kNumber:
      case TokenKind::kDuration: {
        Take();
        const std::optional<double> value = LiteralValue(token);
        if (!value) return nullptr;
        auto number = NewNode<NumberLiteral>(token.position);
        number->value = *value;
        number->written_as_duration = token.kind == TokenKind::kDuration;
        return number;
      }
      case TokenKind::kString: {
        Take();
        auto string = NewNode<StringLiteral>(token.position);
        string->value = *Unquote(token.text);
        return string;
      }
      case TokenKind::kLeftParen: {
        Take();
        ExprPtr inner = ParseExpr(kOrLevel);
        if (failed()) return nullptr;
        if (!Accept(TokenKind::kRightParen)) return Unexpected("", "");
        auto paren = NewNode<Paren>({token.position.begin, end_});
        if (!Deepen(*paren, inner)) return nullptr;
        paren->expr = std::move(inner);
        return paren;
      }
      case TokenKind::kAggregate: {
        const TokenKind next = Peek().kind;
        if (next == TokenKind::kLeftParen || next == TokenKind::kBy || next == TokenKind::kWithout)
          return ParseAggregate();
        return ParseSelector();
      }
      case TokenKind::kIdentifier:
      case TokenKind::kStart:
      case TokenKind::kFinish:
      case TokenKind::kStep:
      case TokenKind::kRange:
      case TokenKind::kMinOf:
      case TokenKind::kMaxOf:
        if (Peek().kind == TokenKind::kLeftParen) return ParseCall();
        return ParseSelector();
      default:
        if (token.kind == TokenKind::kLeftBrace || MayNameMetric(token)) return ParseSelector();
        return Unexpected("", "");
    }
  }

  std::vector<ExprPtr> ParseArguments() {
    std::vector<ExprPtr> arguments;
    if (!Accept(TokenKind::kLeftParen)) return Unexpected("aggregation", ""), std::move(arguments);
    if (Accept(TokenKind::kRightParen)) return arguments;
    while (true) {
      arguments.push_back(ParseExpr(kOrLevel));
      if (failed() || Accept(TokenKind::kRightParen)) return arguments;
      if (!Is(TokenKind::kComma)) return Unexpected("", ""), std::move(arguments);
      const Token& comma = Take();
      if (Is(TokenKind::kRightParen)) {
        Fail(comma.position, "trailing commas not allowed in function call args");
        return arguments;
      }
    }
  }

  ExprPtr ParseCall() {
    const Token& name = Take();
    auto call = NewNode<Call>(name.position);
    call->arguments = ParseArguments();
    if (failed()) return nullptr;
    call->function = FindFunction(name.text);
    if (call->function == nullptr) {
      return Fail(name.position, StrCat("unknown function with name ", QuoteGo(name.text)));
    }
    if (call->function->experimental && !options_.experimental_functions) {
      return Fail(name.position, StrCat("function ", QuoteGo(name.text), " is not enabled"));
    }
    call->position.end = end_;
    for (const ExprPtr& argument : call->arguments) {
      if (!Deepen(*call, argument)) return nullptr;
    }
    return call;
  }

  ExprPtr ParseAggregate() {
    const Token& name = Take();
    auto aggregate = NewNode<Aggregate>(name.position);
    aggregate->op = name.aggregate;
    bool grouped = false;
    const auto grouping = [&] {
      if (grouped || (!Is(TokenKind::kBy) && !Is(TokenKind::kWithout))) return;
      grouped = true;
      aggregate->without = Take().kind == TokenKind::kWithout;
      aggregate->grouping = ParseLabelList();
    };
    grouping();
    if (failed()) return nullptr;
    std::vector<ExprPtr> arguments = ParseArguments();
    if (failed()) return nullptr;
    grouping();
    if (failed()) return nullptr;
    aggregate->position.end = end_;
    const bool experimental = aggregate->op == AggregateOp::kLimitK || aggregate->op == AggregateOp::kLimitRatio;
    if (experimental && !options_.experimental_functions) {
      return Fail(name.position, StrCat(ToString(aggregate->op),
                                        "() is experimental and must be enabled with "
                                        "--enable-feature=promql-experimental-functions"));
    }
    if (arguments.empty()) return Fail(aggregate->position, "no arguments for aggregate expression provided");
    const bool with_parameter = experimental || aggregate->op == AggregateOp::kTopK ||
                                aggregate->op == AggregateOp::kBottomK || aggregate->op == AggregateOp::kCountValues ||
                                aggregate->op == AggregateOp::kQuantile;
    const size_t want = with_parameter ? 2 : 1;
    if (arguments.size() != want) {
      return Fail(aggregate->position, StrCat("wrong number of arguments for aggregate expression provided, expected ",
                                              want, ", got ", arguments.size()));
    }
    for (const ExprPtr& argument : arguments) {
      if (!Deepen(*aggregate, argument)) return nullptr;
    }
    if (with_parameter) aggregate->param = std::move(arguments.front());
    aggregate->expr = std::move(arguments.back());
    return aggregate;
  }

  std::unique_ptr<VectorSelector> ParseSelector() {
    auto selector = NewNode<VectorSelector>(Now().position);
    if (!Is(TokenKind::kLeftBrace)) selector->name = Take().text;
    if (Accept(TokenKind::kLeftBrace)) ParseMatchers(*selector);
    if (failed()) return nullptr;
    if (!selector->name.empty())
      selector->matchers.push_back(model::Matcher::Equal(model::kMetricName, selector->name));
    selector->position.end = end_;
    return selector;
  }

  void ParseMatchers(VectorSelector& selector) {
    std::optional<std::string> quoted_name;
    while (!Accept(TokenKind::kRightBrace)) {
      std::string name;
      const Token& first = Now();
      if (Is(TokenKind::kString)) {
        name = *Unquote(first.text);
      } else if (Is(TokenKind::kIdentifier)) {
        name = first.text;
      } else {
        Unexpected("label matching", "identifier or \"}\"");
        return;
      }
      Take();
      model::MatchType type = model::MatchType::kEqual;
      if (Is(TokenKind::kEqual)) {
        type = model::MatchType::kEqual;
      } else if (Is(TokenKind::kOperator) && Now().op == BinaryOp::kNotEqual) {
        type = model::MatchType::kNotEqual;
      } else if (Is(TokenKind::kEqualRegex)) {
        type = model::MatchType::kRegex;
      } else if (Is(TokenKind::kNotEqualRegex)) {
        type = model::MatchType::kNotRegex;
      } else if (first.kind == TokenKind::kString && (Is(TokenKind::kComma) || Is(TokenKind::kRightBrace))) {
        // A quoted text alone is the metric's name.
        if (name.empty() || !base::IsValidUtf8(name)) {
          Fail(first.position, StrCat("invalid metric name ", QuoteGo(name)));
          return;
        }
        if (quoted_name) {
          Fail(first.position,
               StrCat("metric name must not be set twice: ", QuoteGo(*quoted_name), " or ", QuoteGo(name)));
          return;
        }
        quoted_name = name;
        selector.matchers.push_back(model::Matcher::Equal(model::kMetricName, name));
        if (!Accept(TokenKind::kComma) && !Is(TokenKind::kRightBrace)) Unexpected("label matching", "\",\" or \"}\"");
        continue;
      } else {
        Unexpected("label matching", "label matching operator");
        return;
      }
      Take();
      if (!Is(TokenKind::kString)) {
        Unexpected("label matching", "string");
        return;
      }
      if (name.empty() || !base::IsValidUtf8(name)) {
        Fail(first.position, StrCat("invalid label name ", QuoteGo(name)));
        return;
      }
      const std::string value = *Unquote(Take().text);
      auto matcher = model::Matcher::Create(type, name, value);
      if (!matcher.ok()) {
        Fail({first.position.begin, end_}, std::string(base::Message(matcher.status())));
        return;
      }
      selector.matchers.push_back(*std::move(matcher));
      if (!Accept(TokenKind::kComma) && !Is(TokenKind::kRightBrace)) {
        Unexpected("label matching", "\",\" or \"}\"");
        return;
      }
    }
    if (!quoted_name) return;
    for (const model::Matcher& matcher : selector.matchers) {
      if (matcher.name() == model::kMetricName &&
          !(matcher == model::Matcher::Equal(model::kMetricName, *quoted_name))) {
        Fail(selector.position,
             StrCat("metric name must not be set twice: ", QuoteGo(*quoted_name), " or ", QuoteGo(matcher.value())));
        return;
      }
    }
  }

  ExprPtr ParseBrackets(ExprPtr expr) {
    const Token bracket = Take();
    int64_t range_ms = 0;
    std::unique_ptr<DurationExpr> range_expr;
    if (!ParsePositiveDuration("subquery or range selector", range_ms, range_expr)) return nullptr;
    if (Accept(TokenKind::kColon)) {
      auto subquery = std::make_unique<Subquery>();
      subquery->range_ms = range_ms;
      subquery->range_expr = std::move(range_expr);
      if (!Is(TokenKind::kRightBracket) &&
          !ParsePositiveDuration("subquery selector", subquery->step_ms, subquery->step_expr)) {
        return nullptr;
      }
      if (!Accept(TokenKind::kRightBracket))
        return Unexpected("subquery selector", "number, duration, step(), range(), or \"]\"");
      subquery->position = {expr->position.begin, end_};
      if (!Deepen(*subquery, expr)) return nullptr;
      subquery->expr = std::move(expr);
      return subquery;
    }
    if (!Accept(TokenKind::kRightBracket)) return Unexpected("subquery or range", "\":\" or \"]\"");
    const PositionRange brackets{bracket.position.begin, end_};
    if (expr->kind != NodeKind::kVectorSelector) return Fail(brackets, "ranges only allowed for vector selectors");
    auto matrix = NewNode<MatrixSelector>({expr->position.begin, end_});
    matrix->vector.reset(static_cast<VectorSelector*>(expr.release()));
    const Modifiers& modifiers = matrix->vector->modifiers;
    if (modifiers.offset_ms != 0 || modifiers.offset_expr != nullptr) {
      return Fail(brackets, "no offset modifiers allowed before range");
    }
    if (modifiers.at != AtKind::kNone) return Fail(brackets, "no @ modifiers allowed before range");
    matrix->depth = 2;
    matrix->range_ms = range_ms;
    matrix->range_expr = std::move(range_expr);
    return matrix;
  }

  // Where a selector or subquery keeps its modifiers; null for anything else.
  static Modifiers* ModifiersOf(Expr& expr) {
    switch (expr.kind) {
      case NodeKind::kVectorSelector:
        return &static_cast<VectorSelector&>(expr).modifiers;
      case NodeKind::kMatrixSelector:
        return &static_cast<MatrixSelector&>(expr).vector->modifiers;
      case NodeKind::kSubquery:
        return &static_cast<Subquery&>(expr).modifiers;
      default:
        return nullptr;
    }
  }

  void ParseOffset(Expr& expr) {
    Take();
    std::unique_ptr<DurationExpr> offset = ParseOffsetDuration();
    if (failed()) return;
    Modifiers* modifiers = ModifiersOf(expr);
    if (modifiers == nullptr) {
      Fail(expr.position,
           "offset modifier must be preceded by an instant vector selector or range vector selector or a subquery");
      return;
    }
    if (modifiers->offset_ms != 0 || modifiers->offset_expr != nullptr) {
      Fail(expr.position, "offset may not be set multiple times");
      return;
    }
    if (!Fold(std::move(offset), modifiers->offset_ms, modifiers->offset_expr)) return;
    expr.position.end = end_;
  }

  void ParseAt(Expr& expr) {
    Take();
    AtKind kind = AtKind::kTimestamp;
    double seconds = 0;
    if ((Is(TokenKind::kStart) || Is(TokenKind::kFinish)) && Peek().kind == TokenKind::kLeftParen) {
      kind = Take().kind == TokenKind::kStart ? AtKind::kStart : AtKind::kEnd;
      Take();
      if (!Accept(TokenKind::kRightParen)) {
        Unexpected("@", "timestamp");
        return;
      }
    } else {
      const std::optional<double> value = ParseSignedNumber();
      if (!value) {
        Unexpected("@", "timestamp");
        return;
      }
      seconds = *value;
    }
    Modifiers* modifiers = ModifiersOf(expr);
    if (modifiers == nullptr) {
      Fail(expr.position,
           "@ modifier must be preceded by an instant vector selector or range vector selector or a subquery");
      return;
    }
    if (modifiers->at != AtKind::kNone) {
      Fail(expr.position, "@ <timestamp> may not be set multiple times");
      return;
    }
    if (!(std::fabs(seconds) < 9.2e15)) {
      Fail(expr.position, StrCat("timestamp out of bounds for @ modifier: ", seconds));
      return;
    }
    modifiers->at = kind;
    modifiers->at_ms = static_cast<int64_t>(std::round(seconds * 1000));
    expr.position.end = end_;
  }

  void ParseExtension(Expr& expr) {
    const Token word = Take();
    const bool anchored = word.kind == TokenKind::kAnchored;
    const std::string name = anchored ? "anchored" : "smoothed";
    if (!options_.extended_range_selectors) {
      Fail(word.position, StrCat(name,
                                 " modifier is experimental and not enabled "
                                 "(--enable-feature=promql-extended-range-selectors)"));
      return;
    }
    VectorSelector* selector = nullptr;
    if (expr.kind == NodeKind::kVectorSelector) selector = &static_cast<VectorSelector&>(expr);
    if (expr.kind == NodeKind::kMatrixSelector) selector = static_cast<MatrixSelector&>(expr).vector.get();
    if (selector == nullptr) {
      Fail(expr.position, StrCat(name, expr.kind == NodeKind::kSubquery ? " modifier is not supported for subqueries"
                                                                        : " modifier not implemented"));
      return;
    }
    (anchored ? selector->anchored : selector->smoothed) = true;
    if (selector->anchored && selector->smoothed) {
      Fail(expr.position, "anchored and smoothed modifiers cannot be used together");
      return;
    }
    expr.position.end = end_;
  }

  // Durations. A literal, also in parentheses or with a sign, is folded to milliseconds; anything else stays a tree.

  static constexpr double kSecondsMax = 9.2e9;  // what 63 bits of nanoseconds hold

  bool Fold(std::unique_ptr<DurationExpr> tree, int64_t& ms, std::unique_ptr<DurationExpr>& expr) {
    if (tree->op != DurationOp::kLiteral) {
      if (!options_.duration_expressions) {
        Fail(tree->position, "experimental duration expression is not enabled");
        return false;
      }
      expr = std::move(tree);
      return true;
    }
    if (!(std::fabs(tree->literal_seconds) < kSecondsMax)) {
      Fail(tree->position, "duration out of range");
      return false;
    }
    ms = std::llround(tree->literal_seconds * 1e9) / 1'000'000;
    return true;
  }

  bool ParsePositiveDuration(std::string_view context, int64_t& ms, std::unique_ptr<DurationExpr>& expr) {
    if (!StartsDuration()) {
      Unexpected(context, "number, duration, step(), or range()");
      return false;
    }
    std::unique_ptr<DurationExpr> tree = ParseDurationExpr(kAddLevel);
    if (failed()) return false;
    if (tree->op == DurationOp::kLiteral && !(tree->literal_seconds > 0)) {
      Fail(tree->position, "duration must be greater than 0");
      return false;
    }
    const PositionRange position = tree->position;
    if (!Fold(std::move(tree), ms, expr)) return false;
    if (expr == nullptr && ms == 0) {
      Fail(position, "duration must be greater than 0");
      return false;
    }
    return true;
  }

  bool StartsDuration() const {
    switch (Now().kind) {
      case TokenKind::kNumber:
      case TokenKind::kDuration:
      case TokenKind::kLeftParen:
      case TokenKind::kStep:
      case TokenKind::kRange:
      case TokenKind::kMinOf:
      case TokenKind::kMaxOf:
        return true;
      default:
        return IsSign();
    }
  }

  static std::unique_ptr<DurationExpr> NewDuration(DurationOp op, PositionRange position) {
    auto tree = std::make_unique<DurationExpr>();
    tree->op = op;
    tree->position = position;
    return tree;
  }

  static std::unique_ptr<DurationExpr> Signed(std::unique_ptr<DurationExpr> tree, bool negative, int32_t begin) {
    tree->position.begin = begin;
    if (tree->op == DurationOp::kLiteral) {
      if (negative) tree->literal_seconds = -tree->literal_seconds;
      return tree;
    }
    auto sign = NewDuration(negative ? DurationOp::kNegate : DurationOp::kPlus, tree->position);
    sign->left = std::move(tree);
    return sign;
  }

  std::unique_ptr<DurationExpr> ParseDurationExpr(int lowest) {
    const Level level(*this);
    if (failed()) return nullptr;
    std::unique_ptr<DurationExpr> left = ParseDurationUnary();
    while (!failed() && Is(TokenKind::kOperator)) {
      DurationOp op;
      switch (Now().op) {
        case BinaryOp::kAdd:
          op = DurationOp::kAdd;
          break;
        case BinaryOp::kSub:
          op = DurationOp::kSub;
          break;
        case BinaryOp::kMul:
          op = DurationOp::kMul;
          break;
        case BinaryOp::kDiv:
          op = DurationOp::kDiv;
          break;
        case BinaryOp::kMod:
          op = DurationOp::kMod;
          break;
        case BinaryOp::kPow:
          op = DurationOp::kPow;
          break;
        default:
          return left;
      }
      const int precedence = PrecedenceOf(Now().op);
      if (precedence < lowest) break;
      if (++duration_operators_ > kDurationOperatorsMax) return Fail(Now().position, "duration expression is too long");
      Take();
      if (!StartsDuration()) return Unexpected("duration expression", "number, duration, step(), or range()");
      std::unique_ptr<DurationExpr> right = ParseDurationExpr(precedence == kPowLevel ? kPowLevel : precedence + 1);
      if (failed()) return nullptr;
      auto tree = NewDuration(op, {left->position.begin, right->position.end});
      tree->left = std::move(left);
      tree->right = std::move(right);
      left = std::move(tree);
    }
    return failed() ? nullptr : std::move(left);
  }

  std::unique_ptr<DurationExpr> ParseDurationUnary() {
    if (!IsSign()) return ParseDurationPrimary();
    const Level level(*this);
    if (failed()) return nullptr;
    const Token sign = Take();
    if (!StartsDuration()) return Unexpected("duration expression", "number, duration, step(), or range()");
    std::unique_ptr<DurationExpr> operand = ParseDurationExpr(kPowLevel);
    if (failed()) return nullptr;
    return Signed(std::move(operand), sign.op == BinaryOp::kSub, sign.position.begin);
  }

  std::unique_ptr<DurationExpr> ParseDurationPrimary() {
    const Token& token = Now();
    switch (token.kind) {
      case TokenKind::kNumber:
      case TokenKind::kDuration: {
        Take();
        const std::optional<double> value = LiteralValue(token);
        if (!value) return nullptr;
        auto tree = NewDuration(DurationOp::kLiteral, token.position);
        tree->literal_seconds = *value;
        tree->written_as_duration = token.kind == TokenKind::kDuration;
        return tree;
      }
      case TokenKind::kLeftParen: {
        Take();
        if (!StartsDuration()) return Unexpected("duration expression", "number, duration, step(), or range()");
        std::unique_ptr<DurationExpr> tree = ParseDurationExpr(kAddLevel);
        if (failed()) return nullptr;
        if (!Accept(TokenKind::kRightParen)) return Unexpected("duration expression", "\")\"");
        tree->parenthesised = true;
        tree->position = {token.position.begin, end_};
        return tree;
      }
      case TokenKind::kStep:
      case TokenKind::kRange: {
        Take();
        if (!Accept(TokenKind::kLeftParen) || !Accept(TokenKind::kRightParen)) {
          return Unexpected("duration expression", "number, duration, step(), or range()");
        }
        return NewDuration(token.kind == TokenKind::kStep ? DurationOp::kStep : DurationOp::kRange,
                           {token.position.begin, end_});
      }
      case TokenKind::kMinOf:
      case TokenKind::kMaxOf: {
        Take();
        auto tree =
            NewDuration(token.kind == TokenKind::kMinOf ? DurationOp::kMinOf : DurationOp::kMaxOf, token.position);
        if (!Accept(TokenKind::kLeftParen)) return Unexpected("duration expression", "\"(\"");
        for (const bool first : {true, false}) {
          if (!StartsDuration()) return Unexpected("duration expression", "number, duration, step(), or range()");
          (first ? tree->left : tree->right) = ParseDurationExpr(kAddLevel);
          if (failed()) return nullptr;
          if (!Accept(first ? TokenKind::kComma : TokenKind::kRightParen)) {
            return Unexpected("duration expression", first ? "\",\"" : "\")\"");
          }
        }
        tree->position.end = end_;
        return tree;
      }
      default:
        return Unexpected("duration expression", "number, duration, step(), or range()");
    }
  }

  // After `offset`, arithmetic needs parentheses: `x offset 1m + 2` adds 2 to the vector.
  std::unique_ptr<DurationExpr> ParseOffsetDuration() {
    if (!StartsDuration()) return Unexpected("offset", "number, duration, step(), or range()");
    const Token first = Now();
    const bool sign = IsSign();
    if (sign) Take();
    if (IsSign() || !StartsDuration()) return Unexpected("offset", "number, duration, step(), or range()");
    std::unique_ptr<DurationExpr> tree = ParseDurationPrimary();
    if (failed() || !sign) return tree;
    return Signed(std::move(tree), first.op == BinaryOp::kSub, first.position.begin);
  }

  // Matching means something only between two vectors.
  static void DropIdleMatching(Expr& expr) {
    switch (expr.kind) {
      case NodeKind::kSubquery:
        return DropIdleMatching(*static_cast<Subquery&>(expr).expr);
      case NodeKind::kUnary:
        return DropIdleMatching(*static_cast<Unary&>(expr).expr);
      case NodeKind::kParen:
        return DropIdleMatching(*static_cast<Paren&>(expr).expr);
      case NodeKind::kAggregate: {
        auto& aggregate = static_cast<Aggregate&>(expr);
        if (aggregate.param != nullptr) DropIdleMatching(*aggregate.param);
        return DropIdleMatching(*aggregate.expr);
      }
      case NodeKind::kCall:
        for (const ExprPtr& argument : static_cast<Call&>(expr).arguments) DropIdleMatching(*argument);
        return;
      case NodeKind::kBinary: {
        auto& binary = static_cast<Binary&>(expr);
        DropIdleMatching(*binary.lhs);
        DropIdleMatching(*binary.rhs);
        if (binary.lhs->type() != ValueType::kVector || binary.rhs->type() != ValueType::kVector)
          binary.matching.reset();
        return;
      }
      default:
        return;
    }
  }

  const std::string_view text_;
  const Options options_;
  const std::vector<Token> tokens_;
  size_t at_ = 0;
  int32_t end_ = 0;  // of the last token taken
  int level_ = 0;
  int duration_operators_ = 0;
  bool failed_ = false;
  ParseProblem problem_;
};

}  // namespace

absl::StatusOr<ExprPtr> Parse(std::string_view text, const Options& options) { return Parser(text, options).Whole(); }

absl::StatusOr<std::vector<model::Matcher>> ParseMetricSelector(std::string_view text, const Options& options) {
  return Parser(text, options).Selector();
}

}  // namespace varve::promql
