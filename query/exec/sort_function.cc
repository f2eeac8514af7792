// sort, sort_desc, sort_by_label, sort_by_label_desc: the order of an instant query's result.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "query/exec/functions.h"
#include "storage/base/strings.h"

namespace varve::exec {
namespace {

bool Digit(char c) { return '0' <= c && c <= '9'; }

// "node2" before "node10": runs of digits compare as numbers.
int CompareNatural(std::string_view a, std::string_view b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!Digit(a[i]) || !Digit(b[j])) {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]) ? -1 : 1;
      ++i, ++j;
      continue;
    }
    const auto run = [](std::string_view text, size_t& at) {
      while (at + 1 < text.size() && text[at] == '0' && Digit(text[at + 1])) ++at;
      const size_t begin = at;
      while (at < text.size() && Digit(text[at])) ++at;
      return text.substr(begin, at - begin);
    };
    const std::string_view x = run(a, i), y = run(b, j);
    if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
    if (const int order = x.compare(y); order != 0) return order < 0 ? -1 : 1;
  }
  if (i < a.size()) return 1;
  return j < b.size() ? -1 : 0;
}

class Sort : public Operator {
 public:
  Sort(OperatorPtr input, const CallArguments& call)
      : input_(std::move(input)),
        by_label_(call.name().starts_with("sort_by_label")),
        descending_(call.name().ends_with("_desc")),
        steps_(call.grid.steps),
        context_(call.context),
        position_(call.node.position),
        holding_(call.context) {
    for (size_t i = 1; i < call.count(); ++i) names_.push_back(call.Text(i));
  }

  absl::Status Open() override {
    RETURN_IF_ERROR(input_->Open());
    if (context_.range_query()) {
      context_.annotations().Warn(text::kSortInRange, position_);
    }
    series_ = input_->TakeSeries();
    distinct_ = input_->distinct();
    if (steps_ != 1 || context_.range_query()) return absl::OkStatus();
    held_ = true;
    ASSIGN_OR_RETURN(columns_, Drain(*input_, series_.size(), steps_, holding_, context_));
    std::vector<size_t> order;
    for (size_t s = 0; s < series_.size(); ++s) {
      // By value, histograms have no place.
      if (columns_[s].kinds[0] == kFloat || (by_label_ && columns_[s].kinds[0] == kHistogram)) order.push_back(s);
    }
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return Before(a, b); });
    std::vector<SeriesInfo> series;
    std::vector<Column> columns;
    for (const size_t s : order) {
      series.push_back(std::move(series_[s]));
      columns.push_back(std::move(columns_[s]));
    }
    series_ = std::move(series);
    columns_ = std::move(columns);
    return absl::OkStatus();
  }

  absl::Status Next(Column& out) override {
    if (held_) {
      out = std::move(columns_[next_++]);
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(input_->Next(out));
    for (uint8_t& kind : out.kinds) {
      if (!by_label_ && kind == kHistogram) kind = kNone;
    }
    return absl::OkStatus();
  }

 private:
  bool Before(size_t a, size_t b) const {
    if (!by_label_) {
      const double x = columns_[a].values[0], y = columns_[b].values[0];
      if (std::isnan(x) || std::isnan(y)) return !std::isnan(x);  // NaN last, in both directions
      return descending_ ? x > y : x < y;
    }
    for (const std::string& name : names_) {
      const int order = CompareNatural(series_[a].labels.Get(name), series_[b].labels.Get(name));
      if (order != 0) return descending_ ? order > 0 : order < 0;
    }
    const auto order = model::Compare(series_[a].labels, series_[b].labels);
    return descending_ ? order > 0 : order < 0;
  }

  OperatorPtr input_;
  const bool by_label_, descending_;
  const size_t steps_;
  Context& context_;
  const promql::PositionRange position_;
  Holding holding_;
  std::vector<std::string> names_;
  bool held_ = false;
  std::vector<Column> columns_;
  size_t next_ = 0;
};

}  // namespace

absl::StatusOr<OperatorPtr> MakeSortFunction(const CallArguments& call) {
  if (!call.name().starts_with("sort")) return OperatorPtr();
  ASSIGN_OR_RETURN(OperatorPtr input, call.Build(0));
  return std::make_unique<Sort>(std::move(input), call);
}

}  // namespace varve::exec
