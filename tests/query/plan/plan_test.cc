#include "query/plan/plan.h"

#include <catch2/catch.hpp>

#include "query/promql/parser.h"

namespace varve::plan {
namespace {

std::string Planned(std::string_view text, const Bounds& bounds = {1'000'000, 2'000'000, 10'000, 60'000}) {
  const promql::ExprPtr expr = promql::Parse(text).value();
  const absl::StatusOr<NodePtr> root = Build(*expr, bounds);
  return root.ok() ? Explain(**root) : std::string(base::Message(root.status()));
}

TEST_CASE("durations are computed from the query", "[plan]") {
  CHECK(Planned("m[2*step()]") == "select range {__name__=\"m\"} range=20000ms\n");
  CHECK(Planned("m offset (range()/4)") == "select {__name__=\"m\"} offset=250000ms\n");
  CHECK(Planned("m[1m-1m]") == "duration must be greater than 0");
  CHECK(Planned("m[1m/0]") == "division by zero");
  CHECK(Planned("m[1m^1000]") == "duration out of range");
}

TEST_CASE("start and end become times", "[plan]") {
  CHECK(Planned("m @ start()") == "once\n  select {__name__=\"m\"} at=1000000ms\n");
  CHECK(Planned("m @ end() + 1") == "once\n  binary +\n    select {__name__=\"m\"} at=2000000ms\n    number 1\n");
}

TEST_CASE("only what has one value for all steps is computed once", "[plan]") {
  CHECK(Planned("m + m @ 5") ==
        "binary + ignoring ()\n  select {__name__=\"m\"}\n  once\n    select {__name__=\"m\"} at=5000ms\n");
  // The time of the step is part of the answer.
  CHECK(Planned("predict_linear(m[1m] @ 5, 60)") ==
        "call predict_linear\n  select range {__name__=\"m\"} range=60000ms at=5000ms\n  number 60\n");
}

TEST_CASE("literals are folded and subqueries get their step", "[plan]") {
  CHECK(Planned("1 + 2 * 3") == "number 7\n");
  CHECK(Planned("-(2)") == "number -2\n");
  CHECK(Planned("m[5m:]") == "subquery range=300000ms step=60000ms\n  select {__name__=\"m\"}\n");
}

}  // namespace
}  // namespace varve::plan
