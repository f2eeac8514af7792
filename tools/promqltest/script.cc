#include "tools/promqltest/script.h"

#include "query/promql/lexer.h"
#include "query/promql/parser.h"
#include "storage/base/strings.h"

namespace varve::promqltest {

namespace {

using base::StrCat;

constexpr promql::Options kAllFeatures{true, true, true, true};

std::string_view TakeWord(std::string_view& rest) {
  rest = base::StrTrim(rest);
  const size_t end = std::min(rest.find_first_of(" \t"), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest = base::StrTrim(rest.substr(end));
  return word;
}

class ScriptParser {
 public:
  explicit ScriptParser(std::string_view text) {
    for (const std::string_view line : base::StrSplit(text, '\n')) {
      const std::string_view trimmed = base::StrTrim(line);
      lines_.push_back(trimmed.starts_with('#') ? std::string_view() : trimmed);
    }
  }

  absl::StatusOr<std::vector<Command>> Run() {
    std::vector<Command> commands;
    while (at_ < lines_.size()) {
      if (lines_[at_].empty()) {
        ++at_;
        continue;
      }
      const size_t header = at_;
      auto command = Next();
      if (!command.ok()) {
        const size_t line = std::min(std::max(at_, header), lines_.size() - 1);
        return base::Annotate(command.status(), StrCat("line ", line + 1));
      }
      commands.push_back(*std::move(command));
    }
    return commands;
  }

 private:
  static absl::Status Fail(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }
  // The next line of the block, without moving; empty at its end.
  std::string_view Body() const { return at_ < lines_.size() ? lines_[at_] : std::string_view(); }
  int Line() const { return static_cast<int>(at_) + 1; }

  absl::StatusOr<Command> Next() {
    std::string_view rest = lines_[at_];
    const std::string word = base::AsciiLower(TakeWord(rest));
    if (word == "clear") {
      if (!rest.empty()) return Fail("clear takes nothing");
      ++at_;
      return Clear{};
    }
    if (word == "load" || word == "load_with_nhcb") return ParseLoad(rest, word == "load_with_nhcb");
    if (word.starts_with("eval")) return ParseEval(word, rest);
    return Fail(StrCat("unknown command ", base::QuoteGo(word)));
  }

  absl::StatusOr<Command> ParseLoad(std::string_view rest, bool with_nhcb) {
    Load load;
    load.line = Line();
    load.with_nhcb = with_nhcb;
    ASSIGN_OR_RETURN(load.step_ms, promql::ParseDuration(rest));
    ++at_;
    std::optional<StartsLine> starts;
    for (; !Body().empty(); ++at_) {
      if (IsStartsLine(Body())) {
        if (starts) return Fail("two @st lines in a row");
        ASSIGN_OR_RETURN(starts, ParseStartsLine(Body()));
        continue;
      }
      LoadedSeries loaded;
      ASSIGN_OR_RETURN(loaded.series, ParseSeriesLine(Body()));
      loaded.series.line = Line();
      if (starts) {
        if (starts->labels != loaded.series.labels) return Fail("an @st line is followed by another series");
        if (starts->offsets_ms.size() != loaded.series.values.size()) {
          return Fail(StrCat("the @st line has ", starts->offsets_ms.size(), " positions, its series ",
                             loaded.series.values.size()));
        }
        loaded.start_offsets_ms = std::move(starts->offsets_ms);
        starts.reset();
      }
      load.series.push_back(std::move(loaded));
    }
    if (starts) return Fail("an @st line without its series");
    return load;
  }

  absl::StatusOr<TimeGrid> ParseGrid(std::string_view& rest) {
    TimeGrid grid;
    for (const auto& [word, target] : {std::pair<std::string_view, int64_t*>{"from", &grid.start_ms},
                                       {"to", &grid.end_ms},
                                       {"step", &grid.step_ms}}) {
      if (base::AsciiLower(TakeWord(rest)) != word) return Fail(StrCat("want `", word, "`"));
      ASSIGN_OR_RETURN(*target, promql::ParseDuration(TakeWord(rest)));
    }
    if (grid.end_ms < grid.start_ms) return Fail("the range ends before it starts");
    if (grid.step_ms <= 0) return Fail("the step must be positive");
    return grid;
  }

  absl::StatusOr<Command> ParseEval(std::string_view word, std::string_view rest) {
    Eval eval;
    eval.line = Line();
    const std::string_view suffix = word.substr(4);
    if (suffix == "_ordered") {
      eval.ordered = true;
    } else if (suffix == "_fail") {
      eval.fail.emplace();
    } else if (suffix == "_warn") {
      eval.warn.emplace_back();
    } else if (suffix == "_info") {
      eval.info.emplace_back();
    } else if (!suffix.empty()) {
      return Fail(StrCat("unknown command ", base::QuoteGo(word)));
    }
    const std::string form = base::AsciiLower(TakeWord(rest));
    if (form == "instant") {
      if (base::AsciiLower(TakeWord(rest)) != "at") return Fail("want `at`");
      ASSIGN_OR_RETURN(eval.time.start_ms, promql::ParseDuration(TakeWord(rest)));
      eval.time.end_ms = eval.time.start_ms;
    } else if (form == "range") {
      eval.instant = false;
      ASSIGN_OR_RETURN(eval.time, ParseGrid(rest));
      if (eval.ordered) return Fail("a range query has no order to expect");
    } else {
      return Fail("want `instant` or `range`");
    }
    eval.expr = rest;
    if (const auto expr = promql::Parse(eval.expr, kAllFeatures); !expr.ok()) return expr.status();
    ++at_;
    for (; !Body().empty(); ++at_) {
      if (suffix == "_fail" && Body().starts_with("expected_fail_message")) {
        eval.fail = {TextExpectation::Kind::kEqual, std::string(base::StrTrim(Body().substr(21)))};
        ++at_;
        break;
      }
      if (suffix == "_fail" && Body().starts_with("expected_fail_regexp")) {
        eval.fail = {TextExpectation::Kind::kRegex, std::string(base::StrTrim(Body().substr(20)))};
        ++at_;
        break;
      }
      if (Body().starts_with("expect ")) {
        RETURN_IF_ERROR(ParseExpect(Body().substr(7), eval));
        continue;
      }
      if (const std::optional<double> number = ParseBareNumber(Body())) {
        eval.scalar = number;
        ++at_;
        break;
      }
      ASSIGN_OR_RETURN(SeriesLine line, ParseSeriesLine(Body()));
      line.line = Line();
      RETURN_IF_ERROR(CheckExpectedSeries(eval, line));
      eval.series.push_back(std::move(line));
    }
    if (eval.no_warn && !eval.warn.empty()) return Fail("both warn and no_warn are expected");
    if (eval.no_info && !eval.info.empty()) return Fail("both info and no_info are expected");
    return eval;
  }

  static absl::Status CheckExpectedSeries(const Eval& eval, const SeriesLine& line) {
    if (eval.scalar) return Fail("series after a scalar");
    const TimeGrid* grid = eval.range_vector ? &*eval.range_vector : eval.instant ? nullptr : &eval.time;
    if (grid == nullptr) {
      if (line.values.size() != 1 || line.values[0].omitted)
        return Fail("an instant query has one value for each series");
      return absl::OkStatus();
    }
    const int64_t positions = (grid->end_ms - grid->start_ms) / grid->step_ms + 1;
    if (static_cast<int64_t>(line.values.size()) > positions) {
      return Fail(StrCat(line.values.size(), " positions are expected of a range that has ", positions));
    }
    return absl::OkStatus();
  }

  static absl::Status ParseExpect(std::string_view rest, Eval& eval) {
    const std::string word(TakeWord(rest));
    if (word == "ordered") {
      if (!eval.instant) return Fail("a range query has no order to expect");
      eval.ordered = true;
    } else if (word == "no_warn") {
      eval.no_warn = true;
    } else if (word == "no_info") {
      eval.no_info = true;
    } else if (word == "fail" || word == "warn" || word == "info") {
      TextExpectation expectation;
      if (rest.starts_with("msg:")) {
        expectation = {TextExpectation::Kind::kEqual, std::string(base::StrTrim(rest.substr(4)))};
      } else if (rest.starts_with("regex:")) {
        expectation = {TextExpectation::Kind::kRegex, std::string(base::StrTrim(rest.substr(6)))};
      } else if (!rest.empty()) {
        return Fail(StrCat("want msg: or regex: after ", word));
      }
      if (word == "fail") {
        if (eval.fail) return Fail("more than one expectation of a failure");
        eval.fail = std::move(expectation);
      } else {
        (word == "warn" ? eval.warn : eval.info).push_back(std::move(expectation));
      }
    } else if (word == "string") {
      const bool quoted =
          rest.size() >= 2 && (rest.front() == '"' || rest.front() == '`') && rest.back() == rest.front();
      if (!quoted) return Fail("want a quoted string");
      ASSIGN_OR_RETURN(eval.string, promql::Unquote(rest));
    } else if (word == "range") {
      if (!eval.instant) return Fail("only an instant query returns a range vector");
      if (TakeWord(rest) != "vector") return Fail("want `range vector`");
      ScriptParser grid_parser("");
      ASSIGN_OR_RETURN(eval.range_vector, grid_parser.ParseGrid(rest));
    } else {
      return Fail(StrCat("unknown expectation ", base::QuoteGo(word)));
    }
    return absl::OkStatus();
  }

  std::vector<std::string_view> lines_;
  size_t at_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<Command>> ParseScript(std::string_view text) { return ScriptParser(text).Run(); }

}  // namespace varve::promqltest
