#include "tools/varvectl/render.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "storage/base/strings.h"

namespace varve::ctl {
namespace {

// Bytes that begin a UTF-8 character: what a terminal counts, near enough.
size_t Width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string HistogramText(const Json& histogram) {
  return base::StrCat("histogram count=", histogram["count"].text, " sum=", histogram["sum"].text,
                      " buckets=", histogram["buckets"].items.size());
}

}  // namespace

std::string Table::ToString() const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string out;
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      if (i + 1 < row.size()) out.append(widths[i] - Width(row[i]) + 2, ' ');
    }
    out += '\n';
  }
  return out;
}

std::string MetricText(const Json& labels) {
  std::string name, rest;
  for (const auto& [key, value] : labels.members) {
    if (key == "__name__") {
      name = value.text;
      continue;
    }
    const bool plain =
        key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos;
    base::StrAppend(rest, rest.empty() ? "" : ",", plain ? key : base::QuoteGo(key), "=", base::QuoteGo(value.text));
  }
  if (rest.empty() && !name.empty()) return name;
  return base::StrCat(name, "{", rest, "}");
}

std::string TimeText(std::string_view seconds) {
  const auto value = base::ParseDouble(seconds);
  if (!value || !(std::fabs(*value) < 1e11)) return std::string(seconds);
  const auto ms = static_cast<int64_t>(std::llround(*value * 1000));
  const int64_t below = ((ms % 1000) + 1000) % 1000;
  const time_t whole = (ms - below) / 1000;
  struct tm parts{};
  gmtime_r(&whole, &parts);
  char buffer[80];
  const size_t n = std::strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%S", &parts);
  std::string out(buffer, n);
  if (below != 0) {
    const std::string digits = base::StrCat(below);
    base::StrAppend(out, ".", std::string(3 - digits.size(), '0'), digits);
  }
  return out + "Z";
}

std::string ResultTable(const Json& data) {
  const std::string& type = data["resultType"].text;
  const Json& result = data["result"];
  if (type == "scalar" || type == "string") {
    Table table({"TIME", "VALUE"});
    table.Add({TimeText(result[0].text), result[1].text});
    return table.ToString();
  }
  if (result.items.empty()) return "(no series)\n";
  if (type == "vector") {
    Table table({"SERIES", "TIME", "VALUE"});
    for (const Json& series : result.items) {
      const bool is_histogram = series.Has("histogram");
      const Json& point = is_histogram ? series["histogram"] : series["value"];
      table.Add({MetricText(series["metric"]), TimeText(point[0].text),
                 is_histogram ? HistogramText(point[1]) : point[1].text});
    }
    return table.ToString();
  }
  std::string out;
  for (const Json& series : result.items) {
    struct Point {
      double seconds;
      std::vector<std::string> row;
    };
    std::vector<Point> points;
    for (const Json& point : series["values"].items) {
      points.push_back({base::ParseDouble(point[0].text).value_or(0), {"", TimeText(point[0].text), point[1].text}});
    }
    for (const Json& point : series["histograms"].items) {
      points.push_back(
          {base::ParseDouble(point[0].text).value_or(0), {"", TimeText(point[0].text), HistogramText(point[1])}});
    }
    std::stable_sort(points.begin(), points.end(),
                     [](const Point& a, const Point& b) { return a.seconds < b.seconds; });
    base::StrAppend(out, out.empty() ? "" : "\n", MetricText(series["metric"]), "\n");
    Table table({"", "TIME", "VALUE"});
    for (Point& point : points) table.Add(std::move(point.row));
    out += table.ToString();
  }
  return out;
}

}  // namespace varve::ctl
