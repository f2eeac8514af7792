#pragma once
#include <string_view>
#include <vector>

#include "query/exec/operator.h"
#include "storage/model/labels.h"

namespace varve::exec {

// Without __name__, __type__ and __unit__: what is left when a value is no longer that metric.
model::Labels WithoutName(model::LabelsView labels);
bool HasName(model::LabelsView labels);  // any of the three

// Applies the removal to a list of series: at once, or by mark when `delayed`.
void DropNames(std::vector<SeriesInfo>& series, bool delayed);
// True when all have the same __name__, __type__ and __unit__, so that dropping those makes no two series equal.
bool SameNames(const std::vector<SeriesInfo>& series);

// True when two series have the same labels.
bool HasDuplicates(const std::vector<SeriesInfo>& series);

// The labels that a vector match or an aggregation groups by. The result is a key to be compared, cheaper than Labels.
class GroupKey {
 public:
  // by / on: only these. without / ignoring: all but these and the names.
  GroupKey(std::vector<std::string> names, bool only);
  model::Labels Of(model::LabelsView labels) const;

 private:
  std::vector<std::string> names_;
  bool only_;
};

}  // namespace varve::exec
