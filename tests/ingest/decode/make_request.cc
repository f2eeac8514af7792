#include "tests/ingest/decode/make_request.h"

#include <google/protobuf/descriptor.h>

#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "proto/prom_write_v1.pb.h"
#include "proto/prom_write_v2.pb.h"
#include "storage/base/bytes.h"
#include "storage/base/strings.h"

namespace varve::decode {

namespace {

namespace v2 = io::prometheus::write::v2;
using google::protobuf::FieldDescriptor;

std::string RandomWord(base::Dice& dice, size_t most) {
  static constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_0123456789";
  std::string out;
  for (size_t n = 1 + dice.Below(most); n > 0; --n) out += kLetters[dice.Below(dice.OneIn(2) ? 26 : kLetters.size())];
  return out;
}

double RandomValue(base::Dice& dice) {
  switch (dice.Below(8)) {
    case 0:
      return 0;
    case 1:
      return model::StaleNan();
    case 2:
      return model::NormalNan();
    case 3:
      return -0.0;
    case 4:
      return std::bit_cast<double>(dice.Next());
    default:
      return static_cast<double>(dice.Between(-1000000, 1000000)) / 100;
  }
}
int64_t RandomTime(base::Dice& dice) {
  return dice.OneIn(10) ? static_cast<int64_t>(dice.Next()) : 1'700'000'000'000 + dice.Between(0, 1'000'000);
}

template <class Histogram>
void FillHistogram(base::Dice& dice, Histogram& h) {
  const bool custom = dice.OneIn(3);
  h.set_schema(custom ? -53 : static_cast<int>(dice.Between(-4, 8)));
  h.set_sum(RandomValue(dice));
  h.set_zero_threshold(dice.OneIn(2) ? 0.001 : 0);
  h.set_timestamp(RandomTime(dice));
  h.set_reset_hint(static_cast<decltype(h.reset_hint())>(dice.Below(4)));
  const bool integer = dice.OneIn(2);
  if (integer && !dice.OneIn(5)) h.set_count_int(dice.Below(1000));
  if (!integer) h.set_count_float(RandomValue(dice));
  if (dice.OneIn(2)) {
    if (integer)
      h.set_zero_count_int(dice.Below(100));
    else
      h.set_zero_count_float(RandomValue(dice));
  }
  for (uint64_t n = dice.Below(4); n > 0; --n) {
    auto* span = h.add_positive_spans();
    span->set_offset(static_cast<int>(dice.Between(-5, 5)));
    span->set_length(static_cast<uint32_t>(dice.Below(5)));
  }
  for (uint64_t n = dice.Below(3); n > 0; --n)
    h.add_negative_spans()->set_offset(static_cast<int>(dice.Between(-5, 5)));
  for (uint64_t n = dice.Below(10); n > 0; --n) {
    if (integer)
      h.add_positive_deltas(dice.Between(-100, 100));
    else
      h.add_positive_counts(RandomValue(dice));
  }
  for (uint64_t n = dice.Below(5); n > 0; --n) {
    if (integer)
      h.add_negative_deltas(dice.Between(-100, 100));
    else
      h.add_negative_counts(RandomValue(dice));
  }
  if (custom) {
    for (uint64_t n = dice.Below(6); n > 0; --n) h.add_custom_values(RandomValue(dice));
  }
}

void PutTag(std::string& out, int number, uint32_t type) {
  base::PutVarint(out, static_cast<uint64_t>(number) << 3 | type);
}

// The value of one element, and its wire type.
uint32_t PutElement(base::Dice& dice, std::string& out, const google::protobuf::Message& m, const FieldDescriptor* f,
                    int i) {
  const auto* r = m.GetReflection();
  const bool many = f->is_repeated();
  switch (f->type()) {
    case FieldDescriptor::TYPE_STRING: {
      base::PutBytes(out, many ? r->GetRepeatedString(m, f, i) : r->GetString(m, f));
      return 2;
    }
    case FieldDescriptor::TYPE_MESSAGE: {
      base::PutBytes(out, Shuffled(dice, many ? r->GetRepeatedMessage(m, f, i) : r->GetMessage(m, f)));
      return 2;
    }
    case FieldDescriptor::TYPE_DOUBLE:
      base::PutFixed(out, many ? r->GetRepeatedDouble(m, f, i) : r->GetDouble(m, f));
      return 1;
    case FieldDescriptor::TYPE_INT64:
      base::PutVarint(out, static_cast<uint64_t>(many ? r->GetRepeatedInt64(m, f, i) : r->GetInt64(m, f)));
      return 0;
    case FieldDescriptor::TYPE_UINT64:
      base::PutVarint(out, many ? r->GetRepeatedUInt64(m, f, i) : r->GetUInt64(m, f));
      return 0;
    case FieldDescriptor::TYPE_UINT32:
      base::PutVarint(out, many ? r->GetRepeatedUInt32(m, f, i) : r->GetUInt32(m, f));
      return 0;
    case FieldDescriptor::TYPE_SINT32:
      base::PutSigned(out, many ? r->GetRepeatedInt32(m, f, i) : r->GetInt32(m, f));
      return 0;
    case FieldDescriptor::TYPE_SINT64:
      base::PutSigned(out, many ? r->GetRepeatedInt64(m, f, i) : r->GetInt64(m, f));
      return 0;
    case FieldDescriptor::TYPE_ENUM:
      base::PutVarint(out, static_cast<uint64_t>(r->GetEnumValue(m, f)));
      return 0;
    default:
      std::abort();
  }
}

constexpr int kNoGroups = 3;  // the depth below which there are none

void PutUnknown(base::Dice& dice, std::string& out, int depth) {
  const int number = 100 + static_cast<int>(dice.Below(100000));
  switch (dice.Below(depth < kNoGroups ? 5 : 4)) {
    case 0:
      PutTag(out, number, 0), base::PutVarint(out, dice.Next() >> dice.Below(64));
      break;
    case 1:
      PutTag(out, number, 1), base::PutFixed(out, dice.Next());
      break;
    case 2:
      PutTag(out, number, 2), base::PutBytes(out, RandomWord(dice, 20));
      break;
    case 3:
      PutTag(out, number, 5), base::PutFixed(out, static_cast<uint32_t>(dice.Next()));
      break;
    default:
      PutTag(out, number, 3);
      for (uint64_t n = dice.Below(3); n > 0; --n) PutUnknown(dice, out, depth + 1);
      PutTag(out, number, 4);
  }
}

template <class Proto>
model::HistogramSample Convert(const Proto& h) {
  model::HistogramSample out;
  out.t_ms = h.timestamp();
  model::Histogram& m = out.histogram;
  m.integer = h.count_case() != Proto::kCountFloat;
  m.hint = h.reset_hint() >= 0 && h.reset_hint() <= 3 ? static_cast<model::ResetHint>(h.reset_hint())
                                                      : model::ResetHint::kUnknown;
  m.schema = h.schema();
  m.zero_threshold = h.zero_threshold();
  m.sum = h.sum();
  const auto wide = [](uint64_t n) {
    return n > uint64_t{1} << 53 ? std::max(static_cast<double>(n), 0x1p53 + 2) : static_cast<double>(n);
  };
  m.count = m.integer ? wide(h.count_int()) : h.count_float();
  m.zero_count = m.integer ? wide(h.zero_count_int()) : h.zero_count_float();
  for (const auto& span : h.positive_spans()) m.positive_spans.push_back({span.offset(), span.length()});
  for (const auto& span : h.negative_spans()) m.negative_spans.push_back({span.offset(), span.length()});
  const auto absolute = [&wide](const auto& deltas, std::vector<double>& to) {
    __extension__ using Wide = __int128;
    Wide sum = 0;
    bool bad = false;
    for (const int64_t delta : deltas) {
      if (!bad) sum += delta;
      bad = bad || sum > std::numeric_limits<int64_t>::max() || sum < std::numeric_limits<int64_t>::min();
      to.push_back(bad       ? std::numeric_limits<double>::quiet_NaN()
                   : sum < 0 ? static_cast<double>(static_cast<int64_t>(sum))
                             : wide(static_cast<uint64_t>(sum)));
    }
  };
  if (m.integer) {
    absolute(h.positive_deltas(), m.positive_buckets);
    absolute(h.negative_deltas(), m.negative_buckets);
  } else {
    m.positive_buckets.assign(h.positive_counts().begin(), h.positive_counts().end());
    m.negative_buckets.assign(h.negative_counts().begin(), h.negative_counts().end());
  }
  m.custom_values.assign(h.custom_values().begin(), h.custom_values().end());
  return out;
}

std::optional<std::string> Canonical(std::vector<model::Label> labels) {
  std::set<std::string> names;
  for (const model::Label& label : labels) {
    if (label.name.empty() || !names.insert(label.name).second) return std::nullopt;
  }
  return std::string(model::Labels::FromPairs(std::move(labels)).bytes());
}

std::vector<model::Label> Pairs(const google::protobuf::RepeatedPtrField<prometheus::Label>& labels) {
  std::vector<model::Label> out;
  for (const auto& label : labels) out.push_back({label.name(), label.value()});
  return out;
}
std::optional<std::vector<model::Label>> Pairs(const google::protobuf::RepeatedField<uint32_t>& refs,
                                               const v2::Request& request) {
  std::vector<model::Label> out;
  if (refs.size() % 2 != 0) return std::nullopt;
  for (int i = 0; i < refs.size(); i += 2) {
    const auto size = static_cast<uint32_t>(request.symbols_size());
    if (refs[i] >= size || refs[i + 1] >= size) return std::nullopt;
    out.push_back({request.symbols(static_cast<int>(refs[i])), request.symbols(static_cast<int>(refs[i + 1]))});
  }
  return out;
}
std::optional<std::string> Canonical(std::optional<std::vector<model::Label>> labels) {
  if (!labels.has_value()) return std::nullopt;
  return Canonical(*std::move(labels));
}
model::Labels FromBytes(const std::string& canonical) { return model::Labels(model::LabelsView(canonical)); }

std::vector<std::string> LabelWords(base::Dice& dice) {
  std::vector<std::string> words;
  for (uint64_t n = dice.Below(8); n > 0; --n) {
    words.push_back(words.empty() && !dice.OneIn(10) ? "__name__" : RandomWord(dice, dice.OneIn(5) ? 2 : 12));
    words.push_back(dice.OneIn(10) ? "" : RandomWord(dice, dice.OneIn(20) ? 300 : 20));
  }
  return words;
}

}  // namespace

std::string Shuffled(base::Dice& dice, const google::protobuf::Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  std::vector<std::vector<std::string>> pieces;
  for (const FieldDescriptor* f : fields) {
    std::vector<std::string>& of_field = pieces.emplace_back();
    const int n = f->is_repeated() ? message.GetReflection()->FieldSize(message, f) : 1;
    const bool packed = f->is_packable() && dice.OneIn(2);
    std::string together;
    for (int i = 0; i < n; ++i) {
      std::string element;
      const uint32_t type = PutElement(dice, element, message, f, i);
      if (packed) {
        together += element;
      } else {
        PutTag(of_field.emplace_back(), f->number(), type);
        of_field.back() += element;
      }
    }
    if (packed) {
      PutTag(of_field.emplace_back(), f->number(), 2);
      base::PutBytes(of_field.back(), together);
    }
  }
  std::string out;
  const bool mixed = dice.OneIn(2);
  std::vector<size_t> next(pieces.size(), 0);
  std::vector<size_t> open;
  for (size_t i = 0; i < pieces.size(); ++i) open.push_back(i);
  while (!open.empty()) {
    // Labels::FromWire knows no groups: nothing has sent any since proto2.
    const bool label = message.GetDescriptor()->full_name() == "prometheus.Label";
    if (dice.OneIn(20)) PutUnknown(dice, out, label ? kNoGroups : 0);
    const size_t at = mixed ? dice.Below(open.size()) : 0;
    const size_t field = open[at];
    out += pieces[field][next[field]++];
    if (next[field] == pieces[field].size()) open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return out;
}

prometheus::WriteRequest RandomV1(base::Dice& dice) {
  prometheus::WriteRequest request;
  for (uint64_t n = dice.Below(6); n > 0; --n) {
    auto* series = request.add_timeseries();
    const std::vector<std::string> words = LabelWords(dice);
    for (size_t i = 0; i < words.size(); i += 2) {
      auto* label = series->add_labels();
      label->set_name(words[i]);
      label->set_value(words[i + 1]);
    }
    for (uint64_t k = dice.Below(4); k > 0; --k) {
      auto* sample = series->add_samples();
      sample->set_value(RandomValue(dice));
      sample->set_timestamp(RandomTime(dice));
    }
    if (dice.OneIn(4)) {
      for (uint64_t k = dice.Below(3); k > 0; --k) FillHistogram(dice, *series->add_histograms());
    }
    if (dice.OneIn(4)) {
      auto* exemplar = series->add_exemplars();
      for (uint64_t k = dice.Below(3); k > 0; --k) {
        auto* label = exemplar->add_labels();
        label->set_name(RandomWord(dice, 2));
        label->set_value(RandomWord(dice, 20));
      }
      exemplar->set_value(RandomValue(dice));
      exemplar->set_timestamp(RandomTime(dice));
    }
  }
  for (uint64_t n = dice.Below(3); n > 0; --n) {
    auto* metadata = request.add_metadata();
    metadata->set_type(static_cast<prometheus::MetricMetadata::MetricType>(dice.Below(10)));
    metadata->set_metric_family_name(RandomWord(dice, 20));
    metadata->set_help(RandomWord(dice, 200));
    if (dice.OneIn(2)) metadata->set_unit(RandomWord(dice, 9));
  }
  return request;
}

v2::Request RandomV2(base::Dice& dice) {
  v2::Request request;
  base::StringMap<uint32_t> refs;
  const auto ref = [&](const std::string& word) {
    if (dice.OneIn(300)) return static_cast<uint32_t>(dice.Below(1000));  // perhaps out of bounds
    const auto [it, added] = refs.emplace(word, request.symbols_size());
    if (added) request.add_symbols(word);
    return it->second;
  };
  refs.emplace("", 0);
  request.add_symbols("");
  std::vector<std::string> words;
  for (uint64_t n = dice.Below(8); n > 0; --n) {
    auto* series = request.add_timeseries();
    if (words.empty() || dice.OneIn(2))
      words = LabelWords(dice);
    else if (!words.empty())
      words.back() = RandomWord(dice, 20);
    for (const std::string& word : words) series->add_labels_refs(ref(word));
    if (dice.OneIn(50)) series->add_labels_refs(0);
    for (uint64_t k = dice.Below(4); k > 0; --k) {
      auto* sample = series->add_samples();
      sample->set_value(RandomValue(dice));
      sample->set_timestamp(RandomTime(dice));
      if (dice.OneIn(20)) sample->set_start_timestamp(RandomTime(dice));
    }
    if (dice.OneIn(4)) {
      for (uint64_t k = dice.Below(3); k > 0; --k) {
        auto* histogram = series->add_histograms();
        FillHistogram(dice, *histogram);
        if (dice.OneIn(3)) histogram->set_start_timestamp(RandomTime(dice));
      }
    }
    if (dice.OneIn(4)) {
      auto* exemplar = series->add_exemplars();
      exemplar->add_labels_refs(ref("trace_id"));
      exemplar->add_labels_refs(ref(RandomWord(dice, 16)));
      exemplar->set_value(RandomValue(dice));
      exemplar->set_timestamp(RandomTime(dice));
    }
    if (dice.OneIn(2)) {
      series->mutable_metadata()->set_type(static_cast<v2::Metadata::MetricType>(dice.Below(8)));
      if (dice.OneIn(2)) series->mutable_metadata()->set_help_ref(ref(RandomWord(dice, 1)));
      if (dice.OneIn(4)) series->mutable_metadata()->set_unit_ref(ref(RandomWord(dice, 1)));
    }
  }
  return request;
}

Expected Expect(const prometheus::WriteRequest& request) {
  Expected out;
  for (const auto& series : request.timeseries()) {
    Expected::Series s;
    s.labels = Canonical(Pairs(series.labels())).value_or("!");
    for (const auto& sample : series.samples()) {
      s.times.push_back(sample.timestamp());
      s.values.push_back(sample.value());
    }
    for (const auto& histogram : series.histograms()) s.histograms.push_back(Convert(histogram));
    for (const auto& exemplar : series.exemplars()) {
      if (const auto labels = Canonical(Pairs(exemplar.labels()))) {
        s.exemplars.push_back({FromBytes(*labels), exemplar.value(), exemplar.timestamp()});
      }
    }
    if (!s.times.empty() || !s.histograms.empty() || !s.exemplars.empty()) out.series.push_back(std::move(s));
  }
  for (const auto& m : request.metadata()) {
    const bool known = m.type() >= 0 && m.type() <= 7;
    out.metadata.push_back({m.metric_family_name(),
                            known ? static_cast<model::MetricType>(m.type()) : model::MetricType::kUnknown, m.help(),
                            m.unit()});
  }
  return out;
}

Expected Expect(const v2::Request& request) {
  Expected out;
  std::optional<std::tuple<int, uint32_t, uint32_t>> last;
  for (const auto& series : request.timeseries()) {
    Expected::Series s;
    const auto canonical = Canonical(Pairs(series.labels_refs(), request));
    if (!canonical.has_value() || series.samples_size() + series.histograms_size() == 0) continue;
    s.labels = *canonical;
    for (const auto& sample : series.samples()) {
      s.times.push_back(sample.timestamp());
      s.values.push_back(sample.value());
      s.starts.push_back(sample.start_timestamp());
    }
    for (const auto& histogram : series.histograms()) {
      s.histograms.push_back(Convert(histogram));
      s.histograms.back().start_ms = histogram.start_timestamp();
    }
    for (const auto& exemplar : series.exemplars()) {
      if (const auto labels = Canonical(Pairs(exemplar.labels_refs(), request)); labels && labels->size() <= 4096) {
        s.exemplars.push_back({FromBytes(*labels), exemplar.value(), exemplar.timestamp()});
      }
    }
    const auto& m = series.metadata();
    const std::tuple<int, uint32_t, uint32_t> refs{m.type(), m.help_ref(), m.unit_ref()};
    if (refs != std::tuple<int, uint32_t, uint32_t>{}) {
      std::string family(model::LabelsView(s.labels).MetricName());
      const auto cut = [&](const std::string& suffix) {
        if (family.size() <= suffix.size() || !family.ends_with(suffix)) return false;
        family.resize(family.size() - suffix.size());
        return true;
      };
      if (m.type() == 3) (void)(cut("_bucket") || cut("_sum") || cut("_count"));
      if (m.type() == 4) (void)(cut("_bucket") || cut("_gsum") || cut("_gcount"));
      if (m.type() == 5) (void)(cut("_sum") || cut("_count"));
      const auto size = static_cast<uint32_t>(request.symbols_size());
      const bool repeated = last == refs && !out.metadata.empty() && out.metadata.back().metric == family;
      if (!repeated && m.help_ref() < size && m.unit_ref() < size) {
        const bool known = m.type() >= 0 && m.type() <= 7;
        out.metadata.push_back({family, known ? static_cast<model::MetricType>(m.type()) : model::MetricType::kUnknown,
                                request.symbols(static_cast<int>(m.help_ref())),
                                request.symbols(static_cast<int>(m.unit_ref()))});
        last = refs;
      }
    }
    out.series.push_back(std::move(s));
  }
  return out;
}

Expected Describe(const model::WriteBatch& batch) {
  Expected out;
  for (const auto& series : batch.series) {
    Expected::Series s;
    const auto labels = model::Labels::FromWire(series.labels);
    s.labels = labels.ok() ? std::string(labels->bytes()) : "!";
    for (uint32_t i = series.float_begin; i < series.float_begin + series.float_count; ++i) {
      s.times.push_back(batch.timestamps.at(i));
      s.values.push_back(batch.values.at(i));
      if (!batch.start_timestamps.empty()) s.starts.push_back(batch.start_timestamps.at(i));
    }
    for (uint32_t i = 0; i < series.histogram_count; ++i)
      s.histograms.push_back(batch.histograms.at(series.histogram_begin + i));
    for (uint32_t i = 0; i < series.exemplar_count; ++i)
      s.exemplars.push_back(batch.exemplars.at(series.exemplar_begin + i));
    out.series.push_back(std::move(s));
  }
  out.metadata = batch.metadata;
  return out;
}

std::string Difference(const Expected& want, const Expected& got) {
  using base::StrCat;
  if (want.series.size() != got.series.size())
    return StrCat("want ", want.series.size(), " series, got ", got.series.size());
  const auto nan_or_same = [](const std::vector<double>& a, const std::vector<double>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!model::SameBits(a[i], b[i])) return false;
    }
    return true;
  };
  for (size_t i = 0; i < want.series.size(); ++i) {
    const auto& a = want.series[i];
    const auto& b = got.series[i];
    if (a.labels != b.labels) return StrCat("labels of series ", i);
    if (a.times != b.times || !nan_or_same(a.values, b.values)) return StrCat("samples of series ", i);
    std::vector<int64_t> starts_a = a.starts, starts_b = b.starts;
    starts_a.resize(a.times.size()), starts_b.resize(a.times.size());
    if (starts_a != starts_b) return StrCat("start timestamps of series ", i);
    if (a.histograms.size() != b.histograms.size()) return StrCat("number of histograms of series ", i);
    for (size_t k = 0; k < a.histograms.size(); ++k) {
      if (a.histograms[k].t_ms != b.histograms[k].t_ms || a.histograms[k].start_ms != b.histograms[k].start_ms ||
          !model::Identical(a.histograms[k].histogram, b.histograms[k].histogram)) {
        return StrCat("histogram ", k, " of series ", i);
      }
    }
    if (a.exemplars.size() != b.exemplars.size()) return StrCat("number of exemplars of series ", i);
    for (size_t k = 0; k < a.exemplars.size(); ++k) {
      if (a.exemplars[k].labels != b.exemplars[k].labels || a.exemplars[k].t_ms != b.exemplars[k].t_ms ||
          !model::SameBits(a.exemplars[k].value, b.exemplars[k].value)) {
        return StrCat("exemplar ", k, " of series ", i);
      }
    }
  }
  if (want.metadata.size() != got.metadata.size()) {
    return StrCat("want ", want.metadata.size(), " metadata entries, got ", got.metadata.size());
  }
  for (size_t i = 0; i < want.metadata.size(); ++i) {
    const auto& a = want.metadata[i];
    const auto& b = got.metadata[i];
    if (a.metric != b.metric || a.type != b.type || a.help != b.help || a.unit != b.unit)
      return StrCat("metadata entry ", i);
  }
  return "";
}

}  // namespace varve::decode
