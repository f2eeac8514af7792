// time(), timestamp(), start_timestamp() and the calendar functions.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "query/exec/functions.h"
#include "query/exec/labels.h"
#include "query/exec/repeat.h"
#include "query/exec/selector.h"

namespace varve::exec {
namespace {

struct Civil {
  std::chrono::year_month_day date;
  int64_t days = 0;  // since the epoch
  int64_t second_of_day = 0;
};

Civil FromSeconds(double v) {
  // Go converts out of range floats to the smallest integer; years beyond a few million mean nothing anyway.
  const double bounded = std::isnan(v) ? 0 : std::clamp(v, -1e13, 1e13);
  const auto seconds = static_cast<int64_t>(bounded);
  Civil civil;
  civil.days = seconds / 86'400 - (seconds % 86'400 < 0 ? 1 : 0);
  civil.second_of_day = seconds - civil.days * 86'400;
  civil.date = std::chrono::year_month_day(std::chrono::sys_days(std::chrono::days(civil.days)));
  return civil;
}

using Calendar = double (*)(const Civil&);
struct NamedCalendar {
  std::string_view name;
  Calendar function;
};
constexpr std::array kCalendar = {
    NamedCalendar{"minute", [](const Civil& c) { return static_cast<double>(c.second_of_day / 60 % 60); }},
    NamedCalendar{"hour", [](const Civil& c) { return static_cast<double>(c.second_of_day / 3600); }},
    NamedCalendar{"day_of_month",
                  [](const Civil& c) { return static_cast<double>(static_cast<unsigned>(c.date.day())); }},
    NamedCalendar{"day_of_week",
                  [](const Civil& c) {
                    return static_cast<double>(
                        std::chrono::weekday(std::chrono::sys_days(std::chrono::days(c.days))).c_encoding());
                  }},
    NamedCalendar{"day_of_year",
                  [](const Civil& c) {
                    const std::chrono::sys_days first(c.date.year() / 1 / 1);
                    return static_cast<double>(c.days - first.time_since_epoch().count() + 1);
                  }},
    NamedCalendar{"days_in_month",
                  [](const Civil& c) {
                    const std::chrono::year_month_day_last last(c.date.year(),
                                                                std::chrono::month_day_last(c.date.month()));
                    return static_cast<double>(static_cast<unsigned>(last.day()));
                  }},
    NamedCalendar{"month", [](const Civil& c) { return static_cast<double>(static_cast<unsigned>(c.date.month())); }},
    NamedCalendar{"year", [](const Civil& c) { return static_cast<double>(static_cast<int>(c.date.year())); }},
};

class CalendarFunction : public Operator {
 public:
  CalendarFunction(OperatorPtr input, Calendar function, Context& context)
      : input_(std::move(input)), function_(function), context_(context) {}
  absl::Status Open() override {
    RETURN_IF_ERROR(input_->Open());
    series_ = input_->TakeSeries();
    distinct_ = input_->distinct() && SameNames(series_);
    DropNames(series_, context_.flags().delayed_name_removal);
    return absl::OkStatus();
  }
  absl::Status Next(Column& out) override {
    RETURN_IF_ERROR(context_.Tick());
    RETURN_IF_ERROR(input_->Next(out));
    for (size_t i = 0; i < out.size(); ++i) {
      if (out.kinds[i] == kFloat) {
        out.values[i] = function_(FromSeconds(out.values[i]));
      } else {
        out.kinds[i] = kNone;
      }
    }
    out.histograms.clear();
    return absl::OkStatus();
  }

 private:
  OperatorPtr input_;
  const Calendar function_;
  Context& context_;
};

// timestamp() of anything but a selector: the time of the step.
class StepTime : public Operator {
 public:
  StepTime(OperatorPtr input, std::vector<double> times, Context& context)
      : input_(std::move(input)), times_(std::move(times)), context_(context) {}
  absl::Status Open() override {
    RETURN_IF_ERROR(input_->Open());
    series_ = input_->TakeSeries();
    distinct_ = input_->distinct() && SameNames(series_);
    DropNames(series_, context_.flags().delayed_name_removal);
    return absl::OkStatus();
  }
  absl::Status Next(Column& out) override {
    RETURN_IF_ERROR(input_->Next(out));
    for (size_t i = 0; i < out.size(); ++i) {
      if (out.kinds[i] != kNone) out.SetFloat(i, times_[i]);
    }
    out.histograms.clear();
    return absl::OkStatus();
  }

 private:
  OperatorPtr input_;
  const std::vector<double> times_;
  Context& context_;
};

std::vector<double> StepTimes(const Grid& grid) {
  std::vector<double> times(grid.steps);
  for (size_t i = 0; i < grid.steps; ++i) times[i] = static_cast<double>(grid.At(i)) / 1000;
  return times;
}

}  // namespace

absl::StatusOr<OperatorPtr> MakeTimeFunction(const CallArguments& call) {
  const std::string_view name = call.name();
  if (name == "time") return MakeScalar(StepTimes(call.grid));
  if (name == "timestamp" || name == "start_timestamp") {
    const plan::Node* argument = &call.argument(0);
    if (argument->kind == plan::NodeKind::kStepInvariant) argument = argument->children[0].get();
    if (argument->kind == plan::NodeKind::kSelector) {
      return MakeSelector(*argument, call.grid, call.context,
                          name == "timestamp" ? SelectorValue::kTime : SelectorValue::kStartTime);
    }
    ASSIGN_OR_RETURN(OperatorPtr input, call.Build(0));
    if (name == "start_timestamp") {  // a computed value has no start
      return std::make_unique<StepTime>(std::move(input), std::vector<double>(call.grid.steps, 0), call.context);
    }
    return std::make_unique<StepTime>(std::move(input), StepTimes(call.grid), call.context);
  }
  const auto found =
      std::find_if(kCalendar.begin(), kCalendar.end(), [&](const NamedCalendar& f) { return f.name == name; });
  if (found == kCalendar.end()) return OperatorPtr();
  OperatorPtr input;
  if (call.count() == 0) {
    input = MakeScalar(StepTimes(call.grid));
  } else {
    ASSIGN_OR_RETURN(input, call.Build(0));
  }
  return std::make_unique<CalendarFunction>(std::move(input), found->function, call.context);
}

}  // namespace varve::exec
