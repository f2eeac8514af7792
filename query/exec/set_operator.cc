// and, or, unless: the left side streams through; of the right side `and` and `unless` only need to know where it is.
#include "query/exec/binary.h"
#include "query/exec/labels.h"
#include "storage/base/strings.h"

namespace varve::exec {
namespace {

using promql::BinaryOp;

class SetOperator : public Operator {
 public:
  SetOperator(const plan::Node& node, OperatorPtr left, OperatorPtr right, const Grid& grid, Context& context)
      : op_(node.binary->op),
        left_(std::move(left)),
        right_(std::move(right)),
        key_(node.binary->matching->labels, node.binary->matching->on),
        steps_(grid.steps),
        context_(context),
        holding_(context) {}

  absl::Status Open() override {
    RETURN_IF_ERROR(left_->Open());
    RETURN_IF_ERROR(right_->Open());
    left_count_ = left_->series().size();
    for (const SeriesInfo& one : left_->series()) left_keys_.push_back(MaskOf(one));
    for (const SeriesInfo& one : right_->series()) right_keys_.push_back(MaskOf(one));
    series_ = left_->TakeSeries();
    if (op_ == BinaryOp::kOr) {
      for (SeriesInfo& one : right_->TakeSeries()) series_.push_back(std::move(one));
      return absl::OkStatus();
    }
    distinct_ = left_->distinct();
    Column column;
    for (const uint32_t mask : right_keys_) {
      RETURN_IF_ERROR(context_.Tick());
      RETURN_IF_ERROR(right_->Next(column));
      Mark(mask, column);
    }
    return absl::OkStatus();
  }

  absl::Status Next(Column& out) override {
    RETURN_IF_ERROR(context_.Tick());
    const size_t at = next_++;
    if (op_ == BinaryOp::kOr) {
      if (at < left_count_) {
        RETURN_IF_ERROR(left_->Next(out));
        Mark(left_keys_[at], out);
        return absl::OkStatus();
      }
      RETURN_IF_ERROR(right_->Next(out));
      Filter(right_keys_[at - left_count_], false, out);
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(left_->Next(out));
    Filter(left_keys_[at], op_ == BinaryOp::kAnd, out);
    return absl::OkStatus();
  }

 private:
  uint32_t MaskOf(const SeriesInfo& one) {
    const model::Labels key = key_.Of(one.labels);
    const auto [place, fresh] = places_.try_emplace(std::string(key.bytes()), static_cast<uint32_t>(masks_.size()));
    if (fresh) masks_.emplace_back(steps_, uint8_t{0});
    return place->second;
  }
  void Mark(uint32_t mask, const Column& column) {
    for (size_t i = 0; i < steps_; ++i) masks_[mask][i] |= column.kinds[i] != kNone ? 1 : 0;
  }
  void Filter(uint32_t mask, bool keep_where_marked, Column& out) const {
    for (size_t i = 0; i < steps_; ++i) {
      if ((masks_[mask][i] != 0) != keep_where_marked) out.kinds[i] = kNone;
    }
  }

  const BinaryOp op_;
  OperatorPtr left_, right_;
  const GroupKey key_;
  const size_t steps_;
  Context& context_;
  Holding holding_;
  size_t left_count_ = 0, next_ = 0;
  std::vector<uint32_t> left_keys_, right_keys_;  // into masks_
  base::StringMap<uint32_t> places_;
  std::vector<std::vector<uint8_t>> masks_;  // per matching labels and step: is it there?
};

}  // namespace

OperatorPtr MakeSetOperator(const plan::Node& node, OperatorPtr left, OperatorPtr right, const Grid& grid,
                            Context& context) {
  return std::make_unique<SetOperator>(node, std::move(left), std::move(right), grid, context);
}

}  // namespace varve::exec
