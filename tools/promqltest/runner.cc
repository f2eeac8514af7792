#include "tools/promqltest/runner.h"

#include "query/promql/parser.h"
#include "storage/base/strings.h"
#include "tools/promqltest/expect.h"
#include "tools/promqltest/rewrite.h"

namespace varve::promqltest {

namespace {

using base::StrCat;

class Runner {
 public:
  Runner(World& world, const engine::Engine& engine, const RunOptions& options)
      : world_(world), engine_(engine), options_(options) {}

  absl::Status Run(const Load& load) {
    ASSIGN_OR_RETURN(const std::vector<WorldSeries> series, Expand(load));
    return world_.Append(series);
  }

  absl::Status Run(const Eval& eval) {
    RETURN_IF_ERROR(AsWritten(eval));
    if (!options_.level2 || !eval.instant || eval.string || eval.range_vector) return absl::OkStatus();
    RETURN_IF_ERROR(AsRange(eval, eval.expr, eval.time.start_ms));
    ASSIGN_OR_RETURN(const promql::ExprPtr expr, promql::Parse(eval.expr, engine_.config().parser));
    const std::optional<std::string> pinned = PinToTime(*expr, eval.time.start_ms);
    if (!pinned) return absl::OkStatus();
    const int64_t t = eval.time.start_ms;
    const std::vector<int64_t> times =
        t == 0 ? std::vector<int64_t>{-1000, 0, 1000} : std::vector<int64_t>{-10 * t, 0, t / 5, t, 10 * t};
    for (const int64_t at_ms : times) {
      const std::string where = StrCat("pinned as `", *pinned, "` and run at ", at_ms, " ms");
      RETURN_IF_ERROR(base::Annotate(AtTime(eval, *pinned, at_ms), where));
      RETURN_IF_ERROR(base::Annotate(AsRange(eval, *pinned, at_ms), where));
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<engine::Result> Query(std::string_view text, const TimeGrid& grid) const {
    engine::Query query;
    query.text = text;
    query.start_ms = grid.start_ms;
    query.end_ms = grid.end_ms;
    query.step_ms = grid.step_ms;
    return engine_.Run(query, world_.source());
  }

  absl::Status Judge(const Eval& eval, const absl::StatusOr<engine::Result>& result) const {
    if (eval.fail) return CheckFailure(eval, result.status());
    if (!result.ok()) return base::Annotate(result.status(), "failed");
    RETURN_IF_ERROR(CheckResult(eval, *result, eval.ordered ? Order::kAsListed : Order::kAny));
    return CheckAnnotations(eval, *result);
  }

  absl::Status AsWritten(const Eval& eval) const {
    if (!eval.instant) return Judge(eval, Query(eval.expr, eval.time));
    return AtTime(eval, eval.expr, eval.range_vector ? eval.range_vector->end_ms : eval.time.start_ms);
  }

  absl::Status AtTime(const Eval& eval, std::string_view text, int64_t t_ms) const {
    return Judge(eval, Query(text, {t_ms, t_ms, 0}));
  }

  absl::Status AsRange(const Eval& eval, std::string_view text, int64_t t_ms) const {
    if (eval.fail) return absl::OkStatus();
    for (const std::string_view word : {"start()", "end()", "step()", "range()"}) {
      if (text.find(word) != std::string_view::npos) return absl::OkStatus();
    }
    constexpr int64_t kMinute = 60'000;
    const auto result = Query(text, {t_ms - kMinute, t_ms + kMinute, kMinute});
    if (!result.ok()) return base::Annotate(result.status(), "failed as a range query");
    RETURN_IF_ERROR(CheckSorted(*result));
    if (eval.ordered) return absl::OkStatus();
    return base::Annotate(CheckColumn(eval, *result, t_ms), "as a range query");
  }

  World& world_;
  const engine::Engine& engine_;
  const RunOptions options_;
};

}  // namespace

Outcome RunScript(std::string_view name, std::string_view text, World& world, const engine::Engine& engine,
                  const RunOptions& options) {
  Outcome outcome;
  const auto fail = [&](int line, std::string_view what) {
    ++outcome.failed;
    outcome.failed_lines.push_back(line);
    outcome.failures.push_back(StrCat(name, ":", line, ": ", what));
  };
  const auto commands = ParseScript(text);
  if (!commands.ok()) {
    fail(1, base::Message(commands.status()));
    return outcome;
  }
  Runner runner(world, engine, options);
  if (const absl::Status cleared = world.Clear(); !cleared.ok()) {
    fail(1, base::Message(cleared));
    return outcome;
  }
  for (const Command& command : *commands) {
    if (std::holds_alternative<Clear>(command)) {
      if (const absl::Status cleared = world.Clear(); !cleared.ok()) fail(1, base::Message(cleared));
    } else if (const Load* load = std::get_if<Load>(&command)) {
      if (const absl::Status loaded = runner.Run(*load); !loaded.ok()) fail(load->line, base::Message(loaded));
    } else {
      const Eval& eval = std::get<Eval>(command);
      if (const absl::Status judged = runner.Run(eval); judged.ok()) {
        ++outcome.passed;
      } else {
        fail(eval.line, StrCat("`", eval.expr, "`: ", base::Message(judged)));
      }
    }
  }
  return outcome;
}

}  // namespace varve::promqltest
