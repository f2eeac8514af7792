#include "query/exec/repeat.h"

#include <algorithm>

#include "query/exec/labels.h"
#include "storage/base/strings.h"

namespace varve::exec {
namespace {

class Repeat : public Operator {
 public:
  Repeat(OperatorPtr input, size_t steps) : input_(std::move(input)), steps_(steps) {}
  absl::Status Open() override {
    RETURN_IF_ERROR(input_->Open());
    series_ = input_->TakeSeries();
    distinct_ = input_->distinct();
    return absl::OkStatus();
  }
  absl::Status Next(Column& out) override {
    RETURN_IF_ERROR(input_->Next(one_));
    out.Reset(steps_);
    if (one_.kinds[0] == kFloat) {
      std::fill(out.values.begin(), out.values.end(), one_.values[0]);
      std::fill(out.kinds.begin(), out.kinds.end(), kFloat);
    } else if (one_.kinds[0] == kHistogram) {
      for (size_t i = 0; i < steps_; ++i) out.SetHistogram(i, one_.histograms[0]);
    }
    return absl::OkStatus();
  }

 private:
  OperatorPtr input_;
  const size_t steps_;
  Column one_;
};

class Merge : public Operator {
 public:
  Merge(OperatorPtr input, size_t steps, bool strict, Context& context)
      : input_(std::move(input)), steps_(steps), strict_(strict), context_(context), holding_(context) {}

  absl::Status Open() override {
    RETURN_IF_ERROR(input_->Open());
    if (input_->distinct() || !HasDuplicates(input_->series())) {
      distinct_ = true;
      series_ = input_->TakeSeries();
      return absl::OkStatus();
    }
    merged_ = true;
    std::vector<SeriesInfo> before = input_->TakeSeries();
    base::StringMap<size_t> places;
    std::vector<uint8_t> filled;
    Column column;
    for (SeriesInfo& one : before) {
      RETURN_IF_ERROR(context_.Tick());
      RETURN_IF_ERROR(input_->Next(column));
      const auto [place, fresh] = places.try_emplace(std::string(one.labels.bytes()), columns_.size());
      if (fresh) {
        RETURN_IF_ERROR(holding_.Grow(column.Bytes(), steps_));
        filled.push_back(column.AllEmpty() ? 0 : 1);
        columns_.push_back(column);
        series_.push_back(std::move(one));
        continue;
      }
      if (column.AllEmpty()) continue;
      Column& target = columns_[place->second];
      if (strict_ && filled[place->second] != 0) return ExecutionError(kSameLabelset);
      filled[place->second] = 1;
      for (size_t i = 0; i < steps_; ++i) {
        if (column.kinds[i] == kNone) continue;
        if (target.kinds[i] != kNone) return ExecutionError(kSameLabelset);
        target.CopyFrom(i, column, i);
      }
      series_[place->second].drop_name |= one.drop_name;
    }
    return absl::OkStatus();
  }

  absl::Status Next(Column& out) override {
    if (!merged_) return input_->Next(out);
    out = std::move(columns_[next_++]);
    return absl::OkStatus();
  }

 private:
  OperatorPtr input_;
  const size_t steps_;
  const bool strict_;
  Context& context_;
  Holding holding_;
  bool merged_ = false;
  std::vector<Column> columns_;
  size_t next_ = 0;
};

class Scalar : public Operator {
 public:
  explicit Scalar(std::vector<double> values) : values_(std::move(values)) {}
  absl::Status Open() override {
    series_.resize(1);
    distinct_ = true;
    return absl::OkStatus();
  }
  absl::Status Next(Column& out) override {
    out.Reset(values_.size());
    std::copy(values_.begin(), values_.end(), out.values.begin());
    std::fill(out.kinds.begin(), out.kinds.end(), kFloat);
    return absl::OkStatus();
  }

 private:
  std::vector<double> values_;
};

}  // namespace

OperatorPtr MakeRepeat(OperatorPtr input, size_t steps) { return std::make_unique<Repeat>(std::move(input), steps); }

OperatorPtr MakeMerge(OperatorPtr input, size_t steps, bool strict, Context& context) {
  return std::make_unique<Merge>(std::move(input), steps, strict, context);
}

OperatorPtr MakeScalar(double value, size_t steps) {
  return std::make_unique<Scalar>(std::vector<double>(steps, value));
}
OperatorPtr MakeScalar(std::vector<double> values) { return std::make_unique<Scalar>(std::move(values)); }

absl::StatusOr<std::vector<Column>> Drain(Operator& input, size_t series, size_t steps, Holding& holding,
                                          Context& context) {
  std::vector<Column> columns(series);
  for (Column& column : columns) {
    RETURN_IF_ERROR(context.Tick());
    RETURN_IF_ERROR(holding.Grow(sizeof(Column) + steps * (sizeof(double) + 1), steps));
    RETURN_IF_ERROR(input.Next(column));
  }
  return columns;
}

absl::StatusOr<std::vector<double>> ReadScalar(Operator& input) {
  RETURN_IF_ERROR(input.Open());
  Column column;
  RETURN_IF_ERROR(input.Next(column));
  return std::move(column.values);
}

}  // namespace varve::exec
