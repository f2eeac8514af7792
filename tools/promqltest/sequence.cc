#include "tools/promqltest/sequence.h"

#include <cmath>
#include <map>
#include <string>

#include "query/promql/lexer.h"
#include "query/promql/parser.h"
#include "storage/base/strings.h"
#include "tools/promqltest/histograms.h"

namespace varve::promqltest {

namespace {

using base::StrCat;

// More would be a slip of the pen, and must not eat the memory.
constexpr uint64_t kRepeatMax = 1'000'000;

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameByte(char c) {
  return c == '_' || c == ':' || IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}
  bool AtEnd() const { return rest_.empty(); }
  bool AtItemEnd() const { return rest_.empty() || IsSpace(rest_.front()); }
  char Peek() const { return rest_.empty() ? '\0' : rest_.front(); }
  std::string_view rest() const { return rest_; }
  void Skip(size_t n) { rest_.remove_prefix(n); }
  void SkipSpace() {
    while (!rest_.empty() && IsSpace(rest_.front())) rest_.remove_prefix(1);
  }
  bool Accept(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  template <class Fits>
  std::string_view TakeWhile(Fits fits) {
    size_t n = 0;
    while (n < rest_.size() && fits(rest_[n])) ++n;
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }
  absl::Status Fail(std::string_view what) const {
    return absl::InvalidArgumentError(StrCat(what, " at ", base::QuoteGo(rest_.substr(0, 30))));
  }

 private:
  std::string_view rest_;
};

absl::StatusOr<std::string> TakeString(Cursor& in) {
  const char quote = in.Peek();
  if (quote != '"' && quote != '\'' && quote != '`') return in.Fail("want a quoted string");
  const std::string_view rest = in.rest();
  size_t end = 1;
  while (end < rest.size() && rest[end] != quote) end += quote != '`' && rest[end] == '\\' ? 2 : 1;
  if (end >= rest.size()) return in.Fail("a string does not end");
  in.Skip(end + 1);
  return promql::Unquote(rest.substr(0, end + 1));
}

absl::StatusOr<model::Labels> TakeLabels(Cursor& in) {
  std::vector<model::Label> pairs;
  const auto add = [&pairs](std::string_view name, std::string_view value) {
    for (const model::Label& pair : pairs) {
      if (pair.name == name) return false;
    }
    pairs.push_back({std::string(name), std::string(value)});
    return true;
  };
  const std::string_view metric = in.TakeWhile(IsNameByte);
  if (!metric.empty()) add(model::kMetricName, metric);
  if (!in.Accept("{")) {
    if (metric.empty()) return in.Fail("want a series");
    return model::Labels::FromPairs(std::move(pairs));
  }
  while (in.SkipSpace(), !in.Accept("}")) {
    std::string name;
    const bool quoted = !IsNameByte(in.Peek());
    if (quoted) {
      ASSIGN_OR_RETURN(name, TakeString(in));
    } else {
      name = in.TakeWhile(IsNameByte);
    }
    if (name.empty()) return in.Fail("an empty label name");
    in.SkipSpace();
    if (in.Accept("=")) {
      in.SkipSpace();
      ASSIGN_OR_RETURN(const std::string value, TakeString(in));
      if (!add(name, value)) return in.Fail(StrCat("label ", name, " is set twice"));
    } else if (!quoted) {
      return in.Fail("want =");
    } else if (!add(model::kMetricName, name)) {
      return in.Fail("the metric name is set twice");
    }
    in.SkipSpace();
    if (!in.Accept(",") && in.Peek() != '}') return in.Fail("want , or }");
  }
  return model::Labels::FromPairs(std::move(pairs));
}

// An unsigned number up to a repeat sign, an operator or the item's end.
absl::StatusOr<double> TakeNumber(Cursor& in) {
  double sign = 1;
  if (in.Accept("-")) {
    sign = -1;
  } else {
    in.Accept("+");
  }
  const std::string_view rest = in.rest();
  const std::string lower = base::AsciiLower(rest.substr(0, 3));
  size_t n = 0;
  if (lower == "inf" || lower == "nan") {
    n = 3;
  } else {
    while (n < rest.size()) {
      const char c = rest[n];
      const bool exponent_sign = (c == '+' || c == '-') && n > 0 && (rest[n - 1] == 'e' || rest[n - 1] == 'E');
      if (!IsDigit(c) && c != '.' && c != '_' && c != 'e' && c != 'E' && !exponent_sign) break;
      ++n;
    }
  }
  const std::optional<double> value = promql::ParseNumber(rest.substr(0, n));
  if (!value) return in.Fail("want a number");
  in.Skip(n);
  return std::isnan(*value) ? model::NormalNan() : sign * *value;
}

absl::StatusOr<uint64_t> TakeRepeat(Cursor& in) {
  if (!in.Accept("x")) return in.Fail("want x and a count");
  const auto count = base::ParseUint64(in.TakeWhile(IsDigit));
  if (!count || *count > kRepeatMax) return in.Fail("want a reasonable count");
  return *count;
}

struct Literal {
  model::Histogram histogram;
  bool hint_written = false;
};

absl::StatusOr<std::vector<double>> TakeNumberList(Cursor& in) {
  std::vector<double> out;
  if (!in.Accept("[")) return in.Fail("want [");
  while (in.SkipSpace(), !in.Accept("]")) {
    ASSIGN_OR_RETURN(const double value, TakeNumber(in));
    out.push_back(value);
  }
  return out;
}

absl::StatusOr<Literal> TakeHistogram(Cursor& in) {
  Literal out;
  model::Histogram& h = out.histogram;
  if (!in.Accept("{{")) return in.Fail("want {{");
  int32_t offset = 0, n_offset = 0;
  std::map<std::string, bool> seen;
  while (in.SkipSpace(), !in.Accept("}}")) {
    const std::string key(in.TakeWhile([](char c) { return c == '_' || (c >= 'a' && c <= 'z'); }));
    if (!in.Accept(":")) return in.Fail("want key:value in a histogram");
    if (std::exchange(seen[key], true)) return in.Fail(StrCat("duplicate key ", key));
    in.SkipSpace();
    if (key == "buckets" || key == "n_buckets" || key == "custom_values") {
      auto& list = key == "buckets" ? h.positive_buckets : key == "n_buckets" ? h.negative_buckets : h.custom_values;
      ASSIGN_OR_RETURN(list, TakeNumberList(in));
    } else if (key == "counter_reset_hint") {
      out.hint_written = true;
      const std::string_view word = in.TakeWhile([](char c) { return c == '_' || (c >= 'a' && c <= 'z'); });
      static constexpr std::string_view kHints[] = {"unknown", "reset", "not_reset", "gauge"};
      size_t hint = 0;
      while (hint < 4 && kHints[hint] != word) ++hint;
      if (hint == 4) return in.Fail("unknown counter_reset_hint");
      h.hint = static_cast<model::ResetHint>(hint);
    } else {
      ASSIGN_OR_RETURN(const double value, TakeNumber(in));
      if (key == "count") {
        h.count = value;
      } else if (key == "sum") {
        h.sum = value;
      } else if (key == "z_bucket") {
        h.zero_count = value;
      } else if (key == "z_bucket_w") {
        h.zero_threshold = value;
      } else if (key == "schema" || key == "offset" || key == "n_offset") {
        if (std::trunc(value) != value || std::fabs(value) > 1e6) return in.Fail(StrCat(key, " must be an integer"));
        (key == "schema" ? h.schema : key == "offset" ? offset : n_offset) = static_cast<int32_t>(value);
      } else {
        return in.Fail(StrCat("unknown key ", key));
      }
    }
  }
  if (!h.positive_buckets.empty()) h.positive_spans = {{offset, static_cast<uint32_t>(h.positive_buckets.size())}};
  if (!h.negative_buckets.empty()) h.negative_spans = {{n_offset, static_cast<uint32_t>(h.negative_buckets.size())}};
  return out;
}

absl::Status TakeHistograms(Cursor& in, std::vector<SequenceValue>& out) {
  ASSIGN_OR_RETURN(Literal first, TakeHistogram(in));
  SequenceValue value;
  value.histogram = std::make_shared<const model::Histogram>(first.histogram);
  value.hint_written = first.hint_written;
  const char sign = in.Peek();
  if (sign != '+' && sign != '-') {
    uint64_t repeat = 0;
    if (in.Peek() == 'x') {
      ASSIGN_OR_RETURN(repeat, TakeRepeat(in));
    }
    out.insert(out.end(), repeat + 1, value);
    return absl::OkStatus();
  }
  in.Skip(1);
  ASSIGN_OR_RETURN(const Literal step, TakeHistogram(in));
  ASSIGN_OR_RETURN(const uint64_t repeat, TakeRepeat(in));
  value.hint_written = step.hint_written;
  out.push_back(value);
  for (uint64_t i = 0; i < repeat; ++i) {
    if (value.histogram->schema > step.histogram.schema) {
      return in.Fail(StrCat("a histogram of schema ", value.histogram->schema, " cannot take one of schema ",
                            step.histogram.schema));
    }
    ASSIGN_OR_RETURN(model::Histogram next, Combine(*value.histogram, step.histogram, sign == '+' ? 1 : -1));
    value.histogram = std::make_shared<const model::Histogram>(std::move(next));
    out.push_back(value);
  }
  return absl::OkStatus();
}

absl::Status TakeFloats(Cursor& in, std::vector<SequenceValue>& out) {
  SequenceValue value;
  ASSIGN_OR_RETURN(value.value, TakeNumber(in));
  const char sign = in.Peek();
  double step = 0;
  if (sign == '+' || sign == '-') {
    ASSIGN_OR_RETURN(step, TakeNumber(in));
    if (in.Peek() != 'x') return in.Fail("want x and a count");
  }
  uint64_t repeat = 0;
  if (in.Peek() == 'x') {
    ASSIGN_OR_RETURN(repeat, TakeRepeat(in));
  }
  out.push_back(value);
  for (uint64_t i = 0; i < repeat; ++i) {
    if (step != 0) value.value += step;
    out.push_back(value);
  }
  return absl::OkStatus();
}

// "-1m30s", "0", "5ms"; stops at a repeat sign or a further sign.
absl::StatusOr<int64_t> TakeSignedDuration(Cursor& in) {
  const bool negative = in.Accept("-");
  if (!negative) in.Accept("+");
  const std::string_view text = in.TakeWhile([](char c) { return IsDigit(c) || (c >= 'a' && c <= 'w') || c == 'y'; });
  ASSIGN_OR_RETURN(const int64_t ms, promql::ParseDuration(text));
  return negative ? -ms : ms;
}

}  // namespace

absl::StatusOr<SeriesLine> ParseSeriesLine(std::string_view text) {
  Cursor in(text);
  SeriesLine out;
  ASSIGN_OR_RETURN(out.labels, TakeLabels(in));
  while (in.SkipSpace(), !in.AtEnd()) {
    if (in.Peek() == '_') {
      in.Skip(1);
      uint64_t repeat = 1;
      if (in.Peek() == 'x') {
        ASSIGN_OR_RETURN(repeat, TakeRepeat(in));
      }
      SequenceValue omitted;
      omitted.omitted = true;
      out.values.insert(out.values.end(), repeat, omitted);
    } else if (in.Accept("stale")) {
      SequenceValue stale;
      stale.value = model::StaleNan();
      out.values.push_back(stale);
    } else if (in.Peek() == '{') {
      RETURN_IF_ERROR(TakeHistograms(in, out.values));
    } else {
      RETURN_IF_ERROR(TakeFloats(in, out.values));
    }
    if (!in.AtItemEnd()) return in.Fail("unexpected text after a value");
  }
  return out;
}

bool IsStartsLine(std::string_view text) {
  const size_t end = text.find_first_of(" \t");
  return text.substr(0, end).ends_with("@st");
}

absl::StatusOr<StartsLine> ParseStartsLine(std::string_view text) {
  Cursor in(text);
  StartsLine out;
  ASSIGN_OR_RETURN(out.labels, TakeLabels(in));
  if (!in.Accept("@st")) return in.Fail("want @st");
  while (in.SkipSpace(), !in.AtEnd()) {
    if (in.Peek() == '_') {
      in.Skip(1);
      uint64_t repeat = 1;
      if (in.Peek() == 'x') {
        ASSIGN_OR_RETURN(repeat, TakeRepeat(in));
      }
      out.offsets_ms.insert(out.offsets_ms.end(), repeat, std::nullopt);
    } else {
      ASSIGN_OR_RETURN(int64_t offset, TakeSignedDuration(in));
      int64_t step = 0;
      if (in.Peek() == '+' || in.Peek() == '-') {
        ASSIGN_OR_RETURN(step, TakeSignedDuration(in));
        if (in.Peek() != 'x') return in.Fail("want x and a count");
      }
      uint64_t repeat = 0;
      if (in.Peek() == 'x') {
        ASSIGN_OR_RETURN(repeat, TakeRepeat(in));
      }
      for (uint64_t i = 0; i <= repeat; ++i) {
        out.offsets_ms.push_back(offset);
        offset += step;
      }
    }
    if (!in.AtItemEnd()) return in.Fail("unexpected text after a start time");
  }
  return out;
}

std::optional<double> ParseBareNumber(std::string_view text) {
  Cursor in(text);
  const auto value = TakeNumber(in);
  if (!value.ok() || !in.AtEnd()) return std::nullopt;
  return *value;
}

}  // namespace varve::promqltest
