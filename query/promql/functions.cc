// Signatures of the functions of Prometheus 3.14.
#include <absl/container/flat_hash_map.h>

#include "query/promql/ast.h"
#include "storage/base/strings.h"

namespace varve::promql {

namespace {

constexpr ValueType S = ValueType::kScalar, V = ValueType::kVector, M = ValueType::kMatrix, T = ValueType::kString;
enum class Stage { kStable, kExperimental };

using Table = base::StringMap<FunctionSignature>;

Table BuildTable() {
  Table table;
  const auto add = [&table](std::string_view name, std::vector<ValueType> arguments, int variadic = 0,
                            ValueType result = V, Stage stage = Stage::kStable) {
    FunctionSignature signature{name, std::move(arguments), variadic, result, stage == Stage::kExperimental};
    table.emplace(std::string(name), std::move(signature));
  };
  for (const std::string_view name : {"abs",
                                      "absent",
                                      "acos",
                                      "acosh",
                                      "asin",
                                      "asinh",
                                      "atan",
                                      "atanh",
                                      "ceil",
                                      "cos",
                                      "cosh",
                                      "deg",
                                      "exp",
                                      "floor",
                                      "histogram_avg",
                                      "histogram_count",
                                      "histogram_sum",
                                      "histogram_stddev",
                                      "histogram_stdvar",
                                      "ln",
                                      "log10",
                                      "log2",
                                      "rad",
                                      "sgn",
                                      "sin",
                                      "sinh",
                                      "sort",
                                      "sort_desc",
                                      "sqrt",
                                      "tan",
                                      "tanh",
                                      "timestamp"}) {
    add(name, {V});
  }
  for (const std::string_view name :
       {"absent_over_time", "avg_over_time", "changes", "count_over_time", "delta", "deriv", "idelta", "increase",
        "irate", "last_over_time", "max_over_time", "min_over_time", "present_over_time", "rate", "resets",
        "stddev_over_time", "stdvar_over_time", "sum_over_time"}) {
    add(name, {M});
  }
  for (const std::string_view name : {"first_over_time", "mad_over_time", "ts_of_first_over_time",
                                      "ts_of_last_over_time", "ts_of_max_over_time", "ts_of_min_over_time"}) {
    add(name, {M}, 0, V, Stage::kExperimental);
  }
  for (const std::string_view name :
       {"day_of_month", "day_of_week", "day_of_year", "days_in_month", "hour", "minute", "month", "year"}) {
    add(name, {V}, 1);
  }
  add("clamp", {V, S, S});
  add("clamp_max", {V, S});
  add("clamp_min", {V, S});
  add("histogram_fraction", {S, S, V});
  add("histogram_quantile", {S, V});
  add("label_join", {V, T, T, T}, -1);
  add("label_replace", {V, T, T, T, T});
  add("pi", {}, 0, S);
  add("predict_linear", {M, S});
  add("quantile_over_time", {S, M});
  add("round", {V, S}, 1);
  add("scalar", {V}, 0, S);
  add("time", {}, 0, S);
  add("vector", {S});
  add("double_exponential_smoothing", {M, S, S}, 0, V, Stage::kExperimental);
  add("end", {}, 0, S, Stage::kExperimental);
  add("histogram_quantiles", {V, T, S, S, S, S, S, S, S, S, S, S}, 9, V, Stage::kExperimental);
  add("info", {V, V}, 1, V, Stage::kExperimental);
  add("max_of", {S, S}, 0, S, Stage::kExperimental);
  add("min_of", {S, S}, 0, S, Stage::kExperimental);
  add("range", {}, 0, S, Stage::kExperimental);
  add("sort_by_label", {V, T}, -1, V, Stage::kExperimental);
  add("sort_by_label_desc", {V, T}, -1, V, Stage::kExperimental);
  add("start", {}, 0, S, Stage::kExperimental);
  add("start_timestamp", {V}, 0, V, Stage::kExperimental);
  add("step", {}, 0, S, Stage::kExperimental);
  return table;
}

}  // namespace

const FunctionSignature* FindFunction(std::string_view name) {
  static const Table& table = *new Table(BuildTable());  // constant, and needed until the last query has ended
  const auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace varve::promql
