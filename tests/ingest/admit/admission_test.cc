#include "ingest/admit/admission.h"

#include <catch2/catch.hpp>

namespace varve::admit {

namespace {

using model::Labels;
using model::Reason;

struct Verdict {
  Reason reason = Reason::kCount;
  std::string example;
};
Verdict Ask(const model::Limits& limits, const Labels& labels, uint64_t active = 0) {
  model::WriteResult result;
  const bool admitted = Admission(limits).Admit(labels, active, 7, result);
  Verdict verdict;
  for (size_t i = 0; i < result.rejections.size(); ++i) {
    if (result.rejections[i].series == 0) continue;
    CHECK(result.rejections[i].samples == 7);
    verdict = {static_cast<Reason>(i), result.rejections[i].examples.at(0)};
  }
  CHECK(admitted == (verdict.reason == Reason::kCount));
  return verdict;
}

const model::Rejection& Of(const model::WriteResult& result, Reason reason) {
  return result.rejections[static_cast<size_t>(reason)];
}

}  // namespace

TEST_CASE("good label sets are admitted", "[admit]") {
  CHECK(Ask({}, Labels::Of({{"__name__", "up"}, {"job", "node"}})).reason == Reason::kCount);
  CHECK(Ask({}, Labels::Of({{"__name__", "температура.cpu"}, {"mit leerzeichen", "ü"}})).reason == Reason::kCount);
}

TEST_CASE("each refusal names series value limit and flag", "[admit]") {
  model::Limits limits;
  limits.label_names_per_series_max = 2;
  limits.label_name_bytes_max = 10;
  limits.label_value_bytes_max = 5;
  limits.series_max = 100;

  Verdict v = Ask(limits, Labels::Of({{"job", "node"}}));
  CHECK(v.reason == Reason::kMissingMetricName);
  CHECK(v.example == "series {job=\"node\"}: it has no metric name (label __name__)");
  CHECK(Ask(limits, Labels()).reason == Reason::kMissingMetricName);

  v = Ask(limits, Labels::Of({{"__name__", "up"}, {"a", "1"}, {"b", "2"}}));
  CHECK(v.reason == Reason::kTooManyLabels);
  CHECK(v.example ==
        "series up{a=\"1\", b=\"2\"}: it has 3 labels, limits.label-names-per-series-max is 2 (change it with "
        "--limits.label-names-per-series-max)");

  v = Ask(limits, Labels::Of({{"__name__", "up"}, {"elevenbytes", "1"}}));
  CHECK(v.reason == Reason::kLabelNameTooLong);
  CHECK(v.example.find("\"elevenbytes\" has 11 bytes, limits.label-name-bytes-max is 10") != std::string::npos);

  v = Ask(limits, Labels::Of({{"__name__", "up"}, {"job", "sixsix"}}));
  CHECK(v.reason == Reason::kLabelValueTooLong);
  CHECK(v.example.find("label \"job\" has 6 bytes, limits.label-value-bytes-max is 5") != std::string::npos);

  CHECK(Ask(limits, Labels::Of({{"__name__", "up"}}), 99).reason == Reason::kCount);
  v = Ask(limits, Labels::Of({{"__name__", "up"}}), 100);
  CHECK(v.reason == Reason::kSeriesLimit);
  CHECK(v.example ==
        "series up is new, and the tenant has 100 active series: limits.series-max is 100 (change it with "
        "--limits.series-max)");
}

TEST_CASE("bytes that are not UTF-8 are refused by kind", "[admit]") {
  CHECK(Ask({}, Labels::Of({{"__name__", "u\xFF"}})).reason == Reason::kInvalidMetricName);
  CHECK(Ask({}, Labels::Of({{"__name__", "up"}, {"j\xC0", "x"}})).reason == Reason::kInvalidLabelName);
  CHECK(Ask({}, Labels::Of({{"__name__", "up"}, {"job", "\xED\xA0\x80"}})).reason == Reason::kInvalidLabelValue);
}

TEST_CASE("texts about huge series stay short", "[admit]") {
  const Verdict v = Ask({}, Labels::Of({{"__name__", "up"}, {"job", std::string(1 << 20, 'x')}}));
  CHECK(v.reason == Reason::kLabelValueTooLong);
  CHECK(v.example.size() < 1000);
}

TEST_CASE("exemplars that may not be kept are taken out and the others stay", "[admit]") {
  model::WriteBatch batch;
  const Labels labels = Labels::Of({{"__name__", "up"}});
  model::WriteBatch::Series series;
  series.labels = labels.bytes();
  series.float_count = 2;
  batch.timestamps = {1000, 2000};
  batch.values = {1, 2};
  series.exemplar_count = 4;
  const std::string long_id(121, 'a');  // with "trace_id" one character too many
  batch.exemplars.push_back({Labels::Of({{"trace_id", long_id}}), 1, 5});
  batch.exemplars.push_back({Labels::Of({{"trace_id", "\xFF"}}), 2, 5});
  batch.exemplars.push_back({Labels::Of({{"trace_id", long_id.substr(1)}}), 3, 0});
  batch.exemplars.push_back({Labels::Of({{"trace_id", "b"}}), 4, 9});
  batch.series.push_back(series);
  model::WriteResult result;
  Screen(batch, {}, result);
  REQUIRE(batch.series[0].exemplar_count == 2);
  CHECK(batch.exemplars[0].value == 3);
  CHECK(batch.exemplars[0].t_ms == 2000);  // as the newest sample's
  CHECK(batch.exemplars[1].value == 4);
  CHECK(Of(result, Reason::kInvalidExemplar).series == 2);
  CHECK(Of(result, Reason::kInvalidExemplar).examples.at(0).find("129 characters, at most 128") != std::string::npos);

  model::Limits none;
  none.exemplars_max = 0;
  model::WriteResult silent;
  Screen(batch, none, silent);
  CHECK(batch.series[0].exemplar_count == 0);
  CHECK(silent.AllStored());
}

TEST_CASE("invalid histograms are taken out", "[admit]") {
  model::WriteBatch batch;
  const Labels labels = Labels::Of({{"__name__", "h"}});
  model::WriteBatch::Series series;
  series.labels = labels.bytes();
  series.histogram_count = 3;
  batch.histograms.resize(3);
  batch.histograms[0].histogram.count = -1;
  batch.histograms[1].t_ms = 11;
  batch.histograms[2].histogram.schema = 77;
  batch.series.push_back(series);
  model::WriteResult result;
  Screen(batch, {}, result);
  REQUIRE(batch.series[0].histogram_count == 1);
  CHECK(batch.histograms[0].t_ms == 11);
  CHECK(Of(result, Reason::kInvalidHistogram).samples == 2);
}

TEST_CASE("metadata is checked and cut at a character", "[admit]") {
  model::WriteBatch batch;
  batch.metadata.push_back({"", model::MetricType::kGauge, "no metric", ""});
  batch.metadata.push_back({"ok", model::MetricType::kGauge, std::string(kHelpBytesMax - 1, 'x') + "ü", "s"});
  batch.metadata.push_back({"bad", model::MetricType::kGauge, "\xFF", ""});
  batch.metadata.push_back({std::string(kMetricNameBytesMax + 1, 'm'), model::MetricType::kGauge, "", ""});
  model::WriteResult result;
  Screen(batch, {}, result);
  REQUIRE(batch.metadata.size() == 1);
  CHECK(batch.metadata[0].help == std::string(kHelpBytesMax - 1, 'x'));
  CHECK(Of(result, Reason::kInvalidMetadata).series == 3);
}

TEST_CASE("what the decoder left out is told", "[admit]") {
  model::WriteBatch batch;
  batch.refused.Reject(Reason::kNoSamples, 0, "series x");
  model::WriteResult result;
  Screen(batch, {}, result);
  CHECK(Of(result, Reason::kNoSamples).series == 1);
  CHECK(batch.refused.AllStored());
}

}  // namespace varve::admit
