#include "ingest/admit/admission.h"

#include <algorithm>

#include "storage/base/strings.h"

namespace varve::admit {

namespace {

using base::StrCat;
using model::Reason;

// Enough to recognise a series by; some label sets are megabytes.
std::string Shown(std::string text) {
  constexpr size_t kShown = 400;
  if (text.size() > kShown) {
    size_t cut = kShown;
    while (cut > 0 && (static_cast<uint8_t>(text[cut]) & 0xC0) == 0x80) --cut;
    text.resize(cut);
    text += "...";
  }
  return text;
}

std::string OverLimit(std::string_view limit, uint64_t value) {
  return StrCat("limits.", limit, " is ", value, " (change it with --limits.", limit, ")");
}

size_t Characters(std::string_view utf8) {
  return static_cast<size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

void CutTo(std::string& text, size_t bytes_max) {
  if (text.size() <= bytes_max) return;
  size_t cut = bytes_max;
  while (cut > 0 && (static_cast<uint8_t>(text[cut]) & 0xC0) == 0x80) --cut;
  text.resize(cut);
}

std::string JudgeExemplar(const model::Exemplar& exemplar) {
  size_t characters = 0;
  for (const model::LabelRef label : exemplar.labels) {
    if (!base::IsValidUtf8(label.name) || !base::IsValidUtf8(label.value)) return "labels are not valid UTF-8";
    characters += Characters(label.name) + Characters(label.value);
  }
  if (characters > kExemplarLabelCharactersMax) {
    return StrCat("labels have ", characters, " characters, at most ", kExemplarLabelCharactersMax, " are allowed");
  }
  if (exemplar.t_ms == 0) return "it has no timestamp, and its series no sample to take one from";
  return {};
}

std::string JudgeMetadata(const model::Metadata& metadata) {
  if (metadata.metric.empty()) return "it names no metric";
  if (metadata.metric.size() > kMetricNameBytesMax) {
    return StrCat("the metric's name has ", metadata.metric.size(), " bytes, at most ", kMetricNameBytesMax,
                  " are allowed");
  }
  for (const std::string* text : {&metadata.metric, &metadata.help, &metadata.unit}) {
    if (!base::IsValidUtf8(*text)) return "it is not valid UTF-8";
  }
  return {};
}

std::string SeriesText(std::string_view wire) {
  const auto labels = model::Labels::FromWire(wire);
  return labels.ok() ? Shown(labels->ToString()) : "with invalid labels";
}

// A series without a timestamp of its own for an exemplar gives it that of its newest sample.
int64_t NewestTime(const model::WriteBatch& batch, const model::WriteBatch::Series& series) {
  int64_t newest = 0;
  for (uint32_t i = 0; i < series.float_count; ++i) newest = std::max(newest, batch.timestamps[series.float_begin + i]);
  for (uint32_t i = 0; i < series.histogram_count; ++i) {
    newest = std::max(newest, batch.histograms[series.histogram_begin + i].t_ms);
  }
  return newest;
}

void ScreenHistograms(model::WriteBatch& batch, model::WriteBatch::Series& series, model::WriteResult& result) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < series.histogram_count; ++i) {
    model::HistogramSample& sample = batch.histograms[series.histogram_begin + i];
    if (const absl::Status status = model::Validate(sample.histogram); !status.ok()) {
      result.Reject(Reason::kInvalidHistogram, 1,
                    StrCat("series ", SeriesText(series.labels), " at ", sample.t_ms, ": ", base::Message(status)));
      continue;
    }
    if (kept != i) std::swap(batch.histograms[series.histogram_begin + kept], sample);
    ++kept;
  }
  series.histogram_count = kept;
}

void ScreenExemplars(model::WriteBatch& batch, model::WriteBatch::Series& series, model::WriteResult& result) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < series.exemplar_count; ++i) {
    model::Exemplar& exemplar = batch.exemplars[series.exemplar_begin + i];
    if (exemplar.t_ms == 0) exemplar.t_ms = NewestTime(batch, series);
    if (const std::string why = JudgeExemplar(exemplar); !why.empty()) {
      result.Reject(
          Reason::kInvalidExemplar, 0,
          StrCat("exemplar ", Shown(exemplar.labels.ToString()), " of series ", SeriesText(series.labels), ": ", why));
      continue;
    }
    if (kept != i) std::swap(batch.exemplars[series.exemplar_begin + kept], exemplar);
    ++kept;
  }
  series.exemplar_count = kept;
}

}  // namespace

Reason JudgeLabels(model::LabelsView labels, const model::Limits& limits, std::string* why) {
  const auto refuse = [&](Reason reason, std::string_view what) {
    *why = StrCat("series ", Shown(labels.ToString()), ": ", what);
    return reason;
  };
  size_t count = 0;
  bool named = false;
  for (const model::LabelRef label : labels) {
    ++count;
    const bool is_name = label.name == model::kMetricName;
    named = named || is_name;
    if (!base::IsValidUtf8(label.name)) {
      return refuse(Reason::kInvalidLabelName,
                    StrCat("label name ", Shown(base::QuoteGo(label.name)), " is not valid UTF-8"));
    }
    if (!base::IsValidUtf8(label.value)) {
      if (is_name) {
        return refuse(Reason::kInvalidMetricName,
                      StrCat("metric name ", Shown(base::QuoteGo(label.value)), " is not valid UTF-8"));
      }
      return refuse(Reason::kInvalidLabelValue, StrCat("the value of label ", base::QuoteGo(label.name), ", ",
                                                       Shown(base::QuoteGo(label.value)), ", is not valid UTF-8"));
    }
    if (label.name.size() > limits.label_name_bytes_max) {
      return refuse(Reason::kLabelNameTooLong,
                    StrCat("label name ", Shown(base::QuoteGo(label.name)), " has ", label.name.size(), " bytes, ",
                           OverLimit("label-name-bytes-max", limits.label_name_bytes_max)));
    }
    if (label.value.size() > limits.label_value_bytes_max) {
      return refuse(Reason::kLabelValueTooLong,
                    StrCat("the value of label ", base::QuoteGo(label.name), " has ", label.value.size(), " bytes, ",
                           OverLimit("label-value-bytes-max", limits.label_value_bytes_max)));
    }
  }
  if (!named) return refuse(Reason::kMissingMetricName, "it has no metric name (label __name__)");
  if (count > limits.label_names_per_series_max) {
    return refuse(Reason::kTooManyLabels,
                  StrCat("it has ", count, " labels, ",
                         OverLimit("label-names-per-series-max", limits.label_names_per_series_max)));
  }
  return Reason::kCount;
}

bool Admission::Admit(model::LabelsView labels, uint64_t active_series, uint64_t samples, model::WriteResult& result) {
  std::string why;
  Reason reason = JudgeLabels(labels, limits_, &why);
  if (reason == Reason::kCount && limits_.series_max != 0 && active_series >= limits_.series_max) {
    reason = Reason::kSeriesLimit;
    why = StrCat("series ", Shown(labels.ToString()), " is new, and the tenant has ", active_series,
                 " active series: ", OverLimit("series-max", limits_.series_max));
  }
  if (reason == Reason::kCount) return true;
  result.Reject(reason, samples, why);
  return false;
}

void Screen(model::WriteBatch& batch, const model::Limits& limits, model::WriteResult& result) {
  result.MergeFrom(batch.refused);
  batch.refused = model::WriteResult();
  const bool plain = batch.histograms.empty() && batch.exemplars.empty();  // nearly always
  for (size_t i = 0; !plain && i < batch.series.size(); ++i) {
    model::WriteBatch::Series& series = batch.series[i];
    if (series.histogram_count > 0) ScreenHistograms(batch, series, result);
    if (series.exemplar_count > 0) {
      if (limits.exemplars_max == 0)
        series.exemplar_count = 0;
      else
        ScreenExemplars(batch, series, result);
    }
  }
  std::erase_if(batch.metadata, [&result](model::Metadata& metadata) {
    if (const std::string why = JudgeMetadata(metadata); !why.empty()) {
      result.Reject(Reason::kInvalidMetadata, 0,
                    StrCat("metadata of metric ", Shown(base::QuoteGo(metadata.metric)), ": ", why));
      return true;
    }
    CutTo(metadata.help, kHelpBytesMax);
    CutTo(metadata.unit, kUnitBytesMax);
    return false;
  });
}

}  // namespace varve::admit
