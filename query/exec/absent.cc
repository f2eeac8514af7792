// absent and absent_over_time: 1 where there is nothing, with the labels that the selector asks for.
#include <map>

#include "query/exec/functions.h"
#include "query/exec/range_source.h"

namespace varve::exec {
namespace {

// Labels that equality matchers name once.
model::Labels AbsentLabels(const plan::Node& argument) {
  const plan::Node* node = &argument;
  if (node->kind == plan::NodeKind::kStepInvariant) node = node->children[0].get();
  if (node->kind != plan::NodeKind::kSelector && node->kind != plan::NodeKind::kRangeSelector) return {};
  std::map<std::string, int> seen;
  for (const model::Matcher& matcher : node->matchers) ++seen[matcher.name()];
  std::vector<model::Label> labels;
  for (const model::Matcher& matcher : node->matchers) {
    if (matcher.name() == model::kMetricName || matcher.type() != model::MatchType::kEqual) continue;
    if (seen[matcher.name()] == 1) labels.push_back({matcher.name(), matcher.value()});
  }
  return model::Labels::FromPairs(std::move(labels));
}

class Absent : public Operator {
 public:
  Absent(OperatorPtr vector, std::unique_ptr<RangeSource> range, model::Labels labels, size_t steps, Context& context)
      : vector_(std::move(vector)),
        range_(std::move(range)),
        labels_(std::move(labels)),
        steps_(steps),
        context_(context) {}

  absl::Status Open() override {
    present_.assign(steps_, 0);
    RETURN_IF_ERROR(vector_ != nullptr ? MarkVector() : MarkRange());
    distinct_ = true;
    series_.push_back({labels_, false});
    return absl::OkStatus();
  }
  absl::Status Next(Column& out) override {
    out.Reset(steps_);
    for (size_t i = 0; i < steps_; ++i) {
      if (present_[i] == 0) out.SetFloat(i, 1);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status MarkVector() {
    RETURN_IF_ERROR(vector_->Open());
    Column column;
    for (size_t s = 0; s < vector_->series().size(); ++s) {
      RETURN_IF_ERROR(context_.Tick());
      RETURN_IF_ERROR(vector_->Next(column));
      for (size_t i = 0; i < steps_; ++i) present_[i] |= column.kinds[i];
    }
    return absl::OkStatus();
  }
  absl::Status MarkRange() {
    RETURN_IF_ERROR(range_->Open());
    model::SampleColumns samples;
    Windows windows;
    for (size_t s = 0; s < range_->series().size(); ++s) {
      RETURN_IF_ERROR(range_->Next(samples));
      windows.Update(samples.times, range_->geometry());
      for (size_t i = 0; i < steps_; ++i) present_[i] |= windows.hi[i] > windows.lo[i] ? 1 : 0;
    }
    return absl::OkStatus();
  }

  OperatorPtr vector_;
  std::unique_ptr<RangeSource> range_;
  const model::Labels labels_;
  const size_t steps_;
  Context& context_;
  std::vector<uint8_t> present_;
};

}  // namespace

absl::StatusOr<OperatorPtr> MakeAbsent(const CallArguments& call) {
  OperatorPtr vector;
  std::unique_ptr<RangeSource> range;
  if (call.name() == "absent") {
    ASSIGN_OR_RETURN(vector, call.Build(0));
  } else {
    ASSIGN_OR_RETURN(range, MakeRangeSource(call.argument(0), call.grid, call.context));
  }
  return std::make_unique<Absent>(std::move(vector), std::move(range), AbsentLabels(call.argument(0)), call.grid.steps,
                                  call.context);
}

}  // namespace varve::exec
