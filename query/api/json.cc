#include "query/api/json.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "storage/base/float_text.h"
#include "storage/base/strings.h"

namespace varve::api {

void AppendString(std::string& out, std::string_view text, Html html) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  size_t clean = 0;  // everything before is written
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool html_special = html == Html::kEscaped && (c == '<' || c == '>' || c == '&');
    if (c >= 0x20 && c != '"' && c != '\\' && !html_special) [[likely]]
      continue;
    out.append(text, clean, i - clean);
    clean = i + 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += "\\u00";
        out += kHex[c >> 4];
        out += kHex[c & 15];
    }
  }
  out.append(text, clean);
  out += '"';
}

void AppendLabels(std::string& out, model::LabelsView labels) {
  char separator = '{';
  for (const model::LabelRef label : labels) {
    out += separator;
    separator = ',';
    AppendString(out, label.name, Html::kPlain);
    out += ':';
    AppendString(out, label.value, Html::kPlain);
  }
  if (separator == '{') out += '{';
  out += '}';
}

void AppendTimestamp(std::string& out, int64_t t_ms) {
  uint64_t magnitude = static_cast<uint64_t>(t_ms);
  if (t_ms < 0) {
    out += '-';
    magnitude = 0 - magnitude;
  }
  char buffer[28];
  char* end = std::to_chars(buffer, buffer + sizeof buffer, magnitude / 1000).ptr;
  if (const auto fraction = static_cast<int>(magnitude % 1000); fraction != 0) {
    *end++ = '.';
    *end++ = static_cast<char>('0' + fraction / 100);
    *end++ = static_cast<char>('0' + fraction / 10 % 10);
    *end++ = static_cast<char>('0' + fraction % 10);
  }
  out.append(buffer, end);
}

void AppendSampleValue(std::string& out, double v) {
  const double magnitude = std::fabs(v);
  if (magnitude != 0 && (magnitude < 1e-6 || magnitude >= 1e21) && std::isfinite(v)) {
    base::AppendFloatExponent(out, v);
  } else {
    base::AppendFloatFixed(out, v);
  }
}

namespace {

void AppendQuoted(std::string& out, double v) {
  out += '"';
  AppendSampleValue(out, v);
  out += '"';
}

// The upper bound of an exponential bucket; the last finite one is the largest double.
double ExponentialBound(int32_t schema, int64_t index) {
  double exponent;
  const double fraction = std::modf(std::ldexp(static_cast<double>(index), -schema), &exponent);
  if (exponent >= 1024)
    return fraction == 0 && exponent == 1024 ? std::numeric_limits<double>::max()
                                             : std::numeric_limits<double>::infinity();
  return std::ldexp(std::exp2(fraction), static_cast<int>(exponent));
}

class BucketWriter {
 public:
  explicit BucketWriter(std::string& out) : out_(out) {}
  // `boundaries`: 0 (low, high], 1 [low, high), 2 open, 3 closed. Empty buckets are not shown.
  void Write(int boundaries, double low, double high, double count) {
    if (count == 0) return;
    out_ += any_ ? "," : ",\"buckets\":[";
    any_ = true;
    base::StrAppend(out_, "[", boundaries, ",");
    AppendQuoted(out_, low);
    out_ += ',';
    AppendQuoted(out_, high);
    out_ += ',';
    AppendQuoted(out_, count);
    out_ += ']';
  }
  void Close() {
    if (any_) out_ += ']';
  }

 private:
  std::string& out_;
  bool any_ = false;
};

template <class Visit>
void EachBucket(const std::vector<model::Span>& spans, const std::vector<double>& counts, Visit visit) {
  int64_t index = 0;
  size_t at = 0;
  for (const model::Span& span : spans) {
    index += span.offset;
    for (uint32_t i = 0; i < span.length && at < counts.size(); ++i) visit(index++, counts[at++]);
  }
}

void AppendPoints(std::string& out, const engine::ResultSeries& series) {
  if (!series.points.empty()) {
    out += ",\"values\":[";
    bool first = true;
    for (const engine::Point& point : series.points) {
      out += first ? "[" : ",[";
      first = false;
      AppendTimestamp(out, point.t_ms);
      out += ",\"";
      AppendSampleValue(out, point.value);
      out += "\"]";
    }
    out += ']';
  }
  if (!series.histograms.empty()) {
    out += ",\"histograms\":[";
    bool first = true;
    for (const engine::HistogramPoint& point : series.histograms) {
      out += first ? "[" : ",[";
      first = false;
      AppendTimestamp(out, point.t_ms);
      out += ',';
      AppendHistogram(out, *point.histogram);
      out += ']';
    }
    out += ']';
  }
}

}  // namespace

void AppendHistogram(std::string& out, const model::Histogram& h) {
  out += "{\"count\":";
  AppendQuoted(out, h.count);
  out += ",\"sum\":";
  AppendQuoted(out, h.sum);
  BucketWriter buckets(out);
  if (model::UsesCustomBuckets(h.schema)) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const auto bounds = static_cast<int64_t>(h.custom_values.size());
    EachBucket(h.positive_spans, h.positive_buckets, [&](int64_t index, double count) {
      const double low = index == 0 ? -kInfinity : h.custom_values[static_cast<size_t>(std::min(index, bounds) - 1)];
      const double high = index < bounds ? h.custom_values[static_cast<size_t>(index)] : kInfinity;
      buckets.Write(index == 0 ? 3 : 0, low, high, count);
    });
  } else {
    std::vector<std::pair<int64_t, double>> negative;
    EachBucket(h.negative_spans, h.negative_buckets,
               [&](int64_t index, double count) { negative.emplace_back(index, count); });
    // A bucket that reaches into the zero bucket is shown cut at it.
    const auto cut = [&h](double bound) { return bound > 0 && bound < h.zero_threshold ? h.zero_threshold : bound; };
    for (auto it = negative.rbegin(); it != negative.rend(); ++it) {
      buckets.Write(1, -ExponentialBound(h.schema, it->first), -cut(ExponentialBound(h.schema, it->first - 1)),
                    it->second);
    }
    buckets.Write(3, -h.zero_threshold, h.zero_threshold, h.zero_count);
    EachBucket(h.positive_spans, h.positive_buckets, [&](int64_t index, double count) {
      buckets.Write(0, cut(ExponentialBound(h.schema, index - 1)), ExponentialBound(h.schema, index), count);
    });
  }
  buckets.Close();
  out += '}';
}

void AppendResult(std::string& out, const engine::Result& result) {
  using promql::ValueType;
  const auto close = [&out](char separator) {
    if (separator == '[') out += '[';
    out += ']';
  };
  switch (result.type) {
    case ValueType::kNone:
    case ValueType::kScalar:
      out += "{\"resultType\":\"scalar\",\"result\":[";
      AppendTimestamp(out, result.t_ms);
      out += ',';
      AppendQuoted(out, result.scalar);
      out += ']';
      return;
    case ValueType::kString:
      out += "{\"resultType\":\"string\",\"result\":[";
      AppendTimestamp(out, result.t_ms);
      out += ',';
      AppendString(out, result.string);
      out += ']';
      return;
    case ValueType::kVector: {
      out += "{\"resultType\":\"vector\",\"result\":";
      char separator = '[';
      for (const engine::ResultSeries& series : result.series) {
        out += separator;
        separator = ',';
        out += "{\"metric\":";
        AppendLabels(out, series.labels);
        if (!series.points.empty()) {
          out += ",\"value\":[";
          AppendTimestamp(out, series.points[0].t_ms);
          out += ',';
          AppendQuoted(out, series.points[0].value);
          out += ']';
        } else if (!series.histograms.empty()) {
          out += ",\"histogram\":[";
          AppendTimestamp(out, series.histograms[0].t_ms);
          out += ',';
          AppendHistogram(out, *series.histograms[0].histogram);
          out += ']';
        }
        out += '}';
      }
      return close(separator);
    }
    case ValueType::kMatrix: {
      out += "{\"resultType\":\"matrix\",\"result\":";
      char separator = '[';
      for (const engine::ResultSeries& series : result.series) {
        out += separator;
        separator = ',';
        out += "{\"metric\":";
        AppendLabels(out, series.labels);
        AppendPoints(out, series);
        out += '}';
      }
      return close(separator);
    }
  }
}

}  // namespace varve::api
