// label_replace and label_join: only the list of series changes, columns pass through.
#include <re2/re2.h>

#include <algorithm>

#include "query/exec/functions.h"
#include "query/exec/labels.h"
#include "storage/base/strings.h"

namespace varve::exec {
namespace {

class Relabel : public Operator {
 public:
  Relabel(OperatorPtr input, const CallArguments& call)
      : input_(std::move(input)), context_(call.context), holding_(call.context) {
    for (size_t i = 1; i < call.count(); ++i) texts_.push_back(call.Text(i));
  }
  absl::Status Open() override {
    RETURN_IF_ERROR(input_->Open());
    series_ = input_->TakeSeries();
    for (SeriesInfo& one : series_) {
      RETURN_IF_ERROR(context_.Tick());
      RETURN_IF_ERROR(Change(one));
    }
    return absl::OkStatus();
  }
  absl::Status Next(Column& out) override { return input_->Next(out); }

 protected:
  static constexpr size_t kLongValueBytes = 1 << 20;
  virtual absl::Status Change(SeriesInfo& one) = 0;
  static absl::Status CheckName(std::string_view function, const std::string& name) {
    if (!name.empty() && base::IsValidUtf8(name)) return absl::OkStatus();
    return ExecutionError(base::StrCat("invalid destination label name in ", function, "(): ", name));
  }
  // A name that is set explicitly is kept to the end.
  absl::Status SetLabel(SeriesInfo& one, const std::string& name, const std::string& value) {
    RETURN_IF_ERROR(holding_.Grow(one.labels.bytes().size() + name.size() + value.size()));
    one.labels = model::With(one.labels, name, value);
    if (name == model::kMetricName) one.drop_name = false;
    return absl::OkStatus();
  }
  // A query may ask for values of any length: long ones are paid for before they are made.
  absl::Status CheckLength(size_t bytes) {
    if (bytes <= kLongValueBytes) return absl::OkStatus();
    Holding probe(context_);
    return probe.Grow(bytes);
  }

  OperatorPtr input_;
  Context& context_;
  Holding holding_;
  std::vector<std::string> texts_;
};

class LabelReplace : public Relabel {
 public:
  using Relabel::Relabel;
  absl::Status Prepare() {
    RE2::Options options;
    options.set_log_errors(false);
    options.set_dot_nl(true);
    regex_ = std::make_unique<RE2>("^(?s:" + texts_[3] + ")$", options);
    if (!regex_->ok()) {
      return ExecutionError(base::StrCat("invalid regular expression in label_replace(): ", texts_[3]));
    }
    return CheckName("label_replace", texts_[0]);
  }

 private:
  absl::Status Change(SeriesInfo& one) override {
    const std::string_view source = one.labels.Get(texts_[2]);
    const int groups = regex_->NumberOfCapturingGroups() + 1;
    std::vector<re2::StringPiece> parts(static_cast<size_t>(groups));
    if (!regex_->Match(re2::StringPiece(source.data(), source.size()), 0, source.size(), RE2::UNANCHORED, parts.data(),
                       groups)) {
      return absl::OkStatus();
    }
    const auto references = static_cast<size_t>(std::count(texts_[1].begin(), texts_[1].end(), '$'));
    RETURN_IF_ERROR(CheckLength(texts_[1].size() + references * source.size()));
    return SetLabel(one, texts_[0], Expand(texts_[1], parts));
  }

  // $1, ${1}, $name, ${name}; $$ is a dollar sign; an unknown group is empty.
  std::string Expand(std::string_view pattern, const std::vector<re2::StringPiece>& parts) const {
    std::string out;
    const auto word = [](char c) { return c == '_' || ('0' <= c && c <= '9') || ('a' <= (c | 32) && (c | 32) <= 'z'); };
    for (size_t i = 0; i < pattern.size(); ++i) {
      if (pattern[i] != '$' || i + 1 == pattern.size()) {
        out += pattern[i];
        continue;
      }
      if (pattern[i + 1] == '$') {
        out += '$';
        ++i;
        continue;
      }
      const bool braced = pattern[i + 1] == '{';
      const size_t begin = i + (braced ? 2 : 1);
      size_t end = begin;
      while (end < pattern.size() && word(pattern[end])) ++end;
      if (end == begin || (braced && (end == pattern.size() || pattern[end] != '}'))) {
        out += '$';
        continue;
      }
      const std::string_view name = pattern.substr(begin, end - begin);
      if (const auto number = base::ParseUint64(name); number.has_value()) {
        if (*number < parts.size()) out.append(parts[*number].data(), parts[*number].size());
      } else if (const auto named = regex_->NamedCapturingGroups().find(std::string(name));
                 named != regex_->NamedCapturingGroups().end()) {
        const re2::StringPiece& part = parts[static_cast<size_t>(named->second)];
        out.append(part.data(), part.size());
      }
      i = braced ? end : end - 1;
    }
    return out;
  }

  std::unique_ptr<RE2> regex_;
};

class LabelJoin : public Relabel {
 public:
  using Relabel::Relabel;
  absl::Status Prepare() {
    for (size_t i = 2; i < texts_.size(); ++i) {
      if (texts_[i].empty() || !base::IsValidUtf8(texts_[i])) {
        return ExecutionError(base::StrCat("invalid source label name in label_join(): ", texts_[i]));
      }
    }
    return CheckName("label_join", texts_[0]);
  }

 private:
  absl::Status Change(SeriesInfo& one) override {
    size_t length = 0;
    for (size_t i = 2; i < texts_.size(); ++i) length += texts_[1].size() + one.labels.Get(texts_[i]).size();
    RETURN_IF_ERROR(CheckLength(length));
    std::string joined;
    for (size_t i = 2; i < texts_.size(); ++i) {
      base::StrAppend(joined, i == 2 ? std::string_view() : std::string_view(texts_[1]), one.labels.Get(texts_[i]));
    }
    return SetLabel(one, texts_[0], joined);
  }
};

}  // namespace

absl::StatusOr<OperatorPtr> MakeLabelFunction(const CallArguments& call) {
  if (call.name() == "label_replace") {
    ASSIGN_OR_RETURN(OperatorPtr input, call.Build(0));
    auto replace = std::make_unique<LabelReplace>(std::move(input), call);
    RETURN_IF_ERROR(replace->Prepare());
    return replace;
  }
  if (call.name() == "label_join") {
    ASSIGN_OR_RETURN(OperatorPtr input, call.Build(0));
    auto join = std::make_unique<LabelJoin>(std::move(input), call);
    RETURN_IF_ERROR(join->Prepare());
    return join;
  }
  return OperatorPtr();
}

}  // namespace varve::exec
