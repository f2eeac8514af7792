// Operators between two vectors with matching. The "one" side is held, the "many" side streams through; whether a match
// is unique is decided step by step, because series come and go.
#include <algorithm>

#include "query/exec/binary.h"
#include "query/exec/labels.h"
#include "storage/base/strings.h"

namespace varve::exec {
namespace {

using promql::BinaryOp;
using promql::Cardinality;

class VectorVector : public Operator {
 public:
  VectorVector(const plan::Node& node, OperatorPtr left, OperatorPtr right, const Grid& grid, Context& context)
      : op_(node.binary->op),
        return_bool_(node.binary->return_bool),
        matching_(*node.binary->matching),
        swapped_(matching_.cardinality == Cardinality::kOneToMany),
        position_(node.position),
        many_(swapped_ ? std::move(right) : std::move(left)),
        one_(swapped_ ? std::move(left) : std::move(right)),
        fill_many_(matching_.fill_left),
        fill_one_(matching_.fill_right),
        key_(matching_.labels, matching_.on),
        steps_(grid.steps),
        context_(context),
        holding_(context) {}

  absl::Status Open() override {
    RETURN_IF_ERROR(many_->Open());
    RETURN_IF_ERROR(one_->Open());
    // When one side has no series at all, there is nothing to match and nothing to complain about.
    if ((many_->series().empty() && !fill_many_.has_value()) || (one_->series().empty() && !fill_one_.has_value())) {
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(ReadOneSide());
    return ReadManySide();
  }

  absl::Status Next(Column& out) override {
    out = std::move(outputs_[next_++]);
    return absl::OkStatus();
  }

 private:
  struct Match {                    // the series of the one side with equal matching labels
    std::vector<uint32_t> members;  // into one_series_, one_columns_
    std::vector<int32_t> present;   // per step: the member that has a value, or -1
    std::vector<uint8_t> taken;     // per step: one-to-one: matched already
    model::Labels labels;
  };

  absl::Status ReadOneSide() {
    one_series_ = one_->TakeSeries();
    ASSIGN_OR_RETURN(one_columns_, Drain(*one_, one_series_.size(), steps_, holding_, context_));
    one_any_.assign(steps_, 0);
    duplicate_.assign(steps_, {-1, -1});
    for (size_t s = 0; s < one_series_.size(); ++s) {
      Match& match = MatchOf(key_.Of(one_series_[s].labels));
      match.members.push_back(static_cast<uint32_t>(s));
      for (size_t i = 0; i < steps_; ++i) {
        if (one_columns_[s].kinds[i] == kNone) continue;
        one_any_[i] = 1;
        if (match.present[i] >= 0) {
          if (duplicate_[i].first < 0) duplicate_[i] = {static_cast<int32_t>(s), match.present[i]};
          continue;
        }
        match.present[i] = static_cast<int32_t>(s);
      }
    }
    return absl::OkStatus();
  }

  Match& MatchOf(model::Labels labels) {
    const auto [place, fresh] = match_places_.try_emplace(std::string(labels.bytes()), matches_.size());
    if (fresh) {
      Match& match = matches_.emplace_back();
      match.present.assign(steps_, -1);
      match.taken.assign(steps_, 0);
      match.labels = std::move(labels);
    }
    return matches_[place->second];
  }

  absl::Status DuplicateError(size_t step) const {
    const auto [second, first] = duplicate_[step];
    const model::Labels& a = one_series_[static_cast<size_t>(second)].labels;
    const model::Labels& b = one_series_[static_cast<size_t>(first)].labels;
    const model::Labels group = key_.Of(a);
    return ExecutionError(base::StrCat("found duplicate series for the match group ", group.ToString(), " on the ",
                                       swapped_ ? "left" : "right", " hand-side of the operation: [", a.ToString(),
                                       ", ", b.ToString(),
                                       "];many-to-many matching not allowed: matching labels must be unique on one "
                                       "side"));
  }

  absl::Status ReadManySide() {
    std::vector<SeriesInfo> many_series = many_->TakeSeries();
    many_any_.assign(steps_, 0);
    Column column;
    for (const SeriesInfo& series : many_series) {
      RETURN_IF_ERROR(context_.Tick());
      RETURN_IF_ERROR(many_->Next(column));
      RETURN_IF_ERROR(Join(series, column));
    }
    if (fill_many_.has_value()) RETURN_IF_ERROR(FillMany());
    return absl::OkStatus();
  }

  // The output column for a pair of series; the same labels share one as long as their steps do not collide.
  size_t OutputFor(const SeriesInfo& many, const SeriesInfo* one) {
    model::Labels labels = ResultLabels(many.labels, one == nullptr ? model::LabelsView() : one->labels.view());
    const auto [place, fresh] = output_places_.try_emplace(std::string(labels.bytes()), outputs_.size());
    if (fresh) {
      series_.push_back({std::move(labels), false});
      outputs_.emplace_back().Reset(steps_);
    }
    SeriesInfo& info = series_[place->second];
    if (context_.flags().delayed_name_removal) {
      info.drop_name |= DropsName(op_) || return_bool_ || many.drop_name;
    }
    return place->second;
  }

  model::Labels ResultLabels(model::LabelsView many, model::LabelsView one) const {
    const bool delayed = context_.flags().delayed_name_removal;
    model::Labels labels = !delayed && (DropsName(op_) || return_bool_) ? WithoutName(many) : model::Labels(many);
    if (matching_.cardinality == Cardinality::kOneToOne) {
      labels = matching_.on ? model::Keep(labels, matching_.labels) : model::Without(labels, matching_.labels);
    }
    for (const std::string& name : matching_.include) labels = model::With(labels, name, one.Get(name));
    return labels;
  }

  absl::Status Join(const SeriesInfo& many, const Column& column) {
    const model::Labels key = key_.Of(many.labels);
    const auto place = match_places_.find(key.bytes());
    Match* match = place == match_places_.end() ? nullptr : &matches_[place->second];
    if (match == nullptr && fill_many_.has_value()) match = &MatchOf(key);
    int32_t output_of = -2;  // the member that `output` is for; -1: the fill value
    size_t output = 0;
    for (size_t i = 0; i < steps_; ++i) {
      if (column.kinds[i] == kNone) continue;
      many_any_[i] = 1;
      if (!duplicate_.empty() && duplicate_[i].first >= 0) return DuplicateError(i);
      const int32_t member = match == nullptr ? -1 : match->present[i];
      if (member < 0 && !fill_one_.has_value()) continue;
      const Element one_element = member < 0 ? Element{*fill_one_, nullptr} : At(one_columns_[member], i);
      const Element many_element = At(column, i);
      ElementResult result = swapped_ ? ApplyElement(op_, one_element, many_element, position_, context_)
                                      : ApplyElement(op_, many_element, one_element, position_, context_);
      if (!result.valid) continue;
      if (return_bool_) {
        result.element = {result.keep ? 1.0 : 0.0, nullptr};
      } else if (!result.keep) {
        if (match != nullptr && fill_many_.has_value()) match->taken[i] = match->taken[i] | 2;
        continue;
      }
      if (member != output_of) {
        output = OutputFor(many, member < 0 ? nullptr : &one_series_[static_cast<size_t>(member)]);
        RETURN_IF_ERROR(holding_.Grow(0));
        output_of = member;
      }
      if (matching_.cardinality == Cardinality::kOneToOne) {
        if ((match != nullptr && (match->taken[i] & 1) != 0) || outputs_[output].kinds[i] != kNone) {
          return ExecutionError(
              "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)");
        }
      } else if (outputs_[output].kinds[i] != kNone) {
        return ExecutionError("multiple matches for labels: grouping labels must ensure unique matches");
      }
      if (match != nullptr) match->taken[i] = 3;
      Set(outputs_[output], i, std::move(result.element));
    }
    return absl::OkStatus();
  }

  // Series of the one side that no series of the many side met.
  absl::Status FillMany() {
    for (const Match& match : matches_) {
      for (size_t i = 0; i < steps_; ++i) {
        if (match.present[i] < 0 || match.taken[i] != 0) continue;
        if (duplicate_[i].first >= 0) return DuplicateError(i);
        const SeriesInfo& one = one_series_[static_cast<size_t>(match.present[i])];
        const Element one_element = At(one_columns_[static_cast<size_t>(match.present[i])], i);
        const Element many_element{*fill_many_, nullptr};
        ElementResult result = swapped_ ? ApplyElement(op_, one_element, many_element, position_, context_)
                                        : ApplyElement(op_, many_element, one_element, position_, context_);
        if (!result.valid) continue;
        if (return_bool_) {
          result.element = {result.keep ? 1.0 : 0.0, nullptr};
        } else if (!result.keep) {
          continue;
        }
        const size_t output = OutputFor({match.labels, one.drop_name}, &one);
        if (outputs_[output].kinds[i] != kNone) {
          return ExecutionError("multiple matches for labels: grouping labels must ensure unique matches");
        }
        Set(outputs_[output], i, std::move(result.element));
      }
    }
    return absl::OkStatus();
  }

  const BinaryOp op_;
  const bool return_bool_;
  const promql::VectorMatching& matching_;
  const bool swapped_;  // the many side is written on the right
  const promql::PositionRange position_;
  OperatorPtr many_, one_;
  // As in Prometheus, which exchanges the sides of group_right but not their fill values.
  const std::optional<double> fill_many_, fill_one_;
  const GroupKey key_;
  const size_t steps_;
  Context& context_;
  Holding holding_;

  std::vector<SeriesInfo> one_series_;
  std::vector<Column> one_columns_;
  std::vector<Match> matches_;
  base::StringMap<size_t> match_places_, output_places_;
  std::vector<uint8_t> one_any_, many_any_;
  std::vector<std::pair<int32_t, int32_t>> duplicate_;  // per step: two series of the one side that collide
  std::vector<Column> outputs_;
  size_t next_ = 0;
};

}  // namespace

OperatorPtr MakeVectorVector(const plan::Node& node, OperatorPtr left, OperatorPtr right, const Grid& grid,
                             Context& context) {
  return std::make_unique<VectorVector>(node, std::move(left), std::move(right), grid, context);
}

}  // namespace varve::exec
