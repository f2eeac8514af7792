#include "query/exec/context.h"

#include <algorithm>

#include "storage/base/strings.h"

namespace varve::exec {

absl::Status Context::CheckNow() const {
  if (options_.cancel != nullptr) RETURN_IF_ERROR(options_.cancel->Check());
  if (options_.deadline != nullptr) RETURN_IF_ERROR(options_.deadline->Check());
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const model::Selection>> Context::Select(const std::vector<model::Matcher>& matchers,
                                                                        model::TimeRange range) {
  std::string key = base::StrCat(range.after_ms, " ", range.until_ms);
  for (const model::Matcher& matcher : matchers) base::StrAppend(key, " ", matcher.ToString());
  if (const auto found = selections_.find(key); found != selections_.end()) return found->second;
  RETURN_IF_ERROR(CheckNow());
  model::SelectRequest request;
  request.range = range;
  request.matchers = matchers;
  request.cancel = options_.cancel != nullptr ? options_.cancel : options_.deadline;
  request.memory = &memory_;
  ASSIGN_OR_RETURN(std::shared_ptr<const model::Selection> selection, source_.Select(request));
  series_selected_ += selection->size();
  selections_.emplace(std::move(key), selection);
  return selection;
}

absl::Status Context::HoldSamples(uint64_t n) {
  samples_held_ += n;
  samples_peak_ = std::max(samples_peak_, samples_held_);
  if (options_.samples_max != 0 && samples_held_ > options_.samples_max) {
    return absl::ResourceExhaustedError("query processing would load too many samples into memory in query execution");
  }
  return absl::OkStatus();
}

absl::Status Holding::Grow(size_t bytes, uint64_t samples) {
  if (bytes > INT64_MAX / 2 || !context_.memory().TryCharge(static_cast<int64_t>(bytes))) {
    return absl::ResourceExhaustedError(
        base::StrCat("query needs more than its ", context_.memory().max(), " bytes of memory"));
  }
  bytes_ += static_cast<int64_t>(bytes);
  samples_ += samples;
  return context_.HoldSamples(samples);
}

}  // namespace varve::exec
