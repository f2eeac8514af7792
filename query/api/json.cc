#include "query/api/json.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "storage/base/float_text.h"
#include "storage/base/strings.h"
#include "storage/model/histogram_math.h"

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

namespace {
constexpr int kTimestampBytes = 28;

char* WriteTimestamp(char* out, int64_t t_ms) {
  uint64_t magnitude = static_cast<uint64_t>(t_ms);
  char* const limit = out + kTimestampBytes;
  if (t_ms < 0) {
    *out++ = '-';
    magnitude = 0 - magnitude;
  }
  char* end = std::to_chars(out, limit, magnitude / 1000).ptr;
  if (const auto fraction = static_cast<int>(magnitude % 1000); fraction != 0) {
    *end++ = '.';
    *end++ = static_cast<char>('0' + fraction / 100);
    *end++ = static_cast<char>('0' + fraction / 10 % 10);
    *end++ = static_cast<char>('0' + fraction % 10);
  }
  return end;
}
}  // namespace

void AppendTimestamp(std::string& out, int64_t t_ms) {
  char buffer[kTimestampBytes];
  out.append(buffer, WriteTimestamp(buffer, t_ms));
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

void AppendPoints(std::string& out, const engine::ResultSeries& series) {
  if (!series.points.empty()) {
    out += ",\"values\":[";
    bool first = true;
    for (const engine::Point& point : series.points) {
      // One append for each point: this loop is most of the time that a large answer takes.
      char buffer[kTimestampBytes + base::kFloatQuickBytes + 8];
      char* end = buffer;
      if (!std::exchange(first, false)) *end++ = ',';
      *end++ = '[';
      end = WriteTimestamp(end, point.t_ms);
      *end++ = ',';
      *end++ = '"';
      if (char* quick = base::WriteFloatQuick(end, point.value); quick != nullptr) {
        *quick++ = '"';
        *quick++ = ']';
        out.append(buffer, quick);
        continue;
      }
      out.append(buffer, end);
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
  bool any = false;
  model::BucketIterator buckets(h, model::BucketIterator::Which::kAll);
  while (buckets.Next()) {
    const model::Bucket& bucket = buckets.at();
    if (bucket.count == 0) continue;
    out += any ? ",[" : ",\"buckets\":[[";
    any = true;
    // Which bounds belong to the bucket: 0 (low, high], 1 [low, high), 2 neither, 3 both.
    out += bucket.lower_inclusive ? bucket.upper_inclusive ? '3' : '1' : bucket.upper_inclusive ? '0' : '2';
    out += ',';
    AppendQuoted(out, bucket.lower);
    out += ',';
    AppendQuoted(out, bucket.upper);
    out += ',';
    AppendQuoted(out, bucket.count);
    out += ']';
  }
  if (any) out += ']';
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
