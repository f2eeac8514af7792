// histogram_count, _sum, _avg, _stddev, _stdvar over native histograms; histogram_quantile(s) and histogram_fraction
// over native and classic ones.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "query/exec/classic_quantile.h"
#include "query/exec/functions.h"
#include "query/exec/histogram_ops.h"
#include "query/exec/labels.h"
#include "query/exec/repeat.h"
#include "storage/base/strings.h"

namespace varve::exec {
namespace {

using Question = double (*)(const model::Histogram&);

class HistogramQuestion : public Operator {
 public:
  HistogramQuestion(OperatorPtr input, Question question, Context& context)
      : input_(std::move(input)), question_(question), context_(context) {}
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
      if (out.kinds[i] == kHistogram) {
        out.SetFloat(i, question_(*out.histograms[i]));
      } else {
        out.kinds[i] = kNone;
      }
    }
    out.histograms.clear();
    return absl::OkStatus();
  }

 private:
  OperatorPtr input_;
  const Question question_;
  Context& context_;
};

// What OpenMetrics writes for a number: "1.0" and not "1".
std::string OpenMetricsNumber(double v) {
  if (v == 1) return "1.0";
  if (v == 0) return "0.0";
  if (v == -1) return "-1.0";
  if (std::isnan(v) || std::isinf(v)) return FormatG(v);
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  std::string text(buffer, end);
  if (text.find_first_of("e.") == std::string::npos) text += ".0";
  return text;
}

enum class Mode : uint8_t { kQuantile, kFraction };

// Series that differ in `le` alone are the buckets of one classic histogram; a native histogram stands alone.
class Distribution : public Operator {
 public:
  struct Arguments {
    Mode mode = Mode::kQuantile;
    std::string label;                    // histogram_quantiles: where the quantile goes; else ""
    std::vector<OperatorPtr> parameters;  // q, or q1, q2, ..., or lower and upper
    std::vector<promql::PositionRange> parameter_positions;
    promql::PositionRange position;  // of the vector
  };
  Distribution(OperatorPtr input, Arguments arguments, const Grid& grid, Context& context)
      : input_(std::move(input)), arguments_(std::move(arguments)), grid_(grid), context_(context), holding_(context) {}

  absl::Status Open() override {
    RETURN_IF_ERROR(input_->Open());
    for (const OperatorPtr& parameter : arguments_.parameters) {
      ASSIGN_OR_RETURN(std::vector<double> values, ReadScalar(*parameter));
      parameters_.push_back(std::move(values));
    }
    if (arguments_.mode == Mode::kQuantile) WarnQuantiles();
    std::vector<SeriesInfo> series = input_->TakeSeries();
    ListGroups(series);
    RETURN_IF_ERROR(ReadColumns(series));
    ListOutputs();
    return absl::OkStatus();
  }

  absl::Status Next(Column& out) override {
    RETURN_IF_ERROR(context_.Tick());
    const size_t per_group = Outputs();
    const Group& group = groups_[next_ / per_group];
    const size_t which = next_ % per_group;
    ++next_;
    out.Reset(grid_.steps);
    for (size_t i = 0; i < grid_.steps; ++i) Evaluate(group, which, i, out);
    return absl::OkStatus();
  }

 private:
  struct Member {
    double upper = 0;
    bool bounded = false;  // has a readable `le`
    bool warned = false;
    std::string le;
    Column column;
  };
  struct Group {
    SeriesInfo info;
    std::string metric;
    std::vector<Member> members;
  };

  size_t Outputs() const { return arguments_.mode == Mode::kFraction ? 1 : parameters_.size(); }

  void WarnQuantiles() {
    for (size_t p = 0; p < parameters_.size(); ++p) {
      for (const double q : parameters_[p]) {
        if (q >= 0 && q <= 1) continue;
        context_.annotations().Warn(base::StrCat("quantile value should be between 0 and 1, got ", FormatG(q)),
                                    arguments_.parameter_positions[p]);
      }
    }
  }

  void ListGroups(const std::vector<SeriesInfo>& series) {
    static const std::vector<std::string> kLe = {"le"};
    base::StringMap<size_t> places;
    for (const SeriesInfo& one : series) {
      model::Labels labels = model::Without(one.labels, kLe);
      const auto [place, fresh] = places.try_emplace(std::string(labels.bytes()), groups_.size());
      if (fresh) {
        Group group;
        group.metric = std::string(one.labels.Get(model::kMetricName));
        group.info = {std::move(labels), one.drop_name};
        groups_.push_back(std::move(group));
      }
      place_of_.push_back(place->second);
    }
  }

  absl::Status ReadColumns(const std::vector<SeriesInfo>& series) {
    for (size_t s = 0; s < series.size(); ++s) {
      RETURN_IF_ERROR(context_.Tick());
      RETURN_IF_ERROR(holding_.Grow(sizeof(Member) + grid_.steps * (sizeof(double) + 1), grid_.steps));
      Member member;
      member.le = std::string(series[s].labels.Get("le"));
      if (const auto bound = base::ParseDouble(member.le); bound.has_value()) {
        member.upper = *bound;
        member.bounded = true;
      }
      RETURN_IF_ERROR(input_->Next(member.column));
      if (!member.bounded) {
        const auto& kinds = member.column.kinds;
        if (std::find(kinds.begin(), kinds.end(), kFloat) != kinds.end()) {
          const std::string text =
              base::StrCat("bucket label \"le\" is missing or has a malformed value of ", base::QuoteGo(member.le));
          context_.annotations().Warn(ForMetric(text, groups_[place_of_[s]].metric), arguments_.position);
        }
      }
      groups_[place_of_[s]].members.push_back(std::move(member));
    }
    return absl::OkStatus();
  }

  void ListOutputs() {
    const bool delayed = context_.flags().delayed_name_removal;
    for (const Group& group : groups_) {
      for (size_t k = 0; k < Outputs(); ++k) {
        SeriesInfo info = group.info;
        if (delayed) {
          info.drop_name = true;
        } else {
          info.labels = WithoutName(info.labels);
        }
        if (!arguments_.label.empty()) {
          info.labels = model::With(info.labels, arguments_.label, OpenMetricsNumber(parameters_[k][0]));
        }
        series_.push_back(std::move(info));
      }
    }
  }

  void Evaluate(const Group& group, size_t which, size_t i, Column& out) {
    buckets_.clear();
    const model::Histogram* native = nullptr;
    for (const Member& member : group.members) {
      if (member.column.kinds[i] == kHistogram) native = member.column.histograms[i].get();
      if (member.column.kinds[i] == kFloat && member.bounded) {
        buckets_.push_back({member.upper, member.column.values[i]});
      }
    }
    if (native != nullptr && !buckets_.empty()) {
      context_.annotations().Warn(ForMetric(text::kMixedClassicNative, group.metric), arguments_.position);
      return;
    }
    if (native == nullptr && buckets_.empty()) return;
    if (arguments_.mode == Mode::kFraction) {
      out.SetFloat(i, Fraction(group, native, i));
    } else {
      out.SetFloat(i, Quantile(group, native, parameters_[which][i], i));
    }
  }

  double Fraction(const Group& group, const model::Histogram* native, size_t i) {
    const double lower = parameters_[0][i], upper = parameters_[1][i];
    if (native == nullptr) return FractionOfClassic(lower, upper, buckets_);
    const model::FractionAnswer answer = model::Fraction(lower, upper, *native);
    if (answer.nan_excluded) {
      context_.annotations().Info(
          ForMetric("input to histogram_fraction has NaN observations, which are excluded from all fractions",
                    group.metric),
          arguments_.position);
    }
    return answer.value;
  }

  double Quantile(const Group& group, const model::Histogram* native, double q, size_t i) {
    if (native == nullptr) {
      const ClassicQuantile answer = QuantileOfClassic(q, buckets_);
      if (answer.levelled) {
        context_.annotations().Levelled(group.metric, arguments_.position,
                                        {answer.low, answer.high, answer.difference, grid_.At(i), grid_.At(i), 1});
      }
      return answer.value;
    }
    const model::QuantileAnswer answer = model::Quantile(q, *native);
    if (answer.nan_result || answer.nan_skewed) {
      context_.annotations().Info(ForMetric(base::StrCat("input to histogram_quantile has NaN observations, result is ",
                                                         answer.nan_result ? "NaN" : "skewed higher"),
                                            group.metric),
                                  arguments_.position);
    }
    return answer.value;
  }

  OperatorPtr input_;
  Arguments arguments_;
  const Grid grid_;
  Context& context_;
  Holding holding_;
  std::vector<std::vector<double>> parameters_;
  std::vector<Group> groups_;
  std::vector<size_t> place_of_;
  std::vector<ClassicBucket> buckets_;
  size_t next_ = 0;
};

absl::StatusOr<OperatorPtr> MakeDistribution(const CallArguments& call) {
  Distribution::Arguments arguments;
  size_t vector = 1, first = 0, last = 1;
  if (call.name() == "histogram_quantiles") {
    vector = 0;
    first = 2;
    last = call.count();
    arguments.label = call.Text(1);
    if (!base::IsValidUtf8(arguments.label) || arguments.label.empty()) {
      return ExecutionError(base::StrCat("invalid label name in histogram_quantiles(): ", arguments.label));
    }
  } else if (call.name() == "histogram_fraction") {
    arguments.mode = Mode::kFraction;
    vector = 2;
    last = 2;
  }
  for (size_t i = first; i < last; ++i) {
    ASSIGN_OR_RETURN(OperatorPtr parameter, call.Build(i));
    arguments.parameters.push_back(std::move(parameter));
    arguments.parameter_positions.push_back(call.position(i));
  }
  arguments.position = call.position(vector);
  ASSIGN_OR_RETURN(OperatorPtr input, call.Build(vector));
  return std::make_unique<Distribution>(std::move(input), std::move(arguments), call.grid, call.context);
}

}  // namespace

absl::StatusOr<OperatorPtr> MakeHistogramFunction(const CallArguments& call) {
  const std::string_view name = call.name();
  if (!name.starts_with("histogram_")) return OperatorPtr();
  Question question = nullptr;
  if (name == "histogram_count") {
    question = [](const model::Histogram& h) { return h.count; };
  } else if (name == "histogram_sum") {
    question = [](const model::Histogram& h) { return h.sum; };
  } else if (name == "histogram_avg") {
    question = model::Average;
  } else if (name == "histogram_stdvar") {
    question = model::Variance;
  } else if (name == "histogram_stddev") {
    question = [](const model::Histogram& h) { return std::sqrt(model::Variance(h)); };
  } else {
    return MakeDistribution(call);
  }
  ASSIGN_OR_RETURN(OperatorPtr input, call.Build(0));
  return std::make_unique<HistogramQuestion>(std::move(input), question, call.context);
}

}  // namespace varve::exec
