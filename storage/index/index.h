#pragma once
// Which series has which labels, and which series have a label: dictionary, label lists and bitmap postings of one
// head.
//
// Lives on its shard's thread; no method is thread-safe. What other threads may do is read labels through a Pin: a pin
// keeps every label and list that existed when it was taken readable, unchanged and at its address until it is let go,
// even when the series are removed or the index is destroyed. Hand it over together with the lists (a mailbox or a
// shared_ptr published once is enough of a fence).
//
// A label (name and value together) is one entry, a `PairId`; a series is a list of them in name order. An entry
// without series vanishes from every listing at once; its memory is used again as soon as no older pin is alive.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/cancel.h"
#include "storage/base/status.h"
#include "storage/index/bitmap.h"
#include "storage/model/labels.h"
#include "storage/model/matcher.h"
#include "storage/model/series_source.h"

namespace varve::index {

using PairId = uint32_t;

// The labels of one series. 8 bytes; borrows from the index (see Pin).
class LabelList {
 public:
  LabelList() = default;
  explicit LabelList(const uint32_t* counted) : counted_(counted) {}
  bool absent() const { return counted_ == nullptr; }
  std::span<const PairId> pairs() const {
    return counted_ == nullptr ? std::span<const PairId>() : std::span<const PairId>(counted_ + 1, counted_[0]);
  }

 private:
  const uint32_t* counted_ = nullptr;  // the count, then as many ids
};

class Dictionary;  // dictionary.h

// See above. Any thread; cheap to copy and move.
class Pin {
 public:
  Pin() = default;
  // Canonical bytes (model/labels.h) of one label; those of a series are its labels' one after the other.
  std::string_view bytes(PairId pair) const;
  model::LabelRef label(PairId pair) const;
  std::string_view Get(LabelList list, std::string_view name) const;  // "" when absent
  void AppendTo(LabelList list, std::string& canonical) const;
  model::Labels Build(LabelList list) const;

 private:
  friend class Index;
  struct Hold;
  std::shared_ptr<const Hold> hold_;
  const Dictionary* dictionary_ = nullptr;
};

// Positions of `lists` in the order of their label sets. Compares numbers: only labels that differ are compared as
// text.
std::vector<uint32_t> SortByLabels(const Pin& pin, std::span<const LabelList> lists);

class Index {
 public:
  Index();
  ~Index();
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  // `slot` must be free (checked). Cheapest when slots ascend.
  void AddSeries(uint32_t slot, model::LabelsView labels);
  // In one sweep; costs little per series when called with many. Slots that are free are ignored.
  void RemoveSeries(std::span<const uint32_t> slots);

  uint64_t series_count() const;
  bool Has(uint32_t slot) const { return !ListOf(slot).absent(); }
  LabelList ListOf(uint32_t slot) const;  // absent when the slot is free
  model::Labels LabelsOf(uint32_t slot) const;
  std::string_view GetValue(uint32_t slot, std::string_view name) const;  // "" when absent
  Pin TakePin() const;

  // Slots of the series that match all; all series when there is no matcher. Cancelled or DeadlineExceeded.
  absl::StatusOr<Bitmap> Match(std::span<const model::Matcher> matchers, const base::Cancel* cancel) const;

  // Sorted; of the series in `among`, or of all when it is null.
  std::vector<std::string> LabelNames(const Bitmap* among = nullptr) const;
  std::vector<std::string> LabelValues(std::string_view name, const Bitmap* among = nullptr) const;
  uint64_t SeriesWith(std::string_view name, std::string_view value) const;

  // Sets series, label_pairs and the four lists, each cut at `limit`.
  void FillStats(size_t limit, model::SourceStats& stats) const;

  // --- Checkpoints: dump the labels and lists as they are, load them in bulk.
  // Ids run from 0 to pair_end(); those without series have empty bytes and need not be stored.
  PairId pair_end() const;
  std::string_view PairBytes(PairId pair) const;
  // One id per label in canonical bytes (checked: InvalidArgument). They are not listed
  // until a series has them; DropUnused, after the last BulkAdd, gives back the memory of those that never came to it.
  absl::StatusOr<std::vector<PairId>> InternPairs(std::span<const std::string_view> labels);
  // Many series at once: slots ascending and free; series i has pairs[i == 0 ? 0 : ends[i - 1] .. ends[i]), in name
  // order. InvalidArgument (and nothing added) when an id is unknown, a slot is taken or out of order, or ends do not
  // ascend.
  absl::Status BulkAdd(std::span<const uint32_t> slots, std::span<const uint32_t> ends, std::span<const PairId> pairs);
  void DropUnused();

  size_t BytesUsed() const;
  std::string DebugString() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace varve::index
