#include "storage/index/dictionary.h"

#include <cstring>

namespace varve::index {

Dictionary::~Dictionary() {
  for (PairId pair = 0; pair < pair_end_; ++pair) {
    const PairEntry& entry = pairs_[pair];
    if (entry.size > kTextClassMax * 8) std::free(const_cast<char*>(entry.bytes));
  }
}

char* Dictionary::NewText(size_t size) {
  const size_t units = (size + 7) / 8;
  if (units > kTextClassMax) {
    large_text_bytes_ += size;
    auto* text = static_cast<char*>(std::malloc(size));
    VARVE_CHECK(text != nullptr);
    return text;
  }
  if (char* text = free_texts_[units]; text != nullptr) {
    std::memcpy(&free_texts_[units], text, sizeof(char*));
    return text;
  }
  if (text_used_ + units * 8 > kTextChunkBytes) {
    text_chunks_.push_back(std::make_unique_for_overwrite<char[]>(kTextChunkBytes));
    text_used_ = 0;
  }
  char* text = text_chunks_.back().get() + text_used_;
  text_used_ += units * 8;
  return text;
}

void Dictionary::FreeText(const char* text, size_t size) {
  const size_t units = (size + 7) / 8;
  auto* memory = const_cast<char*>(text);
  if (units > kTextClassMax) {
    large_text_bytes_ -= size;
    std::free(memory);
    return;
  }
  std::memcpy(memory, &free_texts_[units], sizeof(char*));
  free_texts_[units] = memory;
}

PairId Dictionary::NewPair(std::string_view canonical, uint32_t name) {
  VARVE_CHECK(!canonical.empty() && canonical.size() < UINT32_MAX);
  PairId pair;
  if (!free_pairs_.empty()) {
    pair = free_pairs_.back();
    free_pairs_.pop_back();
  } else {
    VARVE_CHECK(pair_end_ < UINT32_MAX - 1);
    pair = pair_end_++;
    pairs_.Reach(pair);
  }
  char* text = NewText(canonical.size());
  std::memcpy(text, canonical.data(), canonical.size());
  pairs_[pair] = {text, static_cast<uint32_t>(canonical.size()), name};
  return pair;
}

void Dictionary::FreePair(PairId pair) {
  PairEntry& entry = pairs_[pair];
  FreeText(entry.bytes, entry.size);
  entry = {nullptr, 0, 0};
  free_pairs_.push_back(pair);
}

uint32_t Dictionary::NewList(std::span<const PairId> pairs) {
  VARVE_CHECK(pairs.size() <= UINT16_MAX);
  const auto words = static_cast<uint32_t>(pairs.size()) + 1;
  uint32_t at;
  if (words < free_lists_.size() && !free_lists_[words].empty()) {
    at = free_lists_[words].back();
    free_lists_[words].pop_back();
  } else {
    if (list_used_ + words > kListChunkWords) {
      VARVE_CHECK(lists_.size() < (size_t{1} << (32 - kListChunkBits)));
      lists_.push_back(std::make_unique_for_overwrite<uint32_t[]>(kListChunkWords));
      list_used_ = lists_.size() == 1 ? 1 : 0;  // position 0 stands for no list
    }
    at = static_cast<uint32_t>((lists_.size() - 1) << kListChunkBits) + list_used_;
    list_used_ += words;
  }
  uint32_t* words_out = lists_[at >> kListChunkBits].get() + (at & (kListChunkWords - 1));
  words_out[0] = words - 1;
  std::copy(pairs.begin(), pairs.end(), words_out + 1);
  return at;
}

void Dictionary::FreeList(uint32_t at) {
  const uint32_t words = *list(at) + 1;
  if (words >= free_lists_.size()) free_lists_.resize(words + 1);
  free_lists_[words].push_back(at);
}

size_t Dictionary::BytesUsed() const {
  size_t bytes = pairs_.bytes() + text_chunks_.size() * kTextChunkBytes + large_text_bytes_ +
                 lists_.size() * kListChunkWords * sizeof(uint32_t) + free_pairs_.capacity() * sizeof(PairId);
  for (const auto& lists : free_lists_) bytes += lists.capacity() * sizeof(uint32_t);
  return bytes;
}

std::string_view Pin::bytes(PairId pair) const { return dictionary_->bytes(pair); }
model::LabelRef Pin::label(PairId pair) const { return dictionary_->label(pair); }

std::string_view Pin::Get(LabelList list, std::string_view name) const {
  for (const PairId pair : list.pairs()) {
    const model::LabelRef label = dictionary_->label(pair);
    if (label.name == name) return label.value;
  }
  return {};
}

void Pin::AppendTo(LabelList list, std::string& canonical) const {
  for (const PairId pair : list.pairs()) canonical.append(dictionary_->bytes(pair));
}

model::Labels Pin::Build(LabelList list) const {
  std::string canonical;
  AppendTo(list, canonical);
  return model::Labels(model::LabelsView(canonical));
}

}  // namespace varve::index
