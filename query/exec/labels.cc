#include "query/exec/labels.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <cstring>

#include "storage/base/strings.h"

namespace varve::exec {
namespace {

constexpr std::string_view kType = "__type__";
constexpr std::string_view kUnit = "__unit__";

bool IsName(std::string_view label) { return label == model::kMetricName || label == kType || label == kUnit; }

// The labels whose names `keep` accepts. A canonical label set is its labels' bytes one after the other, so what stays
// is copied as it is; building it label by label took four times as long, and this runs once per series of most
// queries.
template <class Keep>
model::Labels Filter(model::LabelsView labels, Keep keep) {
  constexpr size_t kOnStack = 1024;
  char stack[kOnStack];
  std::string heap;
  char* out = stack;
  if (labels.bytes().size() > kOnStack) {
    heap.resize(labels.bytes().size());
    out = heap.data();
  }
  size_t size = 0;
  const char* begin = labels.bytes().data();
  for (const model::LabelRef label : labels) {
    const char* end = label.value.data() + label.value.size();
    if (keep(label.name)) {
      std::memcpy(out + size, begin, static_cast<size_t>(end - begin));
      size += static_cast<size_t>(end - begin);
    }
    begin = end;
  }
  return model::Labels(model::LabelsView(std::string_view(out, size)));
}

}  // namespace

model::Labels WithoutName(model::LabelsView labels) {
  return Filter(labels, [](std::string_view name) { return !IsName(name); });
}

bool HasName(model::LabelsView labels) {
  for (const model::LabelRef label : labels) {
    if (label.name > kUnit) break;
    if (IsName(label.name)) return true;
  }
  return false;
}

void DropNames(std::vector<SeriesInfo>& series, bool delayed) {
  for (SeriesInfo& one : series) {
    if (delayed) {
      one.drop_name = true;
    } else if (HasName(one.labels)) {
      one.labels = WithoutName(one.labels);
    }
  }
}

bool SameNames(const std::vector<SeriesInfo>& series) {
  for (size_t i = 1; i < series.size(); ++i) {
    auto a = series[i - 1].labels.begin(), b = series[i].labels.begin();
    const auto a_end = series[i - 1].labels.end(), b_end = series[i].labels.end();
    // Names that sort before __name__ may lie in front; they are skipped on both sides.
    while (true) {
      while (a != a_end && (*a).name <= kUnit && !IsName((*a).name)) ++a;
      while (b != b_end && (*b).name <= kUnit && !IsName((*b).name)) ++b;
      const bool a_named = a != a_end && IsName((*a).name), b_named = b != b_end && IsName((*b).name);
      if (a_named != b_named) return false;
      if (!a_named) break;
      if ((*a).name != (*b).name || (*a).value != (*b).value) return false;
      ++a, ++b;
    }
  }
  return true;
}

bool HasDuplicates(const std::vector<SeriesInfo>& series) {
  absl::flat_hash_set<std::string_view, base::StringHash, base::StringEqual> seen;
  seen.reserve(series.size());
  for (const SeriesInfo& one : series) {
    if (!seen.insert(one.labels.bytes()).second) return true;
  }
  return false;
}

GroupKey::GroupKey(std::vector<std::string> names, bool only) : names_(std::move(names)), only_(only) {
  if (!only_) names_.emplace_back(model::kMetricName);
  std::sort(names_.begin(), names_.end());
  names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
}

model::Labels GroupKey::Of(model::LabelsView labels) const {
  return Filter(labels,
                [&](std::string_view name) { return std::binary_search(names_.begin(), names_.end(), name) == only_; });
}

}  // namespace varve::exec
