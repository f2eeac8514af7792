#include "storage/head/exemplars.h"

#include "storage/model/sample.h"

namespace varve::head {

namespace {
size_t Bytes(const ExemplarRing::Item& item) { return sizeof item + item.exemplar.labels.bytes().size() + 24; }
}  // namespace

ExemplarRing::Verdict ExemplarRing::Judge(uint64_t series, const model::Exemplar& exemplar) const {
  const auto it = newest_.find(series);
  if (it == newest_.end()) return Verdict::kNew;
  const model::Exemplar& last = items_[it->second - dropped_].exemplar;
  if (exemplar.t_ms < last.t_ms) return Verdict::kOutOfOrder;
  if (exemplar.t_ms == last.t_ms && model::SameBits(exemplar.value, last.value) && exemplar.labels == last.labels) {
    return Verdict::kRepeated;
  }
  return Verdict::kNew;
}

void ExemplarRing::Add(uint64_t series, model::Exemplar exemplar, uint64_t max) {
  if (max == 0) return;
  items_.push_back({series, std::move(exemplar)});
  bytes_ += Bytes(items_.back());
  newest_[series] = dropped_ + items_.size() - 1;
  while (items_.size() > max) {
    const auto it = newest_.find(items_.front().series);
    if (it != newest_.end() && it->second == dropped_) newest_.erase(it);
    bytes_ -= Bytes(items_.front());
    items_.pop_front();
    ++dropped_;
  }
}

size_t LabelCharacters(model::LabelsView labels) {
  size_t n = 0;
  const auto add = [&n](std::string_view text) {
    for (const char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  };
  for (const model::LabelRef label : labels) {
    add(label.name);
    add(label.value);
  }
  return n;
}

}  // namespace varve::head
