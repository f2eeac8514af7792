// The head against a map, with random operations from a printed seed.
#include <catch2/catch.hpp>

#include <cstring>
#include <set>

#include "storage/base/dice.h"
#include "tests/storage/head/world.h"

namespace varve::test {
namespace {

struct Value {
  uint64_t bits = 0;
  int64_t start = 0;
  double count = -1;  // of a histogram; -1: a float
  bool operator==(const Value&) const = default;
};
using Samples = std::map<int64_t, Value>;

struct NaiveSeries {
  Samples all;              // wherever they are: head or blocks
  std::set<int64_t> known;  // surely in the head
  int64_t newest = INT64_MIN;
  bool newest_is_histogram = false;
};

model::Histogram SmallHistogram(double count) {
  model::Histogram h;
  h.schema = 1;
  h.integer = true;
  h.count = count;
  h.sum = count * 2;
  h.positive_spans = {{0, 1}};
  h.positive_buckets = {count};
  return h;
}

Samples ToSamples(const model::SampleColumns& c) {
  Samples out;
  size_t h = 0;
  for (size_t i = 0; i < c.size(); ++i) {
    Value v;
    v.bits = std::bit_cast<uint64_t>(c.values[i]);
    if (h < c.histogram_at.size() && c.histogram_at[h] == i) v.count = c.histograms[h++]->count;
    if (!c.start_times.empty()) v.start = c.start_times[i];
    const bool fresh = out.emplace((*c.times)[i], v).second;
    REQUIRE(fresh);
  }
  return out;
}

class Machine {
 public:
  explicit Machine(uint64_t seed) : dice_(seed), world_(4096) {
    world_.limits.out_of_order_window_ms = 60'000;
    with_histograms_ = dice_.OneIn(2);
    with_starts_ = dice_.OneIn(2);
    with_cuts_ = !dice_.OneIn(3);
    late_one_in_ = 3 + dice_.Below(40);
    for (int i = 0; i < 30; ++i) {
      labels_.push_back(model::Labels::Of(
          {{"__name__", "m" + std::to_string(i % 4)}, {"i", std::to_string(i)}, {"target", std::to_string(i % 3)}}));
    }
    for (int64_t& t : target_time_) t = 100'000 + dice_.Between(0, 50);
  }

  void Run(int steps) {
    for (int i = 0; i < steps; ++i) {
      Step();
      if (dice_.OneIn(25)) Compare();
    }
    Compare();
    world_.Restart();
    Compare();
  }

 private:
  void Step() {
    switch (dice_.Below(60)) {
      case 0:
        return world_.TakeCheckpoint(1 + dice_.Below(20), [this] {
          if (dice_.OneIn(2)) AppendSome();
        });
      case 1:
        return world_.Restart();
      case 2:
        return with_cuts_ ? Cut() : AppendSome();
      case 3:
        return FailSome();
      case 4:
        return HoldSnapshot();
      case 5:
        return CheckHeld();
      case 6:
        return ForgetSome();
      default:
        return AppendSome();
    }
  }

  double RandomValue(size_t series) {
    if (dice_.OneIn(40)) return model::StaleNan();
    if (dice_.OneIn(60)) return -0.0;
    if (series % 3 == 0) return static_cast<double>(series);  // constant
    if (series % 3 == 1) return static_cast<double>(counter_++);
    return dice_.Unit() * 100;
  }

  // One request of one target's scrape, with everything that can be odd about it.
  void AppendSome() {
    Request request;
    model::WriteResult want;
    const auto target = dice_.Below(3);
    target_time_[target] += 1000 + (dice_.OneIn(5) ? dice_.Between(0, 3) : 0);
    std::vector<size_t> order;
    for (size_t i = target; i < labels_.size(); i += 3) {
      if (!dice_.OneIn(8)) order.push_back(i);
      if (dice_.OneIn(30)) order.push_back(i);  // twice
    }
    for (const size_t i : order) {
      int64_t t = target_time_[target];
      if (dice_.OneIn(late_one_in_)) t -= dice_.Between(1, 80'000);
      AddSample(request, want, i, t);
      if (dice_.OneIn(20)) AddSample(request, want, i, t + dice_.Between(-3, 3));
    }
    Check(world_.Append(request), want);
  }

  void AddSample(Request& request, model::WriteResult& want, size_t i, int64_t t) {
    NaiveSeries& naive = naive_[i];
    // Whether the head still has a sample that was cut is its own business.
    if (naive.all.contains(t) && !naive.known.contains(t)) return;
    const bool histogram = with_histograms_ && (i % 7 == 0 || dice_.OneIn(60));
    Value v;
    if (with_starts_ && i % 4 != 0) v.start = t - dice_.Between(0, 1);
    double f = RandomValue(i);
    if (histogram) {
      v.count = static_cast<double>(dice_.Below(4) * 10);
      v.bits = std::bit_cast<uint64_t>(v.count * 2);
    } else {
      v.bits = std::bit_cast<uint64_t>(f);
    }
    if (naive.known.contains(t) && dice_.OneIn(2)) {  // the very same again
      v = naive.all[t];
      if (v.count >= 0 && model::IsStaleNan(std::bit_cast<double>(v.bits))) v.count = -1;
      f = std::bit_cast<double>(v.bits);
    }
    request.Series(labels_[i]);
    const bool as_histogram = v.count >= 0;
    if (as_histogram)
      request.Hist(t, SmallHistogram(v.count), v.start);
    else
      request.Float(t, f, v.start);
    if (!as_histogram && model::IsStaleNan(f) && naive.newest_is_histogram) v.count = 0;

    if (t > naive.newest) {
      Store(naive, want, t, v);
      naive.newest = t;
      naive.newest_is_histogram = v.count >= 0;
    } else if (t < naive.newest && t < naive.newest - world_.limits.out_of_order_window_ms) {
      want.Reject(model::Reason::kTooOld, 1, "");
    } else if (naive.known.contains(t)) {
      Value stored = naive.all[t];
      stored.start = v.start;
      if (stored == v) {
        ++want.duplicates;
        ++(v.count >= 0 ? want.histograms_stored : want.samples_stored);
      } else {
        want.Reject(model::Reason::kDuplicateTimestamp, 1, "");
      }
    } else {
      Store(naive, want, t, v);
      ++want.out_of_order;
    }
  }

  static void Store(NaiveSeries& naive, model::WriteResult& want, int64_t t, Value v) {
    naive.all[t] = v;
    naive.known.insert(t);
    ++(v.count >= 0 ? want.histograms_stored : want.samples_stored);
  }

  static void Check(const model::WriteResult& got, const model::WriteResult& want) {
    REQUIRE(got.samples_stored == want.samples_stored);
    REQUIRE(got.histograms_stored == want.histograms_stored);
    REQUIRE(got.duplicates == want.duplicates);
    REQUIRE(got.out_of_order == want.out_of_order);
    for (size_t r = 0; r < got.rejections.size(); ++r) {
      REQUIRE(got.rejections[r].samples == want.rejections[r].samples);
    }
  }

  void FailSome() {
    Request request;
    for (int k = 0; k < 5; ++k) {
      const auto i = dice_.Below(labels_.size());
      const int64_t t = std::max<int64_t>(naive_[i].newest, 100'000) + 1 + k;
      request.Series(labels_[i]).Float(t, 1e9);
    }
    const uint64_t series = world_.head->active_series();
    world_.log_failures = 1;
    model::WriteResult result;
    REQUIRE(!world_.TryAppend(request, result).ok());
    REQUIRE(world_.log_failures == 0);
    REQUIRE(result.samples_stored == 0);
    REQUIRE(result.series_created == 0);
    REQUIRE(world_.head->active_series() == series);
  }

  void Cut() {
    size_t cursor = 0;
    while (world_.head->SealOlderThan(INT64_MAX, 7, &cursor)) {
    }
    const uint64_t below = world_.sealed->end();
    const auto cut = world_.head->StartCut(0, below);
    AppendSomeUnlessCutting();
    for (size_t k = 0; k < cut->size(); ++k) {
      model::SampleColumns columns;
      const absl::Status status = cut->Read(k, &columns);
      INFO(base::Message(status));
      REQUIRE(status.ok());
      for (const auto& [t, v] : ToSamples(columns)) blocks_[cut->labels(k).ToString()][t] = v;
    }
    world_.sealed->AdvanceFloor(below);
  }
  void AppendSomeUnlessCutting() {
    // What was sealed is no longer surely in the head; what comes now is.
    for (auto& [i, naive] : naive_) naive.known.clear();
    for (auto& [i, naive] : naive_) {
      if (naive.newest != INT64_MIN) naive.known.insert(naive.newest);
    }
    AppendSome();
  }

  void ForgetSome() {
    size_t cursor = 0;
    const auto idle = world_.head->CollectIdle(world_.now_ms, 3'600'000, 1000, &cursor);
    REQUIRE(cursor == 0);
    if (with_cuts_) Cut();
    const auto gone = world_.head->Forget(idle, world_.log);
    REQUIRE(gone.ok());
    if (*gone == 0) return;
    std::set<std::string> left;
    const std::string dump = Dump(*world_.Select());
    auto names = world_.head->active_series();
    // Series that the head says it has no more start anew.
    std::set<uint64_t> live;
    for (const auto& info : idle) live.insert(info.series_id);
    model::SelectRequest all;
    for (auto& [i, naive] : naive_) {
      all.matchers = {model::Matcher::Equal("i", std::to_string(i))};
      const auto values = world_.head->LabelValues("i", all);
      REQUIRE(values.ok());
      if (values->empty()) {
        naive.newest = INT64_MIN;
        naive.newest_is_histogram = false;
        naive.known.clear();
      }
    }
    REQUIRE(names > 0);
  }

  void HoldSnapshot() {
    held_ = world_.Select();
    held_dump_ = Dump(*world_.Select());
  }
  void CheckHeld() {
    if (held_ != nullptr) REQUIRE(Dump(*held_) == held_dump_);
    held_.reset();
  }

  void Compare() {
    const int64_t after = 100'000 + dice_.Between(-1000, 200'000);
    const model::TimeRange range =
        dice_.OneIn(2) ? model::TimeRange::All() : model::TimeRange{after, after + dice_.Between(0, 100'000)};
    const auto selection = world_.Select(range);
    std::map<std::string, Samples> got;
    for (const auto& [name, samples] : blocks_) {
      for (const auto& [t, v] : samples) {
        if (range.Contains(t)) got[name][t] = v;
      }
    }
    std::string last;
    for (size_t k = 0; k < selection->size(); ++k) {
      model::SampleColumns columns;
      const absl::Status status = selection->Read(k, &columns);
      INFO(base::Message(status));
      REQUIRE(status.ok());
      REQUIRE(columns.times != nullptr);
      REQUIRE(columns.values.size() == columns.times->size());
      for (const auto& [t, v] : ToSamples(columns)) got[selection->labels(k).ToString()][t] = v;
      if (k > 0) REQUIRE(selection->labels(k - 1) < selection->labels(k));
    }
    std::map<std::string, Samples> want;
    for (const auto& [i, naive] : naive_) {
      for (const auto& [t, v] : naive.all) {
        if (range.Contains(t)) want[labels_[i].ToString()][t] = v;
      }
    }
    std::erase_if(got, [](const auto& entry) { return entry.second.empty(); });
    REQUIRE(got.size() == want.size());
    for (const auto& [name, samples] : want) {
      INFO(name);
      const Samples& has = got[name];
      REQUIRE(has.size() == samples.size());
      for (const auto& [t, v] : samples) {
        INFO("t " << t);
        REQUIRE(has.contains(t));
        REQUIRE(has.at(t).bits == v.bits);
        REQUIRE(has.at(t).count == v.count);
        REQUIRE(has.at(t).start == v.start);
      }
    }
  }

  base::Dice dice_;
  World world_;
  std::vector<model::Labels> labels_;
  std::map<size_t, NaiveSeries> naive_;
  std::map<std::string, Samples> blocks_;
  int64_t target_time_[3];
  uint64_t counter_ = 1;
  bool with_histograms_, with_starts_, with_cuts_;
  uint64_t late_one_in_;
  std::unique_ptr<model::HashedSelection> held_;
  std::string held_dump_;
};

TEST_CASE("a head is a map", "[head][model]") {
  const auto seed = GENERATE(range(uint64_t{1}, uint64_t{11}));
  INFO("seed " << seed);
  CAPTURE(seed);
  Machine(seed).Run(600);
}

}  // namespace
}  // namespace varve::test
