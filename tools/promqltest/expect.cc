#include "tools/promqltest/expect.h"

#include <re2/re2.h>

#include <map>

#include "storage/base/float_text.h"
#include "storage/base/strings.h"
#include "tools/promqltest/histograms.h"

namespace varve::promqltest {

namespace {

using base::StrCat;

absl::Status Differs(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

bool Fits(const TextExpectation& expectation, const std::string& text) {
  switch (expectation.kind) {
    case TextExpectation::Kind::kAny:
      return true;
    case TextExpectation::Kind::kEqual:
      return expectation.text == text;
    case TextExpectation::Kind::kRegex:
      return RE2::PartialMatch(text, RE2(expectation.text, RE2::Quiet));
  }
  return false;
}

std::string Words(const TextExpectation& expectation) {
  switch (expectation.kind) {
    case TextExpectation::Kind::kAny:
      return "any";
    case TextExpectation::Kind::kEqual:
      return StrCat("text ", base::QuoteGo(expectation.text));
    case TextExpectation::Kind::kRegex:
      return StrCat("match of ", base::QuoteGo(expectation.text));
  }
  return "";
}

absl::Status CheckKind(std::string_view kind, const std::vector<TextExpectation>& expected, bool none,
                       const std::vector<std::string>& seen) {
  if (none && !seen.empty()) return Differs(StrCat("no ", kind, " expected, got ", base::QuoteGo(seen.front())));
  if (expected.empty()) return absl::OkStatus();
  for (const TextExpectation& expectation : expected) {
    bool met = false;
    for (const std::string& text : seen) met = met || Fits(expectation, text);
    if (!met) {
      return Differs(StrCat("expected a ", kind, " (", Words(expectation), "), got ",
                            seen.empty() ? std::string("none") : base::StrJoin(seen, " | ")));
    }
  }
  for (const std::string& text : seen) {
    bool known = false;
    for (const TextExpectation& expectation : expected) known = known || Fits(expectation, text);
    if (!known) return Differs(StrCat("unexpected ", kind, " ", base::QuoteGo(text)));
  }
  return absl::OkStatus();
}

// A point of either kind; both null for none.
struct Seen {
  const double* value = nullptr;
  const model::Histogram* histogram = nullptr;
};

std::string Words(const SequenceValue& value) {
  if (value.omitted) return "nothing";
  return value.histogram != nullptr ? ToString(*value.histogram) : base::FloatGeneral(value.value);
}
std::string Words(const Seen& seen) {
  if (seen.histogram != nullptr) return ToString(*seen.histogram);
  return seen.value != nullptr ? base::FloatGeneral(*seen.value) : "nothing";
}

bool SameValue(const SequenceValue& expected, const Seen& seen) {
  if (expected.omitted) return seen.value == nullptr && seen.histogram == nullptr;
  if (expected.histogram != nullptr) {
    return seen.histogram != nullptr && AlmostEqual(*expected.histogram, *seen.histogram,
                                                    expected.hint_written ? CompareHints::kYes : CompareHints::kNo);
  }
  return seen.value != nullptr && AlmostEqual(expected.value, *seen.value);
}

Seen PointAt(const engine::ResultSeries& series, int64_t t_ms) {
  Seen seen;
  for (const engine::Point& point : series.points) {
    if (point.t_ms == t_ms) seen.value = &point.value;
  }
  for (const engine::HistogramPoint& point : series.histograms) {
    if (point.t_ms == t_ms) seen.histogram = point.histogram.get();
  }
  return seen;
}

absl::Status CompareVector(const Eval& eval, const std::vector<std::pair<model::Labels, Seen>>& seen, Order order) {
  std::map<model::Labels, size_t> position;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (!position.emplace(seen[i].first, i).second) return Differs(StrCat(seen[i].first.ToString(), " occurs twice"));
  }
  for (size_t i = 0; i < eval.series.size(); ++i) {
    const SeriesLine& line = eval.series[i];
    const auto found = position.find(line.labels);
    if (found == position.end()) {
      return Differs(StrCat("expected ", line.labels.ToString(), " ", Words(line.values[0]), " is missing"));
    }
    if (order == Order::kAsListed && found->second != i) {
      return Differs(StrCat(line.labels.ToString(), " is at position ", found->second + 1, ", expected at ", i + 1));
    }
    const Seen& value = seen[found->second].second;
    if (!SameValue(line.values[0], value)) {
      return Differs(StrCat(line.labels.ToString(), ": expected ", Words(line.values[0]), ", got ", Words(value)));
    }
    position.erase(found);
  }
  if (!position.empty()) {
    return Differs(
        StrCat("unexpected ", position.begin()->first.ToString(), " ", Words(seen[position.begin()->second].second)));
  }
  return absl::OkStatus();
}

absl::Status CompareMatrix(const Eval& eval, const TimeGrid& grid, const engine::Result& result) {
  std::map<model::Labels, const engine::ResultSeries*> seen;
  for (const engine::ResultSeries& series : result.series) {
    if (!seen.emplace(series.labels, &series).second) return Differs(StrCat(series.labels.ToString(), " occurs twice"));
  }
  for (const SeriesLine& line : eval.series) {
    const auto found = seen.find(line.labels);
    if (found == seen.end()) return Differs(StrCat("expected ", line.labels.ToString(), " is missing"));
    const engine::ResultSeries& series = *found->second;
    size_t expected_points = 0;
    for (size_t i = 0; i < line.values.size(); ++i) {
      const int64_t t_ms = grid.start_ms + static_cast<int64_t>(i) * grid.step_ms;
      expected_points += line.values[i].omitted ? 0 : 1;
      const Seen point = PointAt(series, t_ms);
      if (!SameValue(line.values[i], point)) {
        return Differs(StrCat(line.labels.ToString(), " at ", t_ms, " ms: expected ", Words(line.values[i]), ", got ",
                              Words(point)));
      }
    }
    const size_t points = series.points.size() + series.histograms.size();
    if (points != expected_points) {
      return Differs(StrCat(line.labels.ToString(), ": expected ", expected_points, " points, got ", points));
    }
    seen.erase(found);
  }
  if (!seen.empty()) return Differs(StrCat("unexpected ", seen.begin()->first.ToString()));
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckFailure(const Eval& eval, const absl::Status& status) {
  if (status.ok()) return Differs("expected to fail");
  const std::string text(base::Message(status));
  if (Fits(*eval.fail, text)) return absl::OkStatus();
  return Differs(StrCat("expected to fail with ", Words(*eval.fail), ", got ", base::QuoteGo(text)));
}

absl::Status CheckAnnotations(const Eval& eval, const engine::Result& result) {
  RETURN_IF_ERROR(CheckKind("warning", eval.warn, eval.no_warn, result.warnings));
  return CheckKind("info", eval.info, eval.no_info, result.infos);
}

absl::Status CheckSorted(const engine::Result& matrix) {
  for (size_t i = 1; i < matrix.series.size(); ++i) {
    if (!(matrix.series[i - 1].labels < matrix.series[i].labels)) {
      return Differs(StrCat("the matrix is not sorted: ", matrix.series[i - 1].labels.ToString(), " comes before ",
                            matrix.series[i].labels.ToString()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckResult(const Eval& eval, const engine::Result& result, Order order) {
  using promql::ValueType;
  const auto want_type = [&](ValueType want) {
    if (result.type == want) return absl::OkStatus();
    return Differs(
        StrCat("expected a result of type ", promql::ToString(want), ", got ", promql::ToString(result.type)));
  };
  if (eval.string) {
    RETURN_IF_ERROR(want_type(ValueType::kString));
    if (result.string == *eval.string) return absl::OkStatus();
    return Differs(StrCat("expected ", base::QuoteGo(*eval.string), ", got ", base::QuoteGo(result.string)));
  }
  if (eval.scalar) {
    RETURN_IF_ERROR(want_type(ValueType::kScalar));
    if (AlmostEqual(*eval.scalar, result.scalar)) return absl::OkStatus();
    return Differs(StrCat("expected ", base::FloatGeneral(*eval.scalar), ", got ", base::FloatGeneral(result.scalar)));
  }
  if (!eval.instant || eval.range_vector) {
    RETURN_IF_ERROR(want_type(ValueType::kMatrix));
    if (!eval.instant) RETURN_IF_ERROR(CheckSorted(result));
    return CompareMatrix(eval, eval.range_vector ? *eval.range_vector : eval.time, result);
  }
  RETURN_IF_ERROR(want_type(ValueType::kVector));
  std::vector<std::pair<model::Labels, Seen>> seen;
  for (const engine::ResultSeries& series : result.series) {
    if (series.points.size() + series.histograms.size() != 1) {
      return Differs(StrCat(series.labels.ToString(), " has not one sample"));
    }
    Seen value;
    if (series.points.empty()) {
      value.histogram = series.histograms[0].histogram.get();
    } else {
      value.value = &series.points[0].value;
    }
    seen.emplace_back(series.labels, value);
  }
  return CompareVector(eval, seen, order);
}

absl::Status CheckColumn(const Eval& eval, const engine::Result& matrix, int64_t t_ms) {
  RETURN_IF_ERROR(CheckSorted(matrix));
  std::vector<std::pair<model::Labels, Seen>> seen;
  for (const engine::ResultSeries& series : matrix.series) {
    const Seen point = PointAt(series, t_ms);
    if (point.value != nullptr || point.histogram != nullptr) seen.emplace_back(series.labels, point);
  }
  if (!eval.scalar) return CompareVector(eval, seen, Order::kAny);
  if (seen.size() != 1 || !seen[0].first.empty() || seen[0].second.value == nullptr) {
    return Differs("expected one series without labels");
  }
  if (AlmostEqual(*eval.scalar, *seen[0].second.value)) return absl::OkStatus();
  return Differs(StrCat("expected ", base::FloatGeneral(*eval.scalar), ", got ", Words(seen[0].second)));
}

}  // namespace varve::promqltest
