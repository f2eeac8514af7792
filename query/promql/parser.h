#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "query/promql/ast.h"
#include "storage/base/status.h"

namespace varve::promql {

// A whole expression, type-checked. InvalidArgument: "<line>:<column>: parse error: <text>" with Prometheus' words
// where tools match on them; columns count bytes from 1. Nesting is bounded, so that no input overflows the stack.
absl::StatusOr<ExprPtr> Parse(std::string_view text, const Options& options = {});

// A selector alone, as match[] has it: name{...}; InvalidArgument as above.
absl::StatusOr<std::vector<model::Matcher>> ParseMetricSelector(std::string_view text, const Options& options = {});

// "1h30m", "500ms", "0" to milliseconds.
absl::StatusOr<int64_t> ParseDuration(std::string_view text);
// Milliseconds to the shortest such text: "1h30m", "0s".
std::string FormatDuration(int64_t ms);

// One line that parses to the same tree (Prometheus' String()).
std::string Print(const Expr& expr);
// With line breaks and two spaces of indentation where a line would exceed 100 columns (Prometheus' format_query).
std::string PrettyPrint(const Expr& expr);
ExprPtr Clone(const Expr& expr);
// The same meaning: positions, spelling of numbers and order of matchers do not count.
bool Equal(const Expr& a, const Expr& b);

// "1:5" of a byte offset in `text`.
std::string LineColumn(std::string_view text, int32_t offset);

}  // namespace varve::promql
