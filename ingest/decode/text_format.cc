#include "ingest/decode/text_format.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "ingest/decode/canonical.h"
#include "ingest/decode/write_request.h"
#include "storage/base/strings.h"

namespace varve::decode {

namespace {

using model::MetricType;

bool IsNameStart(char c, bool colon) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (colon && c == ':');
}
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::optional<MetricType> TypeOf(std::string_view word) {
  if (word == "untyped") return MetricType::kUnknown;  // 0.0.4's word
  for (int i = 0; i < 8; ++i) {
    const auto type = static_cast<MetricType>(i);
    if (ToString(type) == word) return type;
  }
  return std::nullopt;
}

// One line at a time; `rest_` is what of the line is still to be read.
class Page {
 public:
  Page(std::string_view page, const TextOptions& options, model::WriteBatch& batch)
      : page_(page),
        options_(options),
        batch_(batch),
        arena_(batch),
        open_(options.format == TextFormat::kOpenMetrics) {}

  absl::Status Run() {
    size_t at = 0;
    while (at < page_.size()) {
      const size_t end = std::min(page_.find('\n', at), page_.size());
      rest_ = page_.substr(at, end - at);
      at = end + 1;
      ++line_;
      if (open_ && eof_) return Fail("nothing after # EOF", rest_);
      if (open_ && end == page_.size() && rest_ != "# EOF")
        return Fail("a line feed at the end of the line", "the end");
      if (!open_ && rest_.ends_with('\r')) rest_.remove_suffix(1);
      RETURN_IF_ERROR(Line());
    }
    if (open_ && !eof_) {
      return absl::InvalidArgumentError(
          base::StrCat("line ", line_ + 1, ": expected # EOF, found the end of the page"));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Fail(std::string_view expected, std::string_view found) const {
    constexpr size_t kShown = 40;
    std::string text = base::StrCat("line ", line_, ": expected ", expected, ", found ");
    if (found.empty()) {
      text += "the end of the line";
    } else {
      text += base::QuoteGo(found.substr(0, kShown));
      if (found.size() > kShown) text += "...";
    }
    return absl::InvalidArgumentError(text);
  }
  absl::Status Fail(std::string_view expected) const { return Fail(expected, rest_); }

  bool Take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void SkipSpace() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t')) rest_.remove_prefix(1);
  }
  // Between two words: any white space in 0.0.4, one blank in OpenMetrics.
  bool Gap() {
    if (open_) return Take(' ');
    const size_t before = rest_.size();
    SkipSpace();
    return rest_.size() < before;
  }
  void Optional() {
    if (!open_) SkipSpace();
  }
  std::string_view Word() {
    const size_t end = std::min(rest_.find_first_of(" \t"), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }
  std::string_view BareName(bool colon) {
    size_t n = 0;
    while (n < rest_.size() && (IsNameStart(rest_[n], colon) || (n > 0 && IsDigit(rest_[n])))) ++n;
    const std::string_view name = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return name;
  }

  absl::Status Quoted(std::string_view what, std::string_view& out) {
    if (!Take('"')) return Fail(base::StrCat(what, " in double quotes"));
    const size_t end = rest_.find_first_of("\"\\");
    if (end != std::string_view::npos && rest_[end] == '"') {
      out = rest_.substr(0, end);
      rest_.remove_prefix(end + 1);
    } else {
      std::string& text = unescaped_.emplace_back();
      while (true) {
        if (rest_.empty()) return Fail(base::StrCat("a double quote after ", what));
        const char c = rest_[0];
        rest_.remove_prefix(1);
        if (c == '"') break;
        if (c != '\\') {
          text += c;
          continue;
        }
        if (rest_.empty()) return Fail(base::StrCat("a double quote after ", what));
        const char escaped = rest_[0];
        rest_.remove_prefix(1);
        if (escaped == 'n')
          text += '\n';
        else if (escaped == '"' || escaped == '\\')
          text += escaped;
        else
          text += '\\', text += escaped;  // as Prometheus' parser leaves it
      }
      out = text;
    }
    if (!base::IsValidUtf8(out)) return Fail(base::StrCat("valid UTF-8 in ", what), out);
    return absl::OkStatus();
  }

  absl::Status Line() {
    unescaped_.clear();
    if (open_) {
      if (rest_.starts_with('#')) return OpenMetricsComment();
      if (rest_.empty()) return Fail("a sample or # (no empty lines)");
      return SampleLine();
    }
    SkipSpace();
    if (rest_.empty()) return absl::OkStatus();
    if (!Take('#')) return SampleLine();
    SkipSpace();
    const std::string_view keyword = Word();
    if (keyword != "HELP" && keyword != "TYPE") return absl::OkStatus();  // a comment
    return Meta(keyword);
  }

  absl::Status OpenMetricsComment() {
    if (rest_ == "# EOF") {
      eof_ = true;
      return absl::OkStatus();
    }
    const std::string_view whole = rest_;
    Take('#');
    if (!Take(' ')) return Fail("# HELP, # TYPE, # UNIT or # EOF", whole);
    const std::string_view keyword = Word();
    if (keyword != "HELP" && keyword != "TYPE" && keyword != "UNIT") {
      return Fail("# HELP, # TYPE, # UNIT or # EOF", whole);
    }
    return Meta(keyword);
  }

  absl::Status Meta(std::string_view keyword) {
    if (!Gap()) return Fail(base::StrCat("a metric name after ", keyword));
    std::string_view metric;
    if (rest_.starts_with('"'))
      RETURN_IF_ERROR(Quoted("a metric name", metric));
    else
      metric = BareName(true);
    if (metric.empty()) return Fail(base::StrCat("a metric name after ", keyword));
    const bool gap = Gap();
    if (!gap && !rest_.empty()) return Fail("white space after the metric name");
    model::Metadata* metadata = nullptr;
    RETURN_IF_ERROR(MetadataOf(metric, metadata));
    if (keyword == "TYPE") {
      const std::string_view word = Word();
      const std::optional<MetricType> type = TypeOf(word);
      Optional();
      if (!type.has_value() || (open_ && word == "untyped")) {
        return Fail("counter, gauge, histogram, summary or another metric type", word);
      }
      if (!rest_.empty()) return Fail("the end of the line after the type");
      metadata->type = *type;
    } else if (keyword == "UNIT") {
      if (!rest_.empty() && !(metric.size() > rest_.size() + 1 && metric.ends_with(rest_) &&
                              metric[metric.size() - rest_.size() - 1] == '_')) {
        return Fail(base::StrCat("a unit that is the last word of ", base::QuoteGo(metric)));
      }
      metadata->unit = rest_;
    } else {
      if (!base::IsValidUtf8(rest_)) return Fail("valid UTF-8 in a help text");
      metadata->help = UnescapeHelp(rest_);
    }
    return absl::OkStatus();
  }

  std::string UnescapeHelp(std::string_view text) const {
    std::string out;
    out.reserve(text.size());
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\' || i + 1 == text.size()) {
        out += text[i];
        continue;
      }
      const char c = text[++i];
      if (c == 'n')
        out += '\n';
      else if (c == '\\' || (open_ && c == '"'))
        out += c;
      else
        out += '\\', out += c;
    }
    return out;
  }

  absl::Status MetadataOf(std::string_view metric, model::Metadata*& out) {
    auto it = metadata_.find(metric);
    if (it == metadata_.end()) {
      if (batch_.metadata.size() >= kMetadataMax) {
        return absl::InvalidArgumentError(base::StrCat("line ", line_, ": more than ", kMetadataMax, " metrics"));
      }
      it = metadata_.emplace(std::string(metric), batch_.metadata.size()).first;
      batch_.metadata.emplace_back().metric = metric;
    }
    out = &batch_.metadata[it->second];
    return absl::OkStatus();
  }

  // After the opening brace. `metric` may be given inside the braces, quoted and alone.
  absl::Status ReadLabels(std::string_view* metric) {
    while (true) {
      Optional();
      if (Take('}')) return absl::OkStatus();
      std::string_view name;
      const bool quoted = rest_.starts_with('"');
      if (quoted)
        RETURN_IF_ERROR(Quoted("a label name", name));
      else
        name = BareName(false);
      if (name.empty()) return Fail("a label name or }");
      Optional();
      if (Take('=')) {
        Optional();
        std::string_view value;
        RETURN_IF_ERROR(Quoted(base::StrCat("the value of label ", name), value));
        labels_.push_back({name, value});
      } else if (quoted && metric != nullptr && metric->empty()) {
        *metric = name;
      } else {
        return Fail("= after the label name");
      }
      Optional();
      if (Take(',')) continue;
      if (Take('}')) return absl::OkStatus();
      return Fail("a comma or } after the label value");
    }
  }

  absl::Status SortLabels() {
    std::stable_sort(labels_.begin(), labels_.end(),
                     [](const model::LabelRef& a, const model::LabelRef& b) { return a.name < b.name; });
    for (size_t i = 1; i < labels_.size(); ++i) {
      if (labels_[i].name == labels_[i - 1].name) {
        return absl::InvalidArgumentError(
            base::StrCat("line ", line_, ": label name ", base::QuoteGo(labels_[i].name), " occurs twice"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Number(std::string_view what, double& value) {
    const std::string_view word = Word();
    // Go's syntax would also admit hexadecimal floats and underscores; Prometheus' parser does not.
    const std::optional<double> number =
        word.find_first_of("pP_xX") == std::string_view::npos ? base::ParseDouble(word) : std::nullopt;
    if (!number.has_value()) return Fail(what, word);
    value = std::isnan(*number) ? model::NormalNan() : *number;
    return absl::OkStatus();
  }

  // Seconds in OpenMetrics, rounded: cutting off would turn 1.001 s, times 1000, into 1000 ms.
  absl::Status Timestamp(int64_t& t_ms) {
    if (open_) {
      const std::string_view shown = rest_;
      double seconds = 0;
      RETURN_IF_ERROR(Number("a timestamp in seconds", seconds));
      if (!(std::fabs(seconds) < 9e15)) return Fail("a timestamp in seconds", shown);
      t_ms = std::llround(seconds * 1000);
      return absl::OkStatus();
    }
    const std::string_view word = Word();
    const std::optional<int64_t> ms = base::ParseInt64(word);
    if (!ms.has_value()) return Fail("a timestamp in whole milliseconds", word);
    t_ms = *ms;
    return absl::OkStatus();
  }

  absl::Status SampleLine() {
    labels_.clear();
    std::string_view metric = BareName(true);
    if (!metric.empty()) Optional();
    if (Take('{'))
      RETURN_IF_ERROR(ReadLabels(&metric));
    else if (metric.empty())
      return Fail("a metric name");
    if (metric.empty()) return Fail("a metric name before or inside the braces");
    labels_.push_back({model::kMetricName, metric});
    RETURN_IF_ERROR(SortLabels());
    if (!Gap() && (open_ || rest_.empty())) return Fail("a value");

    if (batch_.series.size() >= kSeriesMax) {
      return absl::InvalidArgumentError(base::StrCat("line ", line_, ": more than ", kSeriesMax, " samples"));
    }
    model::WriteBatch::Series series;
    size_t size = 0;
    for (const model::LabelRef label : labels_) size += CanonicalSizeMax(label);
    char* out = arena_.Reserve(size);
    for (const model::LabelRef label : labels_) {
      if (!label.value.empty()) out = PutCanonical(out, label);
    }
    series.labels = arena_.Keep(out);
    series.hash = model::HashLabels(series.labels, options_.hash_seed);
    series.float_begin = static_cast<uint32_t>(batch_.timestamps.size());
    series.float_count = 1;
    series.histogram_begin = static_cast<uint32_t>(batch_.histograms.size());
    series.exemplar_begin = static_cast<uint32_t>(batch_.exemplars.size());

    double value = 0;
    int64_t t_ms = options_.now_ms;
    RETURN_IF_ERROR(Number("a value", value));
    bool gap = Gap();
    if (gap && !rest_.empty() && !(open_ && rest_.starts_with('#'))) {
      RETURN_IF_ERROR(Timestamp(t_ms));
      gap = Gap();
    }
    if (open_ && gap && rest_.empty()) return Fail("a timestamp, an exemplar or no blank");
    if (open_ && Take('#')) {
      RETURN_IF_ERROR(Exemplar(t_ms));
      series.exemplar_count = 1;
    }
    if (!rest_.empty()) return Fail("the end of the line");
    batch_.series.push_back(series);
    batch_.timestamps.push_back(t_ms);
    batch_.values.push_back(value);
    if (!batch_.start_timestamps.empty()) batch_.start_timestamps.push_back(0);
    return absl::OkStatus();
  }

  absl::Status Exemplar(int64_t sample_t_ms) {
    labels_.clear();
    model::Exemplar exemplar;
    exemplar.t_ms = sample_t_ms;
    if (!Take(' ') || !Take('{')) return Fail("an exemplar's labels in braces");
    RETURN_IF_ERROR(ReadLabels(nullptr));
    RETURN_IF_ERROR(SortLabels());
    if (!Take(' ')) return Fail("an exemplar's value");
    RETURN_IF_ERROR(Number("an exemplar's value", exemplar.value));
    if (Take(' ')) RETURN_IF_ERROR(Timestamp(exemplar.t_ms));
    model::LabelsBuilder builder;
    for (const model::LabelRef label : labels_) builder.Append(label.name, label.value);
    exemplar.labels = std::move(builder).Build();
    batch_.exemplars.push_back(std::move(exemplar));
    return absl::OkStatus();
  }

  const std::string_view page_;
  const TextOptions& options_;
  model::WriteBatch& batch_;
  Arena arena_;
  const bool open_;
  bool eof_ = false;
  size_t line_ = 0;
  std::string_view rest_;
  std::vector<model::LabelRef> labels_;
  std::deque<std::string> unescaped_;  // of this line
  base::StringMap<size_t> metadata_;   // metric to its place in batch_.metadata
};

}  // namespace

TextFormat TextFormatOf(std::string_view content_type) {
  const std::string media = base::AsciiLower(base::StrTrim(content_type.substr(0, content_type.find(';'))));
  return media == "application/openmetrics-text" ? TextFormat::kOpenMetrics : TextFormat::kPrometheus;
}

absl::Status DecodeText(std::string_view page, const TextOptions& options, model::WriteBatch& batch) {
  return Page(page, options, batch).Run();
}

}  // namespace varve::decode
