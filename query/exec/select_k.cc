// topk, bottomk, limitk, limit_ratio: keep some series of each group, step by step.
#include <xxhash.h>

#include <algorithm>
#include <cmath>

#include "query/exec/aggregate.h"
#include "storage/base/strings.h"

namespace varve::exec {
namespace {

using promql::AggregateOp;

// Where a label set lies in [0, 1]: xxHash64 of its length-prefixed names and values.
double HashPlace(model::LabelsView labels) {
  std::string bytes;
  const auto append = [&](std::string_view text) {
    if (text.size() < 255) {
      bytes.push_back(static_cast<char>(text.size()));
    } else {
      bytes.push_back(static_cast<char>(0xFF));
      for (int shift = 0; shift < 24; shift += 8) bytes.push_back(static_cast<char>(text.size() >> shift & 0xFF));
    }
    bytes += text;
  };
  for (const model::LabelRef label : labels) {
    append(label.name);
    append(label.value);
  }
  return static_cast<double>(XXH64(bytes.data(), bytes.size(), 0)) / 18446744073709551615.0;
}

class SelectK : public Operator {
 public:
  SelectK(const plan::Node& node, OperatorPtr input, OperatorPtr parameter, const Grid& grid, Context& context)
      : op_(node.aggregate->op),
        aggregate_(*node.aggregate),
        position_(node.children[0]->position),
        parameter_position_(node.children[1]->position),
        input_(std::move(input)),
        parameter_(std::move(parameter)),
        steps_(grid.steps),
        context_(context),
        holding_(context) {}

  absl::Status Open() override {
    RETURN_IF_ERROR(input_->Open());
    ASSIGN_OR_RETURN(parameters_, ReadScalar(*parameter_));
    RETURN_IF_ERROR(CheckParameters());
    series_ = input_->TakeSeries();
    distinct_ = input_->distinct();
    const Grouping grouping = GroupSeries(series_, aggregate_);
    members_.resize(grouping.groups.size());
    for (size_t s = 0; s < series_.size(); ++s) members_[grouping.group_of[s]].push_back(static_cast<uint32_t>(s));
    ASSIGN_OR_RETURN(columns_, Drain(*input_, series_.size(), steps_, holding_, context_));
    switch (op_) {
      case AggregateOp::kLimitRatio:
        KeepRatio();
        break;
      case AggregateOp::kLimitK:
        KeepFirst();
        break;
      default:
        RETURN_IF_ERROR(KeepBest());
    }
    return absl::OkStatus();
  }

  absl::Status Next(Column& out) override {
    out = std::move(columns_[next_++]);
    return absl::OkStatus();
  }

 private:
  absl::Status CheckParameters() {
    double low = parameters_[0], high = parameters_[0];
    bool nan = false;
    for (const double p : parameters_) {
      nan = nan || std::isnan(p);
      low = std::fmin(low, p);
      high = std::fmax(high, p);
    }
    if (op_ == AggregateOp::kLimitRatio) {
      if (nan) return ExecutionError("Ratio value is NaN");
      const auto warn = [&](double got, double cap) {
        context_.annotations().Warn(
            base::StrCat("ratio value should be between -1 and 1, got ", FormatG(got), ", capping to ", FormatG(cap)),
            parameter_position_);
      };
      if (high > 1) warn(high, 1);
      if (low < -1) warn(low, -1);
      return absl::OkStatus();
    }
    if (nan) return ExecutionError("Parameter value is NaN");
    constexpr double kLimit = 9223372036854775807.0;
    if (high >= kLimit) return ExecutionError(base::StrCat("Scalar value ", FormatG(high), " overflows int64"));
    if (low <= -kLimit) return ExecutionError(base::StrCat("Scalar value ", FormatG(low), " underflows int64"));
    return absl::OkStatus();
  }

  size_t K(size_t step) const {
    const double k = parameters_[step];
    return k < 1 ? 0 : static_cast<size_t>(std::min(k, static_cast<double>(series_.size())));
  }

  void KeepRatio() {
    for (size_t s = 0; s < series_.size(); ++s) {
      const double place = HashPlace(series_[s].labels);
      for (size_t i = 0; i < steps_; ++i) {
        const double ratio = std::clamp(parameters_[i], -1.0, 1.0);
        // The complement of r is -(1 - r).
        const bool keep = ratio != 0 && (ratio > 0 ? ratio >= 1 || place < ratio : place >= 1 + ratio);
        if (!keep) columns_[s].kinds[i] = kNone;
      }
    }
  }

  void KeepFirst() {
    for (const std::vector<uint32_t>& members : members_) {
      for (size_t i = 0; i < steps_; ++i) {
        size_t left = K(i);
        for (const uint32_t s : members) {
          uint8_t& kind = columns_[s].kinds[i];
          if (kind == kNone) continue;
          if (left == 0) {
            kind = kNone;
          } else {
            --left;
          }
        }
      }
    }
  }

  // True when a beats b; NaN loses against everything.
  bool Better(double a, double b) const {
    if (std::isnan(a)) return false;
    if (std::isnan(b)) return true;
    return op_ == AggregateOp::kTopK ? a > b : a < b;
  }

  absl::Status KeepBest() {
    std::vector<uint32_t> order;  // of an instant query: the answer is sorted
    std::vector<uint32_t> candidates;
    for (const std::vector<uint32_t>& members : members_) {
      RETURN_IF_ERROR(context_.CheckNow());
      for (size_t i = 0; i < steps_; ++i) {
        candidates.clear();
        for (const uint32_t s : members) {
          uint8_t& kind = columns_[s].kinds[i];
          if (kind == kFloat) candidates.push_back(s);
          if (kind == kHistogram && K(i) > 0) {
            context_.annotations().Info(base::StrCat("ignored histogram in ", promql::ToString(op_), " aggregation"),
                                        position_);
          }
          if (kind == kHistogram) kind = kNone;
        }
        const size_t k = std::min(K(i), candidates.size());
        // Ties go to the earlier series.
        const auto better = [&](uint32_t a, uint32_t b) {
          const double x = columns_[a].values[i], y = columns_[b].values[i];
          if (Better(x, y)) return true;
          if (Better(y, x)) return false;
          return a < b;
        };
        std::partial_sort(candidates.begin(), candidates.begin() + static_cast<ptrdiff_t>(k), candidates.end(), better);
        for (size_t c = k; c < candidates.size(); ++c) columns_[candidates[c]].kinds[i] = kNone;
        if (steps_ == 1) order.insert(order.end(), candidates.begin(), candidates.begin() + static_cast<ptrdiff_t>(k));
      }
    }
    if (steps_ == 1) {
      std::vector<SeriesInfo> series;
      std::vector<Column> columns;
      for (const uint32_t s : order) {
        series.push_back(std::move(series_[s]));
        columns.push_back(std::move(columns_[s]));
      }
      series_ = std::move(series);
      columns_ = std::move(columns);
    }
    return absl::OkStatus();
  }

  const AggregateOp op_;
  const promql::Aggregate& aggregate_;
  const promql::PositionRange position_, parameter_position_;
  OperatorPtr input_, parameter_;
  const size_t steps_;
  Context& context_;
  Holding holding_;
  std::vector<double> parameters_;
  std::vector<std::vector<uint32_t>> members_;
  std::vector<Column> columns_;
  size_t next_ = 0;
};

}  // namespace

OperatorPtr MakeSelectK(const plan::Node& node, OperatorPtr input, OperatorPtr parameter, const Grid& grid,
                        Context& context) {
  return std::make_unique<SelectK>(node, std::move(input), std::move(parameter), grid, context);
}

}  // namespace varve::exec
