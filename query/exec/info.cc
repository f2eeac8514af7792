// info(v, {selector}): adds the data labels of info metrics that describe the same instance and job.
#include <algorithm>
#include <array>
#include <map>

#include "query/exec/functions.h"
#include "query/exec/labels.h"
#include "query/exec/selector.h"
#include "storage/base/strings.h"

namespace varve::exec {
namespace {

constexpr std::array<std::string_view, 2> kIdentifying = {"instance", "job"};

// The selector that decides as of when the info metrics are read.
const plan::Node* FirstSelector(const plan::Node& node) {
  if (node.kind == plan::NodeKind::kSelector || node.kind == plan::NodeKind::kRangeSelector) return &node;
  for (const plan::NodePtr& child : node.children) {
    if (const plan::Node* found = FirstSelector(*child); found != nullptr) return found;
  }
  return nullptr;
}

std::string Identity(model::LabelsView labels) {
  std::string key;
  for (const std::string_view name : kIdentifying) base::StrAppend(key, labels.Get(name), std::string_view("\0", 1));
  return key;
}
bool HasIdentity(model::LabelsView labels) {
  return std::any_of(kIdentifying.begin(), kIdentifying.end(),
                     [&](std::string_view n) { return !labels.Get(n).empty(); });
}

class Info : public Operator {
 public:
  Info(OperatorPtr input, const CallArguments& call)
      : input_(std::move(input)), grid_(call.grid), context_(call.context), holding_(call.context) {
    const plan::Node* selector = FirstSelector(call.argument(0));
    for (size_t i = 0; i < grid_.steps; ++i) {
      const int64_t t = grid_.At(i);
      at_ms_.push_back(selector == nullptr ? t : selector->at_ms.value_or(t) - selector->offset_ms);
    }
    if (call.count() > 1) given_ = call.argument(1).matchers;
  }

  absl::Status Open() override {
    RETURN_IF_ERROR(SplitMatchers());
    RETURN_IF_ERROR(input_->Open());
    std::vector<SeriesInfo> base = input_->TakeSeries();
    RETURN_IF_ERROR(ReadInfoSeries());
    Column column;
    for (const SeriesInfo& one : base) {
      RETURN_IF_ERROR(context_.Tick());
      RETURN_IF_ERROR(input_->Next(column));
      RETURN_IF_ERROR(Enrich(one, column));
    }
    return absl::OkStatus();
  }

  absl::Status Next(Column& out) override {
    out = std::move(columns_[next_++]);
    return absl::OkStatus();
  }

 private:
  // The info series of one metric name and identity: at each step the one with the newest sample.
  struct Described {
    std::vector<int32_t> newest;  // per step, into info_labels_; -1: none
    std::vector<int64_t> newest_ms;
  };

  absl::Status SplitMatchers() {
    bool positive = false;
    for (const model::Matcher& matcher : given_) {
      if (matcher.name() == model::kMetricName) {
        names_.push_back(matcher);
        positive |= matcher.type() == model::MatchType::kEqual || matcher.type() == model::MatchType::kRegex;
      } else {
        data_.push_back(matcher);
      }
    }
    if (names_.empty()) {
      names_.push_back(model::Matcher::Equal(model::kMetricName, "target_info"));
    } else if (!positive) {
      ASSIGN_OR_RETURN(model::Matcher info,
                       model::Matcher::Create(model::MatchType::kRegex, model::kMetricName, ".+_info"));
      names_.push_back(std::move(info));
    }
    return absl::OkStatus();
  }

  absl::Status ReadInfoSeries() {
    std::vector<model::Matcher> matchers = names_;
    matchers.insert(matchers.end(), data_.begin(), data_.end());
    const auto [first, last] = std::minmax_element(at_ms_.begin(), at_ms_.end());
    ASSIGN_OR_RETURN(const auto selection, context_.Select(matchers, {*first - context_.lookback_ms(), *last}));
    model::SampleColumns samples;
    std::vector<int32_t> positions;
    for (size_t s = 0; s < selection->size(); ++s) {
      RETURN_IF_ERROR(context_.Tick());
      model::Labels labels = selection->labels(s);
      if (!HasIdentity(labels)) continue;
      RETURN_IF_ERROR(selection->Read(s, &samples));
      context_.CountRead(samples.size());
      if (!samples.histogram_at.empty()) {
        return ExecutionError(base::StrCat("this should be an info metric, with float samples: ", labels.ToString()));
      }
      LookbackPositions(*samples.times, at_ms_, context_.lookback_ms(), positions);
      auto& by_name = infos_[Identity(labels)];
      Described& described = by_name[std::string(labels.Get(model::kMetricName))];
      RETURN_IF_ERROR(holding_.Grow(grid_.steps * 12 + labels.bytes().size()));
      described.newest.resize(grid_.steps, -1);
      described.newest_ms.resize(grid_.steps);
      const auto index = static_cast<int32_t>(info_labels_.size());
      info_labels_.push_back(std::move(labels));
      for (size_t i = 0; i < grid_.steps; ++i) {
        const int32_t p = positions[i];
        if (p < 0 || model::IsStaleNan(samples.values[static_cast<size_t>(p)])) continue;
        const int64_t t = (*samples.times)[static_cast<size_t>(p)];
        int32_t& newest = described.newest[i];
        if (newest >= 0 && described.newest_ms[i] == t) {
          return ExecutionError(base::StrCat("found duplicate series for info metric: existing ",
                                             info_labels_[static_cast<size_t>(newest)].ToString(), " @ ", t, ", new ",
                                             info_labels_.back().ToString(), " @ ", t));
        }
        if (newest < 0 || described.newest_ms[i] < t) {
          newest = index;
          described.newest_ms[i] = t;
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status Enrich(const SeriesInfo& one, const Column& column) {
    // Info metrics themselves are not enriched.
    if (model::MatchesAll(names_, one.labels)) return Emit(one, one.labels, column);
    const auto found = HasIdentity(one.labels) ? infos_.find(Identity(one.labels)) : infos_.end();
    if (found == infos_.end()) return KeepsUnmatched() ? Emit(one, one.labels, column) : absl::OkStatus();
    // The combination of info series seldom changes from step to step.
    std::map<std::vector<int32_t>, size_t> outputs;
    std::vector<int32_t> combination;
    for (size_t i = 0; i < grid_.steps; ++i) {
      if (column.kinds[i] == kNone) continue;
      combination.clear();
      for (const auto& [name, described] : found->second) {
        if (described.newest[i] >= 0) combination.push_back(described.newest[i]);
      }
      if (combination.empty() && !KeepsUnmatched()) continue;
      auto known = outputs.find(combination);
      if (known == outputs.end()) {
        ASSIGN_OR_RETURN(model::Labels labels, WithData(one.labels, combination));
        ASSIGN_OR_RETURN(const size_t place, PlaceFor(one, std::move(labels)));
        known = outputs.emplace(combination, place).first;
      }
      columns_[known->second].CopyFrom(i, column, i);
    }
    return absl::OkStatus();
  }

  bool KeepsUnmatched() const {
    return std::all_of(data_.begin(), data_.end(), [](const model::Matcher& m) { return m.MatchesEmpty(); });
  }

  absl::StatusOr<model::Labels> WithData(const model::Labels& base, const std::vector<int32_t>& combination) const {
    std::map<std::string, std::string, std::less<>> added;
    for (const int32_t index : combination) {
      for (const model::LabelRef label : info_labels_[static_cast<size_t>(index)]) {
        if (label.name == model::kMetricName) continue;
        if (std::find(kIdentifying.begin(), kIdentifying.end(), label.name) != kIdentifying.end()) continue;
        if (!data_.empty() &&
            std::none_of(data_.begin(), data_.end(), [&](const auto& m) { return m.name() == label.name; })) {
          continue;
        }
        if (!base.Get(label.name).empty()) continue;  // the series' own labels win
        const auto [place, fresh] = added.try_emplace(std::string(label.name), std::string(label.value));
        if (!fresh && place->second != label.value) {
          return ExecutionError(base::StrCat("conflicting label: ", label.name));
        }
      }
    }
    std::vector<model::Label> labels = base.ToPairs();
    for (const auto& [name, value] : added) labels.push_back({name, value});
    return model::Labels::FromPairs(std::move(labels));
  }

  absl::StatusOr<size_t> PlaceFor(const SeriesInfo& one, model::Labels labels) {
    RETURN_IF_ERROR(holding_.Grow(grid_.steps * (sizeof(double) + 1) + labels.bytes().size(), grid_.steps));
    series_.push_back({std::move(labels), one.drop_name});
    columns_.emplace_back().Reset(grid_.steps);
    return columns_.size() - 1;
  }

  absl::Status Emit(const SeriesInfo& one, const model::Labels& labels, const Column& column) {
    ASSIGN_OR_RETURN(const size_t place, PlaceFor(one, labels));
    columns_[place] = column;
    return absl::OkStatus();
  }

  OperatorPtr input_;
  const Grid grid_;
  Context& context_;
  Holding holding_;
  std::vector<int64_t> at_ms_;
  std::vector<model::Matcher> given_, names_, data_;
  std::vector<model::Labels> info_labels_;
  std::map<std::string, std::map<std::string, Described>> infos_;  // by identity, then by metric name
  std::vector<Column> columns_;
  size_t next_ = 0;
};

}  // namespace

absl::StatusOr<OperatorPtr> MakeInfo(const CallArguments& call) {
  ASSIGN_OR_RETURN(OperatorPtr input, call.Build(0));
  return std::make_unique<Info>(std::move(input), call);
}

}  // namespace varve::exec
