// quantile and count_values: aggregations that need all values of a group at once.
#include <algorithm>
#include <cmath>
#include <map>

#include "query/exec/aggregate.h"
#include "query/exec/float_kernels.h"
#include "storage/base/strings.h"
#include "storage/model/histogram_math.h"

namespace varve::exec {
namespace {

class Quantile : public Operator {
 public:
  Quantile(const plan::Node& node, OperatorPtr input, OperatorPtr parameter, const Grid& grid, Context& context)
      : aggregate_(*node.aggregate),
        position_(node.children[0]->position),
        parameter_position_(node.children[1]->position),
        input_(std::move(input)),
        parameter_(std::move(parameter)),
        steps_(grid.steps),
        context_(context),
        holding_(context) {}

  absl::Status Open() override {
    RETURN_IF_ERROR(input_->Open());
    ASSIGN_OR_RETURN(q_, ReadScalar(*parameter_));
    for (const double q : q_) {
      if (!(q >= 0 && q <= 1)) {
        context_.annotations().Warn(base::StrCat("quantile value should be between 0 and 1, got ", FormatG(q)),
                                    parameter_position_);
      }
    }
    Grouping grouping = GroupSeries(input_->series(), aggregate_);
    series_ = std::move(grouping.groups);
    distinct_ = true;
    values_.resize(series_.size());
    for (auto& group : values_) group.resize(steps_);
    Column column;
    for (size_t s = 0; s < grouping.group_of.size(); ++s) {
      RETURN_IF_ERROR(context_.Tick());
      RETURN_IF_ERROR(holding_.Grow(2 * steps_ * sizeof(double), steps_));
      RETURN_IF_ERROR(input_->Next(column));
      const uint32_t g = grouping.group_of[s];
      for (size_t i = 0; i < steps_; ++i) {
        if (column.kinds[i] == kFloat) values_[g][i].push_back(column.values[i]);
        if (column.kinds[i] == kHistogram) {
          context_.annotations().Info("ignored histogram in quantile aggregation", position_);
        }
      }
      series_[g].drop_name |= input_->series()[s].drop_name && !column.AllEmpty();
    }
    return absl::OkStatus();
  }

  absl::Status Next(Column& out) override {
    out.Reset(steps_);
    auto& group = values_[next_++];
    for (size_t i = 0; i < steps_; ++i) {
      if (!group[i].empty()) out.SetFloat(i, QuantileInPlace(q_[i], group[i]));
    }
    group.clear();
    return absl::OkStatus();
  }

 private:
  const promql::Aggregate& aggregate_;
  const promql::PositionRange position_, parameter_position_;
  OperatorPtr input_, parameter_;
  const size_t steps_;
  Context& context_;
  Holding holding_;
  std::vector<double> q_;
  std::vector<std::vector<std::vector<double>>> values_;  // group, step
  size_t next_ = 0;
};

class CountValues : public Operator {
 public:
  CountValues(const plan::Node& node, OperatorPtr input, const std::string& label, const Grid& grid, Context& context)
      : aggregate_(*node.aggregate),
        label_(label),
        input_(std::move(input)),
        steps_(grid.steps),
        context_(context),
        holding_(context) {}

  absl::Status Open() override {
    if (label_.empty() || !base::IsValidUtf8(label_)) {
      return ExecutionError(base::StrCat("invalid label name ", base::QuoteGo(label_)));
    }
    RETURN_IF_ERROR(input_->Open());
    const Grouping grouping = GroupSeries(input_->series(), aggregate_);
    std::map<std::pair<uint32_t, std::string>, size_t> places;
    base::StringMap<size_t> by_labels;
    Column column;
    for (size_t s = 0; s < grouping.group_of.size(); ++s) {
      RETURN_IF_ERROR(context_.Tick());
      RETURN_IF_ERROR(input_->Next(column));
      const uint32_t g = grouping.group_of[s];
      for (size_t i = 0; i < steps_; ++i) {
        if (column.kinds[i] == kNone) continue;
        std::string value =
            column.kinds[i] == kFloat ? FormatF(column.values[i]) : model::ToString(*column.histograms[i]);
        auto [place, fresh] = places.try_emplace({g, value}, 0);
        if (fresh) {
          model::Labels labels = model::With(grouping.groups[g].labels, label_, value);
          const auto [known, first] = by_labels.try_emplace(std::string(labels.bytes()), columns_.size());
          place->second = known->second;
          if (first) {
            RETURN_IF_ERROR(holding_.Grow(steps_ * (sizeof(double) + 1) + 256, steps_));
            columns_.emplace_back().Reset(steps_);
            series_.push_back({std::move(labels), false});
          }
        }
        Column& counts = columns_[place->second];
        counts.SetFloat(i, counts.kinds[i] == kFloat ? counts.values[i] + 1 : 1);
        series_[place->second].drop_name |= input_->series()[s].drop_name;
      }
    }
    distinct_ = true;
    return absl::OkStatus();
  }

  absl::Status Next(Column& out) override {
    out = std::move(columns_[next_++]);
    return absl::OkStatus();
  }

 private:
  const promql::Aggregate& aggregate_;
  const std::string label_;
  OperatorPtr input_;
  const size_t steps_;
  Context& context_;
  Holding holding_;
  std::vector<Column> columns_;
  size_t next_ = 0;
};

}  // namespace

OperatorPtr MakeQuantile(const plan::Node& node, OperatorPtr input, OperatorPtr parameter, const Grid& grid,
                         Context& context) {
  return std::make_unique<Quantile>(node, std::move(input), std::move(parameter), grid, context);
}

OperatorPtr MakeCountValues(const plan::Node& node, OperatorPtr input, const std::string& label, const Grid& grid,
                            Context& context) {
  return std::make_unique<CountValues>(node, std::move(input), label, grid, context);
}

}  // namespace varve::exec
