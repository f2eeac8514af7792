// Operators with a scalar on at least one side, and unary minus.
#include <cmath>

#include "query/exec/binary.h"
#include "query/exec/histogram_ops.h"
#include "query/exec/labels.h"

namespace varve::exec {
namespace {

using promql::BinaryOp;

class Negate : public Operator {
 public:
  Negate(OperatorPtr input, size_t steps, bool scalar, Context& context)
      : input_(std::move(input)), steps_(steps), scalar_(scalar), context_(context) {}
  absl::Status Open() override {
    RETURN_IF_ERROR(input_->Open());
    series_ = input_->TakeSeries();
    distinct_ = input_->distinct() && (scalar_ || SameNames(series_));
    if (!scalar_) DropNames(series_, context_.flags().delayed_name_removal);
    return absl::OkStatus();
  }
  absl::Status Next(Column& out) override {
    RETURN_IF_ERROR(input_->Next(out));
    for (size_t i = 0; i < steps_; ++i) out.values[i] = -out.values[i];
    for (size_t i = 0; i < out.histograms.size(); ++i) {
      if (out.kinds[i] == kHistogram) out.histograms[i] = ScaleHistogram(out.histograms[i], -1);
    }
    return absl::OkStatus();
  }

 private:
  OperatorPtr input_;
  const size_t steps_;
  const bool scalar_;
  Context& context_;
};

class ScalarBinary : public Operator {
 public:
  ScalarBinary(BinaryOp op, OperatorPtr left, OperatorPtr right)
      : op_(op), left_(std::move(left)), right_(std::move(right)) {}
  absl::Status Open() override {
    RETURN_IF_ERROR(left_->Open());
    RETURN_IF_ERROR(right_->Open());
    series_.resize(1);
    distinct_ = true;
    return absl::OkStatus();
  }
  absl::Status Next(Column& out) override {
    RETURN_IF_ERROR(left_->Next(out));
    Column right;
    RETURN_IF_ERROR(right_->Next(right));
    for (size_t i = 0; i < out.size(); ++i) out.values[i] = Calculate(op_, out.values[i], right.values[i]);
    return absl::OkStatus();
  }

 private:
  const BinaryOp op_;
  OperatorPtr left_, right_;
};

class VectorScalar : public Operator {
 public:
  VectorScalar(const plan::Node& node, OperatorPtr left, OperatorPtr right, const Grid& grid, Context& context)
      : op_(node.binary->op),
        return_bool_(node.binary->return_bool),
        scalar_left_(node.children[0]->type == promql::ValueType::kScalar),
        position_(node.position),
        vector_(scalar_left_ ? std::move(right) : std::move(left)),
        scalar_(scalar_left_ ? std::move(left) : std::move(right)),
        steps_(grid.steps),
        context_(context) {}

  absl::Status Open() override {
    RETURN_IF_ERROR(vector_->Open());
    ASSIGN_OR_RETURN(scalars_, ReadScalar(*scalar_));
    series_ = vector_->TakeSeries();
    distinct_ = vector_->distinct();
    if (DropsName(op_) || return_bool_) {
      distinct_ = distinct_ && SameNames(series_);
      DropNames(series_, context_.flags().delayed_name_removal);
    }
    return absl::OkStatus();
  }

  absl::Status Next(Column& out) override {
    RETURN_IF_ERROR(vector_->Next(out));
    if (!out.has_histograms() && op_ != BinaryOp::kTrimUpper && op_ != BinaryOp::kTrimLower) {
      Floats(out);
      return absl::OkStatus();
    }
    for (size_t i = 0; i < steps_; ++i) {
      if (out.kinds[i] == kNone) continue;
      const Element vector = At(out, i), scalar{scalars_[i], nullptr};
      ElementResult result = scalar_left_ ? ApplyElement(op_, scalar, vector, position_, context_)
                                          : ApplyElement(op_, vector, scalar, position_, context_);
      out.kinds[i] = kNone;
      if (!result.valid) continue;
      if (return_bool_) {
        out.SetFloat(i, result.keep ? 1 : 0);
      } else if (result.keep) {
        // A comparison gives the vector's value, wherever it stands.
        if (promql::IsComparison(op_)) result.element = vector;
        Set(out, i, std::move(result.element));
      }
    }
    return absl::OkStatus();
  }

 private:
  void Floats(Column& out) {
    const bool comparison = promql::IsComparison(op_);
    for (size_t i = 0; i < steps_; ++i) {
      const double v = out.values[i], s = scalars_[i];
      const double result = scalar_left_ ? Calculate(op_, s, v) : Calculate(op_, v, s);
      if (!comparison || return_bool_) {
        out.values[i] = result;
      } else if (result == 0) {
        out.kinds[i] = kNone;
      }
    }
  }

  const BinaryOp op_;
  const bool return_bool_, scalar_left_;
  const promql::PositionRange position_;
  OperatorPtr vector_, scalar_;
  const size_t steps_;
  Context& context_;
  std::vector<double> scalars_;
};

}  // namespace

OperatorPtr MakeNegate(OperatorPtr input, size_t steps, bool scalar, Context& context) {
  return std::make_unique<Negate>(std::move(input), steps, scalar, context);
}
OperatorPtr MakeScalarBinary(const plan::Node& node, OperatorPtr left, OperatorPtr right) {
  return std::make_unique<ScalarBinary>(node.binary->op, std::move(left), std::move(right));
}
OperatorPtr MakeVectorScalar(const plan::Node& node, OperatorPtr left, OperatorPtr right, const Grid& grid,
                             Context& context) {
  return std::make_unique<VectorScalar>(node, std::move(left), std::move(right), grid, context);
}

}  // namespace varve::exec
