#include "query/exec/matrix.h"

#include <algorithm>

#include "query/exec/labels.h"
#include "query/exec/range_source.h"
#include "query/exec/repeat.h"
#include "storage/base/check.h"

namespace varve::exec {
namespace {

// An anchored range has the last sample before its start at its start, and the last sample inside at its end. A
// smoothed one has interpolated values at both.
void Extend(const plan::Node& node, int64_t start_ms, int64_t end_ms, MatrixSeries& series) {
  std::vector<std::pair<int64_t, double>>& all = series.floats;
  const auto inside = [&](const auto& p) { return start_ms < p.first && p.first <= end_ms; };
  if (std::none_of(all.begin(), all.end(), inside)) {
    // A smoothed range may lie between two samples.
    const bool between = node.smoothed && !all.empty() && all.front().first <= start_ms && all.back().first > end_ms;
    if (!between) return all.clear();
  }
  const auto edge = [&](int64_t at, bool left) {
    const auto after =
        std::upper_bound(all.begin(), all.end(), at, [](int64_t t, const auto& p) { return t < p.first; });
    if (after == all.begin()) return after->second;
    const auto before = std::prev(after);
    if (!node.smoothed || before->first == at || after == all.end()) return before->second;
    (void)left;
    return before->second + (after->second - before->second) * static_cast<double>(at - before->first) /
                                static_cast<double>(after->first - before->first);
  };
  std::vector<std::pair<int64_t, double>> out;
  out.emplace_back(start_ms, edge(start_ms, true));
  for (const auto& p : all) {
    if (start_ms < p.first && p.first < end_ms) out.push_back(p);
  }
  out.emplace_back(end_ms, edge(end_ms, false));
  all = std::move(out);
}

}  // namespace

absl::StatusOr<std::vector<MatrixSeries>> ReadMatrix(const plan::Node& node, const Grid& grid, Context& context,
                                                     Holding& holding) {
  VARVE_CHECK(grid.steps == 1);
  const bool extended = node.anchored || node.smoothed;
  const int64_t before = extended ? context.lookback_ms() : 0;
  const int64_t after = node.smoothed ? context.lookback_ms() : 0;
  ASSIGN_OR_RETURN(std::unique_ptr<RangeSource> source, MakeRangeSource(node, grid, context, before, after));
  RETURN_IF_ERROR(source->Open());
  std::vector<SeriesInfo> infos = source->TakeSeries();
  const int64_t end_ms = source->geometry().End(0), start_ms = source->geometry().Start(0);
  std::vector<MatrixSeries> matrix;
  model::SampleColumns samples;
  for (SeriesInfo& info : infos) {
    RETURN_IF_ERROR(source->Next(samples));
    RETURN_IF_ERROR(holding.Grow(samples.size() * sizeof(std::pair<int64_t, double>), samples.size()));
    context.CountQueried(samples.size());
    MatrixSeries series;
    series.labels = info.drop_name ? WithoutName(info.labels) : std::move(info.labels);
    size_t h = 0;
    for (size_t i = 0; i < samples.size(); ++i) {
      const int64_t t = (*samples.times)[i];
      const bool inside = start_ms - before < t && t <= end_ms + after;
      if (h < samples.histogram_at.size() && samples.histogram_at[h] == i) {
        if (extended) {
          return ExecutionError("smoothed and anchored modifiers do not work with native histograms");
        }
        if (inside) series.histograms.emplace_back(t, samples.histograms[h]);
        ++h;
      } else if (inside) {
        series.floats.emplace_back(t, samples.values[i]);
      }
    }
    if (extended) Extend(node, start_ms, end_ms, series);
    if (series.floats.empty() && series.histograms.empty()) continue;
    matrix.push_back(std::move(series));
  }
  std::sort(matrix.begin(), matrix.end(),
            [](const MatrixSeries& a, const MatrixSeries& b) { return a.labels < b.labels; });
  for (size_t i = 1; i < matrix.size(); ++i) {
    if (matrix[i].labels == matrix[i - 1].labels) return ExecutionError(kSameLabelset);
  }
  return matrix;
}

}  // namespace varve::exec
