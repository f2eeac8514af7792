#include "ingest/decode/text_format.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "storage/base/strings.h"

namespace varve::decode {

namespace {

constexpr int64_t kNow = 1'700'000'000'000;

struct Parsed {
  model::WriteBatch batch;
  absl::Status status;

  std::string Line(size_t i) const {  // series value @ms
    const auto& s = batch.series.at(i);
    return base::StrCat(model::LabelsView(s.labels).ToString(), " ", batch.values.at(s.float_begin), " @",
                        batch.timestamps.at(s.float_begin));
  }
  const model::Metadata* Meta(std::string_view metric) const {
    for (const model::Metadata& m : batch.metadata) {
      if (m.metric == metric) return &m;
    }
    return nullptr;
  }
};
Parsed Parse(std::string_view page, TextFormat format = TextFormat::kPrometheus) {
  Parsed out;
  TextOptions options;
  options.format = format;
  options.now_ms = kNow;
  options.hash_seed = 3;
  out.status = DecodeText(page, options, out.batch);
  return out;
}
std::string ErrorOf(std::string_view page, TextFormat format = TextFormat::kPrometheus) {
  const Parsed parsed = Parse(page, format);
  return parsed.status.ok() ? "no error" : std::string(base::Message(parsed.status));
}

}  // namespace

TEST_CASE("a page in the text format", "[text]") {
  const Parsed page = Parse(
      "# HELP http_requests_total Requests\\nby \\\\code\\q.\n"
      "# TYPE http_requests_total counter\n"
      "http_requests_total{method=\"post\",code=\"200\"} 1027 1395066363000\n"
      "http_requests_total { code = \"400\" , method=\"post\", }   3\t-5  \n"
      "\n"
      "  # a comment\n"
      "#HELP also a comment? no: help without a blank\n"
      "bare 1.5e3\r\n"
      "escaped{path=\"C:\\\\DIR\\n\\\"x\\\" \\d\",empty=\"\"} +Inf\n"
      "{\"my.metric\",\"label.name\"=\"ü\"} NaN\n"
      "rpc_seconds{quantile=\"0.5\"} -0\n"
      "last 0x1\n");
  CHECK(std::string(base::Message(page.status)) == "line 12: expected a value, found \"0x1\"");

  const Parsed good = Parse(
      "# HELP http_requests_total Requests\\nby \\\\code\\q.\n"
      "# TYPE http_requests_total counter\n"
      "http_requests_total{method=\"post\",code=\"200\"} 1027 1395066363000\n"
      "http_requests_total { code = \"400\" , method=\"post\", }   3\t-5  \n"
      "\n"
      "  # a comment\n"
      "bare 1.5e3\r\n"
      "escaped{path=\"C:\\\\DIR\\n\\\"x\\\" \\d\",empty=\"\"} +Inf\n"
      "{\"my.metric\",\"label.name\"=\"ü\"} NaN\n"
      "rpc_seconds{quantile=\"0.5\"} -0");
  INFO(std::string(base::Message(good.status)));
  REQUIRE(good.status.ok());
  REQUIRE(good.batch.series.size() == 6);
  CHECK(good.Line(0) == "http_requests_total{code=\"200\", method=\"post\"} 1027 @1395066363000");
  CHECK(good.Line(1) == "http_requests_total{code=\"400\", method=\"post\"} 3 @-5");
  CHECK(good.Line(2) == base::StrCat("bare 1500 @", kNow));
  CHECK(model::LabelsView(good.batch.series[3].labels).Get("path") == "C:\\DIR\n\"x\" \\d");
  CHECK(model::LabelsView(good.batch.series[3].labels).count() == 2);
  CHECK(model::LabelsView(good.batch.series[4].labels).Get("label.name") == "ü");
  CHECK(model::LabelsView(good.batch.series[4].labels).MetricName() == "my.metric");
  CHECK(model::SameBits(good.batch.values[4], model::NormalNan()));
  CHECK(model::SameBits(good.batch.values[5], -0.0));
  CHECK(good.batch.series[0].hash == model::HashLabels(good.batch.series[0].labels, 3));
  REQUIRE(good.batch.metadata.size() == 1);
  CHECK(good.batch.metadata[0].help == "Requests\nby \\code\\q.");
  CHECK(good.batch.metadata[0].type == model::MetricType::kCounter);
}

TEST_CASE("an OpenMetrics page", "[text]") {
  const Parsed page = Parse(
      "# TYPE foo_seconds counter\n"
      "# UNIT foo_seconds seconds\n"
      "# HELP foo_seconds Say \\\"hi\\\".\n"
      "foo_seconds_total{a=\"1\"} 17.0 1520879607.789 # {trace_id=\"x\"} 0.67 1520879606\n"
      "foo_seconds_created{a=\"1\"} 1520430000.123\n"
      "# TYPE bar gaugehistogram\n"
      "bar_bucket{le=\"+Inf\"} 3 1.001 # {} 4\n"
      "bar_gcount 3\n"
      "# EOF\n",
      TextFormat::kOpenMetrics);
  INFO(std::string(base::Message(page.status)));
  REQUIRE(page.status.ok());
  REQUIRE(page.batch.series.size() == 4);
  CHECK(page.Line(0) == "foo_seconds_total{a=\"1\"} 17 @1520879607789");
  CHECK(page.Line(2) == "bar_bucket{le=\"+Inf\"} 3 @1001");
  REQUIRE(page.batch.exemplars.size() == 2);
  CHECK(page.batch.exemplars[0].labels == model::Labels::Of({{"trace_id", "x"}}));
  CHECK(page.batch.exemplars[0].value == 0.67);
  CHECK(page.batch.exemplars[0].t_ms == 1520879606000);
  CHECK(page.batch.exemplars[1].t_ms == 1001);
  CHECK(page.batch.series[0].exemplar_count == 1);
  CHECK(page.batch.series[1].exemplar_count == 0);
  CHECK(page.batch.series[2].exemplar_begin == 1);
  REQUIRE(page.Meta("foo_seconds") != nullptr);
  CHECK(page.Meta("foo_seconds")->unit == "seconds");
  CHECK(page.Meta("foo_seconds")->help == "Say \"hi\".");
  CHECK(page.Meta("bar")->type == model::MetricType::kGaugeHistogram);
}

TEST_CASE("errors in text name line and expectation", "[text]") {
  CHECK(ErrorOf("ok 1\nup{job=\"x\" 1\n") == "line 2: expected a comma or } after the label value, found \"1\"");
  CHECK(ErrorOf("up") == "line 1: expected a value, found the end of the line");
  CHECK(ErrorOf("up{} x") == "line 1: expected a value, found \"x\"");
  CHECK(ErrorOf("up 1 1.5") == "line 1: expected a timestamp in whole milliseconds, found \"1.5\"");
  CHECK(ErrorOf("up 1 2 3") == "line 1: expected the end of the line, found \"3\"");
  CHECK(ErrorOf("1up 1") == "line 1: expected a metric name, found \"1up 1\"");
  CHECK(ErrorOf("{a=\"1\"} 1").find("expected a metric name before or inside the braces") != std::string::npos);
  CHECK(ErrorOf("up{a=1} 1").find("expected the value of label a in double quotes, found \"1} 1\"") !=
        std::string::npos);
  CHECK(ErrorOf("up{a=\"1} 1").find("expected a double quote after the value of label a") != std::string::npos);
  CHECK(ErrorOf("up{a=\"1\\").find("expected a double quote") != std::string::npos);
  CHECK(ErrorOf("up{a=\"1\",a=\"2\"} 1") == "line 1: label name \"a\" occurs twice");
  CHECK(ErrorOf("up{__name__=\"x\"} 1") == "line 1: label name \"__name__\" occurs twice");
  CHECK(ErrorOf("up{a=\"\xFF\"} 1").find("expected valid UTF-8 in the value of label a") != std::string::npos);
  CHECK(ErrorOf("up{=\"x\"} 1").find("expected a label name or }") != std::string::npos);
  CHECK(ErrorOf("# TYPE up nonsense").find("expected counter, gauge, histogram, summary") != std::string::npos);
  CHECK(ErrorOf("# TYPE up").find("found the end of the line") != std::string::npos);
  CHECK(ErrorOf("# HELP 1").find("expected a metric name after HELP") != std::string::npos);
  CHECK(ErrorOf("up 0x1p3").find("expected a value") != std::string::npos);
  const TextFormat open = TextFormat::kOpenMetrics;
  CHECK(ErrorOf("up 1\n", open) == "line 2: expected # EOF, found the end of the page");
  CHECK(ErrorOf("# EOF\nup 1\n", open) == "line 2: expected nothing after # EOF, found \"up 1\"");
  CHECK(ErrorOf("\n# EOF\n", open).find("no empty lines") != std::string::npos);
  CHECK(ErrorOf("# hello\n# EOF\n", open).find("expected # HELP, # TYPE, # UNIT or # EOF") != std::string::npos);
  CHECK(ErrorOf("up  1\n# EOF\n", open).find("expected a value") != std::string::npos);
  CHECK(ErrorOf("up 1 NaN\n# EOF\n", open).find("expected a timestamp in seconds") != std::string::npos);
  CHECK(ErrorOf("up 1 \n# EOF\n", open).find("expected") != std::string::npos);
  CHECK(ErrorOf("# UNIT up seconds\n# EOF\n", open).find("expected a unit that is the last word") != std::string::npos);
  CHECK(ErrorOf("up 1 # 5\n# EOF\n", open).find("expected an exemplar's labels in braces") != std::string::npos);
}

TEST_CASE("content types choose the text format", "[text]") {
  CHECK(TextFormatOf("text/plain; version=0.0.4") == TextFormat::kPrometheus);
  CHECK(TextFormatOf("") == TextFormat::kPrometheus);
  CHECK(TextFormatOf("Application/OpenMetrics-Text; version=1.0.0; charset=utf-8") == TextFormat::kOpenMetrics);
}

TEST_CASE("real pages parse whole", "[text]") {
  const std::filesystem::path folder = "../shared/data";
  if (!std::filesystem::exists(folder)) {
    WARN("SKIPPED: no ../shared/data beside the tree");
    return;
  }
  size_t pages = 0;
  size_t samples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".prom") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const Parsed page = Parse(text);
    INFO(entry.path().string());
    INFO(std::string(base::Message(page.status)));
    REQUIRE(page.status.ok());
    size_t lines = 0;
    for (const std::string_view line : base::StrSplit(text, '\n')) lines += !line.empty() && line[0] != '#';
    CHECK(page.batch.series.size() == lines);
    ++pages;
    samples += lines;
  }
  CHECK(pages > 0);
  CHECK(samples > 1000);
}

}  // namespace varve::decode
