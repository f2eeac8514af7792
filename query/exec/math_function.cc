// Functions from number to number, applied to every float of a vector; histograms are dropped. Also the scalar ones.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "query/exec/functions.h"
#include "query/exec/labels.h"
#include "query/exec/repeat.h"

namespace varve::exec {
namespace {

using Unary = double (*)(double);

double Sign(double v) { return v < 0 ? -1 : (v > 0 ? 1 : v); }
double Degrees(double v) { return v * 180 / std::numbers::pi; }
double Radians(double v) { return v * std::numbers::pi / 180; }

struct NamedUnary {
  std::string_view name;
  Unary function;
};
constexpr std::array kUnary = {
    NamedUnary{"abs", [](double v) { return std::fabs(v); }},
    NamedUnary{"ceil", [](double v) { return std::ceil(v); }},
    NamedUnary{"floor", [](double v) { return std::floor(v); }},
    NamedUnary{"exp", [](double v) { return std::exp(v); }},
    NamedUnary{"ln", [](double v) { return std::log(v); }},
    NamedUnary{"log10", [](double v) { return std::log10(v); }},
    NamedUnary{"log2", [](double v) { return std::log2(v); }},
    NamedUnary{"sqrt", [](double v) { return std::sqrt(v); }},
    NamedUnary{"sgn", Sign},
    NamedUnary{"sin", [](double v) { return std::sin(v); }},
    NamedUnary{"cos", [](double v) { return std::cos(v); }},
    NamedUnary{"tan", [](double v) { return std::tan(v); }},
    NamedUnary{"asin", [](double v) { return std::asin(v); }},
    NamedUnary{"acos", [](double v) { return std::acos(v); }},
    NamedUnary{"atan", [](double v) { return std::atan(v); }},
    NamedUnary{"sinh", [](double v) { return std::sinh(v); }},
    NamedUnary{"cosh", [](double v) { return std::cosh(v); }},
    NamedUnary{"tanh", [](double v) { return std::tanh(v); }},
    NamedUnary{"asinh", [](double v) { return std::asinh(v); }},
    NamedUnary{"acosh", [](double v) { return std::acosh(v); }},
    NamedUnary{"atanh", [](double v) { return std::atanh(v); }},
    NamedUnary{"deg", Degrees},
    NamedUnary{"rad", Radians},
};

// With scalar parameters a and b that may change from step to step.
using Ternary = double (*)(double v, double a, double b, bool& keep);
double Round(double v, double to, double, bool&) {
  const double inverse = 1 / to;
  return std::floor(v * inverse + 0.5) / inverse;
}
double Larger(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  return a > b ? a : (b > a ? b : (std::signbit(a) ? b : a));
}
double Smaller(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  return a < b ? a : (b < a ? b : (std::signbit(a) ? a : b));
}
double Clamp(double v, double low, double high, bool& keep) {
  keep = !(high < low);
  return Larger(low, Smaller(high, v));
}
double ClampMin(double v, double low, double, bool&) { return Larger(low, v); }
double ClampMax(double v, double high, double, bool&) { return Smaller(high, v); }

class MathFunction : public Operator {
 public:
  MathFunction(OperatorPtr input, std::vector<OperatorPtr> parameters, Unary unary, Ternary ternary, Context& context)
      : input_(std::move(input)),
        parameters_(std::move(parameters)),
        unary_(unary),
        ternary_(ternary),
        context_(context) {}

  absl::Status Open() override {
    RETURN_IF_ERROR(input_->Open());
    for (const OperatorPtr& parameter : parameters_) {
      ASSIGN_OR_RETURN(std::vector<double> values, ReadScalar(*parameter));
      values_.push_back(std::move(values));
    }
    series_ = input_->TakeSeries();
    distinct_ = input_->distinct() && SameNames(series_);
    DropNames(series_, context_.flags().delayed_name_removal);
    return absl::OkStatus();
  }

  absl::Status Next(Column& out) override {
    RETURN_IF_ERROR(context_.Tick());
    RETURN_IF_ERROR(input_->Next(out));
    for (size_t i = 0; i < out.size(); ++i) {
      if (out.kinds[i] != kFloat) {
        out.kinds[i] = kNone;
        continue;
      }
      if (unary_ != nullptr) {
        out.values[i] = unary_(out.values[i]);
        continue;
      }
      bool keep = true;
      out.values[i] =
          ternary_(out.values[i], !values_.empty() ? values_[0][i] : 1, values_.size() > 1 ? values_[1][i] : 0, keep);
      if (!keep) out.kinds[i] = kNone;
    }
    out.histograms.clear();
    return absl::OkStatus();
  }

 private:
  OperatorPtr input_;
  std::vector<OperatorPtr> parameters_;
  const Unary unary_;
  const Ternary ternary_;
  Context& context_;
  std::vector<std::vector<double>> values_;
};

// scalar(v): the value where the vector has exactly one float, else NaN.
class ToScalar : public Operator {
 public:
  ToScalar(OperatorPtr input, size_t steps, Context& context)
      : input_(std::move(input)), steps_(steps), context_(context) {}
  absl::Status Open() override {
    RETURN_IF_ERROR(input_->Open());
    std::vector<uint32_t> seen(steps_);
    values_.assign(steps_, std::nan(""));
    Column column;
    for (size_t s = 0; s < input_->series().size(); ++s) {
      RETURN_IF_ERROR(context_.Tick());
      RETURN_IF_ERROR(input_->Next(column));
      for (size_t i = 0; i < steps_; ++i) {
        if (column.kinds[i] == kFloat) values_[i] = ++seen[i] == 1 ? column.values[i] : std::nan("");
      }
    }
    series_.resize(1);
    distinct_ = true;
    return absl::OkStatus();
  }
  absl::Status Next(Column& out) override {
    out.Reset(steps_);
    for (size_t i = 0; i < steps_; ++i) out.SetFloat(i, values_[i]);
    return absl::OkStatus();
  }

 private:
  OperatorPtr input_;
  const size_t steps_;
  Context& context_;
  std::vector<double> values_;
};

class ScalarPair : public Operator {
 public:
  ScalarPair(OperatorPtr left, OperatorPtr right, bool max)
      : left_(std::move(left)), right_(std::move(right)), max_(max) {}
  absl::Status Open() override {
    series_.resize(1);
    distinct_ = true;
    RETURN_IF_ERROR(left_->Open());
    return right_->Open();
  }
  absl::Status Next(Column& out) override {
    RETURN_IF_ERROR(left_->Next(out));
    Column right;
    RETURN_IF_ERROR(right_->Next(right));
    for (size_t i = 0; i < out.size(); ++i) {
      out.values[i] = max_ ? Larger(out.values[i], right.values[i]) : Smaller(out.values[i], right.values[i]);
    }
    return absl::OkStatus();
  }

 private:
  OperatorPtr left_, right_;
  const bool max_;
};

}  // namespace

absl::StatusOr<OperatorPtr> MakeMathFunction(const CallArguments& call) {
  const std::string_view name = call.name();
  if (name == "pi") return MakeScalar(std::numbers::pi, call.grid.steps);
  if (name == "vector") return call.Build(0);  // a scalar is one series without labels already
  if (name == "scalar") {
    ASSIGN_OR_RETURN(OperatorPtr input, call.Build(0));
    return std::make_unique<ToScalar>(std::move(input), call.grid.steps, call.context);
  }
  if (name == "max_of" || name == "min_of") {
    ASSIGN_OR_RETURN(OperatorPtr left, call.Build(0));
    ASSIGN_OR_RETURN(OperatorPtr right, call.Build(1));
    return std::make_unique<ScalarPair>(std::move(left), std::move(right), name == "max_of");
  }
  Unary unary = nullptr;
  Ternary ternary = nullptr;
  if (const auto found =
          std::find_if(kUnary.begin(), kUnary.end(), [&](const NamedUnary& f) { return f.name == name; });
      found != kUnary.end()) {
    unary = found->function;
  } else if (name == "round") {
    ternary = Round;
  } else if (name == "clamp") {
    ternary = Clamp;
  } else if (name == "clamp_min") {
    ternary = ClampMin;
  } else if (name == "clamp_max") {
    ternary = ClampMax;
  } else {
    return OperatorPtr();
  }
  ASSIGN_OR_RETURN(OperatorPtr input, call.Build(0));
  std::vector<OperatorPtr> parameters;
  for (size_t i = 1; i < call.count(); ++i) {
    ASSIGN_OR_RETURN(OperatorPtr parameter, call.Build(i));
    parameters.push_back(std::move(parameter));
  }
  return std::make_unique<MathFunction>(std::move(input), std::move(parameters), unary, ternary, call.context);
}

}  // namespace varve::exec
