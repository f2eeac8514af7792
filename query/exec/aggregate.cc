// Aggregations that need one accumulator per group and step: the input streams through.
#include "query/exec/aggregate.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "query/exec/histogram_ops.h"
#include "query/exec/kahan.h"
#include "query/exec/labels.h"
#include "storage/base/check.h"
#include "storage/base/strings.h"

namespace varve::exec {
namespace {

using promql::AggregateOp;

// Columns of accumulators. What `a`, `b` and `mean` mean depends on the operator.
struct Group {
  std::vector<double> a, b, mean;
  std::vector<uint32_t> floats, histograms;
  std::vector<std::unique_ptr<HistogramFold>> sums;
  std::vector<KahanMean> means;

  Group(AggregateOp op, size_t steps) : floats(steps), histograms(steps) {
    switch (op) {
      case AggregateOp::kSum:
        a.assign(steps, -0.0);  // the neutral element: 0 would turn a lone -0 into 0
        b.assign(steps, 0);
        break;
      case AggregateOp::kAvg:
        means.resize(steps);
        break;
      case AggregateOp::kStddev:
      case AggregateOp::kStdvar:
        a.assign(steps, 0);
        mean.assign(steps, 0);
        break;
      case AggregateOp::kMin:
      case AggregateOp::kMax:
        a.assign(steps, std::nan(""));
        break;
      default:
        break;
    }
  }
};

// All steps hold a float: no tests inside, so that the loop becomes vector instructions.
void SumDense(const double* v, size_t n, double* sum, double* compensation) {
  for (size_t i = 0; i < n; ++i) {
    const double s = sum[i], x = v[i];
    const double t = s + x;
    const double larger = std::fabs(s) >= std::fabs(x) ? s : x;
    const double smaller = std::fabs(s) >= std::fabs(x) ? x : s;
    const double c = compensation[i] + ((larger - t) + smaller);
    compensation[i] = std::fabs(t) == HUGE_VAL ? 0 : c;
    sum[i] = t;
  }
}

void Accumulate(AggregateOp op, Group& group, size_t i, double v) {
  const uint32_t n = ++group.floats[i];
  switch (op) {
    case AggregateOp::kSum:
      return SumDense(&v, 1, &group.a[i], &group.b[i]);
    case AggregateOp::kAvg:
      return group.means[i].Add(v);
    case AggregateOp::kMin:
      if (v < group.a[i] || std::isnan(group.a[i])) group.a[i] = v;
      return;
    case AggregateOp::kMax:
      if (v > group.a[i] || std::isnan(group.a[i])) group.a[i] = v;
      return;
    case AggregateOp::kStddev:
    case AggregateOp::kStdvar: {
      if (n == 1) {
        group.mean[i] = v;
        group.a[i] = std::isfinite(v) ? 0 : std::nan("");
        return;
      }
      const double delta = v - group.mean[i];
      group.mean[i] += delta / n;
      group.a[i] += delta * (v - group.mean[i]);
      return;
    }
    default:
      return;
  }
}

class Aggregate : public Operator {
 public:
  Aggregate(const plan::Node& node, OperatorPtr input, const Grid& grid, Context& context)
      : op_(node.aggregate->op),
        aggregate_(*node.aggregate),
        position_(node.children[0]->position),
        input_(std::move(input)),
        steps_(grid.steps),
        context_(context),
        holding_(context) {}

  absl::Status Open() override {
    RETURN_IF_ERROR(input_->Open());
    Grouping grouping = GroupSeries(input_->series(), aggregate_);
    series_ = std::move(grouping.groups);
    distinct_ = true;
    std::vector<uint8_t> drop(series_.size());
    RETURN_IF_ERROR(holding_.Grow(series_.size() * steps_ * 4 * sizeof(double), series_.size() * steps_));
    groups_.reserve(series_.size());
    for (size_t g = 0; g < series_.size(); ++g) groups_.emplace_back(op_, steps_);
    Column column;
    for (size_t s = 0; s < grouping.group_of.size(); ++s) {
      RETURN_IF_ERROR(context_.Tick());
      RETURN_IF_ERROR(input_->Next(column));
      const uint32_t g = grouping.group_of[s];
      Add(groups_[g], column);
      if (input_->series()[s].drop_name && !column.AllEmpty()) drop[g] = 1;
    }
    for (size_t g = 0; g < series_.size(); ++g) series_[g].drop_name = drop[g] != 0;
    return absl::OkStatus();
  }

  absl::Status Next(Column& out) override {
    Group& group = groups_[next_++];
    out.Reset(steps_);
    for (size_t i = 0; i < steps_; ++i) Finish(group, i, out);
    group = Group(AggregateOp::kGroup, 0);
    return absl::OkStatus();
  }

 private:
  void Add(Group& group, const Column& column) {
    const bool dense = !column.has_histograms() && std::memchr(column.kinds.data(), kNone, steps_) == nullptr;
    if (dense && op_ == AggregateOp::kSum) {
      SumDense(column.values.data(), steps_, group.a.data(), group.b.data());
      for (size_t i = 0; i < steps_; ++i) ++group.floats[i];
      return;
    }
    for (size_t i = 0; i < steps_; ++i) {
      if (column.kinds[i] == kFloat) {
        Accumulate(op_, group, i, column.values[i]);
      } else if (column.kinds[i] == kHistogram) {
        AddHistogram(group, i, column.histograms[i]);
      }
    }
  }

  void AddHistogram(Group& group, size_t i, const HistogramPtr& h) {
    switch (op_) {
      case AggregateOp::kSum:
      case AggregateOp::kAvg:
        if (group.sums.empty()) group.sums.resize(steps_);
        if (group.sums[i] == nullptr) group.sums[i] = std::make_unique<HistogramFold>(op_ == AggregateOp::kAvg);
        group.sums[i]->Add(h);
        ++group.histograms[i];
        return;
      case AggregateOp::kCount:
      case AggregateOp::kGroup:
        ++group.floats[i];
        return;
      default:
        context_.annotations().Info(base::StrCat("ignored histogram in ", promql::ToString(op_), " aggregation"),
                                    position_);
        return;
    }
  }

  void Finish(const Group& group, size_t i, Column& out) {
    const uint32_t n = group.floats[i];
    if (group.histograms[i] > 0) {
      if (n > 0) {
        context_.annotations().Warn(text::kMixedFloatsHistogramsAggregation, position_);
        return;
      }
      const HistogramFold& sum = *group.sums[i];
      sum.Annotate(context_, position_, "");
      HistogramPtr result = sum.Result();
      if (result != nullptr) out.SetHistogram(i, std::move(result));
      return;
    }
    if (n == 0) return;
    switch (op_) {
      case AggregateOp::kSum:
        return out.SetFloat(i, std::isinf(group.a[i]) ? group.a[i] : group.a[i] + group.b[i]);
      case AggregateOp::kAvg:
        return out.SetFloat(i, group.means[i].Value());
      case AggregateOp::kCount:
        return out.SetFloat(i, n);
      case AggregateOp::kGroup:
        return out.SetFloat(i, 1);
      case AggregateOp::kStdvar:
        return out.SetFloat(i, group.a[i] / n);
      case AggregateOp::kStddev:
        return out.SetFloat(i, std::sqrt(group.a[i] / n));
      default:
        return out.SetFloat(i, group.a[i]);
    }
  }

  const AggregateOp op_;
  const promql::Aggregate& aggregate_;
  const promql::PositionRange position_;
  OperatorPtr input_;
  const size_t steps_;
  Context& context_;
  Holding holding_;
  std::vector<Group> groups_;
  size_t next_ = 0;
};

}  // namespace

Grouping GroupSeries(const std::vector<SeriesInfo>& series, const promql::Aggregate& aggregate) {
  Grouping grouping;
  grouping.group_of.reserve(series.size());
  if (!aggregate.without && aggregate.grouping.empty()) {
    grouping.group_of.assign(series.size(), 0);
    if (!series.empty()) grouping.groups.resize(1);
    return grouping;
  }
  const GroupKey key(aggregate.grouping, !aggregate.without);
  base::StringMap<uint32_t> places;
  for (const SeriesInfo& one : series) {
    model::Labels labels = key.Of(one.labels);
    auto found = places.find(labels.bytes());
    if (found == places.end()) {
      found = places.emplace(std::string(labels.bytes()), static_cast<uint32_t>(grouping.groups.size())).first;
      grouping.groups.push_back({std::move(labels), false});
    }
    grouping.group_of.push_back(found->second);
  }
  return grouping;
}

OperatorPtr MakeAggregate(const plan::Node& node, OperatorPtr input, const Grid& grid, Context& context) {
  return std::make_unique<Aggregate>(node, std::move(input), grid, context);
}

}  // namespace varve::exec
