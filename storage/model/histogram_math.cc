// Shape and arithmetic. Buckets are taken out of their spans into lists of cells, worked on and put back; histograms of
// equal layout, which is nearly all of them, are added in place.
#include "storage/model/histogram_math.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "storage/base/check.h"

namespace varve::model {

namespace {

// A bucket and what rounding has lost of it so far.
struct Cell {
  int64_t index;
  double value;
  double rest = 0;
};
using Cells = std::vector<Cell>;

// Neumaier's step: sum += x, and rest collects what the addition lost.
void Accumulate(double x, double& sum, double& rest) {
  const double total = sum + x;
  if (std::isinf(total)) {
    rest = 0;
  } else if (std::abs(sum) >= std::abs(x)) {
    rest += (sum - total) + x;
  } else {
    rest += (x - total) + sum;
  }
  sum = total;
}

enum class Rounding { kPlain, kCompensated };

void AddTo(Rounding rounding, double x, double x_rest, double& sum, double& rest) {
  if (rounding == Rounding::kPlain) {
    sum += x;
  } else {
    Accumulate(x, sum, rest);
    rest += x_rest;
  }
}

Cells TakeOut(const std::vector<Span>& spans, const std::vector<double>& values, const std::vector<double>* rests) {
  Cells cells;
  cells.reserve(values.size());
  int64_t index = 0;
  size_t at = 0;
  for (const Span& span : spans) {
    index += span.offset;
    for (uint32_t i = 0; i < span.length && at < values.size(); ++i, ++index, ++at) {
      cells.push_back({index, values[at], rests == nullptr ? 0 : (*rests)[at]});
    }
  }
  return cells;
}

void PutBack(const Cells& cells, std::vector<Span>& spans, std::vector<double>& values, std::vector<double>* rests) {
  spans.clear();
  values.clear();
  if (rests != nullptr) rests->clear();
  int64_t next = 0;
  for (const Cell& cell : cells) {
    int64_t gap = cell.index - next;
    if (spans.empty() || gap != 0) {
      // A gap that an offset cannot hold takes spans of length 0.
      while (gap > std::numeric_limits<int32_t>::max()) {
        spans.push_back({std::numeric_limits<int32_t>::max(), 0});
        gap -= std::numeric_limits<int32_t>::max();
      }
      while (gap < std::numeric_limits<int32_t>::min()) {
        spans.push_back({std::numeric_limits<int32_t>::min(), 0});
        gap -= std::numeric_limits<int32_t>::min();
      }
      spans.push_back({static_cast<int32_t>(gap), 0});
    }
    ++spans.back().length;
    next = cell.index + 1;
    values.push_back(cell.value);
    if (rests != nullptr) rests->push_back(cell.rest);
  }
}

// The index of the bucket that holds bucket `index` when the schema falls by `levels`.
int64_t Coarser(int64_t index, int levels) { return ((index - 1) >> levels) + 1; }

void ReduceCells(Cells& cells, int levels, Rounding rounding) {
  if (levels == 0) return;
  size_t kept = 0;
  for (const Cell& cell : cells) {
    const int64_t index = Coarser(cell.index, levels);
    if (kept > 0 && cells[kept - 1].index == index) {
      AddTo(rounding, cell.value, cell.rest, cells[kept - 1].value, cells[kept - 1].rest);
    } else {
      cells[kept++] = {index, cell.value, cell.rest};
    }
  }
  cells.resize(kept);
}

Cells MergeCells(const Cells& a, const Cells& b, double sign, Rounding rounding) {
  Cells out;
  out.reserve(a.size() + b.size());
  size_t i = 0;
  for (const Cell& cell : b) {
    while (i < a.size() && a[i].index < cell.index) out.push_back(a[i++]);
    if (i < a.size() && a[i].index == cell.index) {
      Cell sum = a[i++];
      AddTo(rounding, sign * cell.value, sign * cell.rest, sum.value, sum.rest);
      out.push_back(sum);
    } else {
      out.push_back({cell.index, sign * cell.value, sign * cell.rest});
    }
  }
  out.insert(out.end(), a.begin() + static_cast<ptrdiff_t>(i), a.end());
  return out;
}

bool SameBounds(const std::vector<double>& a, const std::vector<double>& b) { return a == b; }

bool SameLayout(const Histogram& a, const Histogram& b) {
  return a.schema == b.schema && a.zero_threshold == b.zero_threshold && a.positive_spans == b.positive_spans &&
         a.negative_spans == b.negative_spans && a.positive_buckets.size() == b.positive_buckets.size() &&
         a.negative_buckets.size() == b.negative_buckets.size() && SameBounds(a.custom_values, b.custom_values);
}

// A histogram with its buckets taken out.
struct Open {
  int32_t schema;
  double zero_threshold, zero_count, zero_rest = 0;
  Cells positive, negative;

  explicit Open(const Histogram& h, const Histogram* rest = nullptr)
      : schema(h.schema),
        zero_threshold(h.zero_threshold),
        zero_count(h.zero_count),
        zero_rest(rest == nullptr ? 0 : rest->zero_count),
        positive(TakeOut(h.positive_spans, h.positive_buckets, rest == nullptr ? nullptr : &rest->positive_buckets)),
        negative(TakeOut(h.negative_spans, h.negative_buckets, rest == nullptr ? nullptr : &rest->negative_buckets)) {}

  double Outer(int64_t index) const { return UpperBound(index, schema, {}); }
  double Inner(int64_t index) const { return UpperBound(index - 1, schema, {}); }

  // The threshold at or above `threshold` that cuts no populated bucket.
  double FittingThreshold(double threshold) const {
    for (bool moved = true; moved;) {
      moved = false;
      for (const Cells* cells : {&positive, &negative}) {
        for (const Cell& cell : *cells) {
          if (Inner(cell.index) >= threshold) break;
          if (cell.value != 0 && Outer(cell.index) > threshold) {
            threshold = Outer(cell.index);
            moved = true;
            break;
          }
        }
      }
    }
    return threshold;
  }

  // Moves what lies below the threshold, which must fit, into the zero bucket.
  void Widen(double threshold, Rounding rounding) {
    zero_threshold = threshold;
    for (Cells* cells : {&positive, &negative}) {
      size_t gone = 0;
      for (const Cell& cell : *cells) {
        if (Inner(cell.index) >= threshold) break;
        AddTo(rounding, cell.value, cell.rest, zero_count, zero_rest);
        ++gone;
      }
      cells->erase(cells->begin(), cells->begin() + static_cast<ptrdiff_t>(gone));
    }
  }

  void Reduce(int32_t to, Rounding rounding) {
    ReduceCells(positive, schema - to, rounding);
    ReduceCells(negative, schema - to, rounding);
    schema = to;
  }

  void Close(Histogram& h, Histogram* rest) const {
    h.schema = schema;
    h.zero_threshold = zero_threshold;
    h.zero_count = zero_count;
    PutBack(positive, h.positive_spans, h.positive_buckets, rest == nullptr ? nullptr : &rest->positive_buckets);
    PutBack(negative, h.negative_spans, h.negative_buckets, rest == nullptr ? nullptr : &rest->negative_buckets);
    if (rest == nullptr) return;
    rest->schema = schema;
    rest->zero_threshold = zero_threshold;
    rest->zero_count = zero_rest;
    rest->positive_spans = h.positive_spans;
    rest->negative_spans = h.negative_spans;
  }
};

void ReconcileZero(Open& a, Open& b, Rounding rounding) {
  if (a.zero_threshold == b.zero_threshold) return;
  double threshold = std::max(a.zero_threshold, b.zero_threshold);
  while (true) {
    const double wider = a.FittingThreshold(b.FittingThreshold(threshold));
    if (wider == threshold) break;
    threshold = wider;
  }
  a.Widen(threshold, rounding);
  b.Widen(threshold, rounding);
}

std::vector<double> SharedBounds(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> shared;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(shared));
  return shared;
}

// Buckets of `bounds` summed into those of `coarser`, which has a part of the same bounds.
Cells ToBounds(const Cells& cells, const std::vector<double>& bounds, const std::vector<double>& coarser,
               Rounding rounding) {
  Cells out;
  for (const Cell& cell : cells) {
    const double upper = UpperBound(cell.index, kCustomBucketsSchema, bounds);
    const auto index = std::lower_bound(coarser.begin(), coarser.end(), upper) - coarser.begin();
    if (!out.empty() && out.back().index == index) {
      AddTo(rounding, cell.value, cell.rest, out.back().value, out.back().rest);
    } else {
      out.push_back({index, cell.value, cell.rest});
    }
  }
  return out;
}

// a += sign * b. `rest` is a's, or null.
Combined Combine(Histogram& a, Histogram* rest, const Histogram& b, double sign) {
  Combined result;
  if (UsesCustomBuckets(a.schema) != UsesCustomBuckets(b.schema)) {
    result.compatible = false;
    return result;
  }
  const Rounding rounding = rest == nullptr ? Rounding::kPlain : Rounding::kCompensated;
  double unused = 0;
  a.hint = CombineHints(a.hint, b.hint, &result.reset_conflict);
  a.integer = false;
  AddTo(rounding, sign * b.count, 0, a.count, rest == nullptr ? unused : rest->count);
  AddTo(rounding, sign * b.sum, 0, a.sum, rest == nullptr ? unused : rest->sum);
  if (SameLayout(a, b)) {
    AddTo(rounding, sign * b.zero_count, 0, a.zero_count, rest == nullptr ? unused : rest->zero_count);
    const auto add_all = [&](std::vector<double>& to, std::vector<double>* lost, const std::vector<double>& from) {
      if (lost == nullptr) {
        for (size_t i = 0; i < to.size(); ++i) to[i] += sign * from[i];
      } else {
        for (size_t i = 0; i < to.size(); ++i) Accumulate(sign * from[i], to[i], (*lost)[i]);
      }
    };
    add_all(a.positive_buckets, rest == nullptr ? nullptr : &rest->positive_buckets, b.positive_buckets);
    add_all(a.negative_buckets, rest == nullptr ? nullptr : &rest->negative_buckets, b.negative_buckets);
    return result;
  }
  Open left(a, rest), right(b);
  if (UsesCustomBuckets(a.schema)) {
    if (!SameBounds(a.custom_values, b.custom_values)) {
      result.bounds_reconciled = true;
      std::vector<double> shared = SharedBounds(a.custom_values, b.custom_values);
      left.positive = ToBounds(left.positive, a.custom_values, shared, rounding);
      right.positive = ToBounds(right.positive, b.custom_values, shared, rounding);
      if (rest != nullptr) rest->custom_values = shared;
      a.custom_values = std::move(shared);
    }
  } else {
    ReconcileZero(left, right, rounding);
    const int32_t schema = std::min(a.schema, b.schema);
    left.Reduce(schema, rounding);
    right.Reduce(schema, rounding);
  }
  AddTo(rounding, sign * right.zero_count, sign * right.zero_rest, left.zero_count, left.zero_rest);
  left.positive = MergeCells(left.positive, right.positive, sign, rounding);
  left.negative = MergeCells(left.negative, right.negative, sign, rounding);
  left.Close(a, rest);
  return result;
}

template <class H, class Visit>
void ForEachNumber(H& h, Visit visit) {
  visit(h.zero_count);
  visit(h.count);
  visit(h.sum);
  for (auto& v : h.positive_buckets) visit(v);
  for (auto& v : h.negative_buckets) visit(v);
}

void CompactSide(std::vector<Span>& spans, std::vector<double>& values, int empty_max) {
  Cells cells = TakeOut(spans, values, nullptr);
  Cells kept;
  for (const Cell& cell : cells) {
    if (cell.value == 0) continue;
    if (!kept.empty() && cell.index - kept.back().index - 1 <= empty_max) {
      for (int64_t i = kept.back().index + 1; i < cell.index; ++i) kept.push_back({i, 0});
    }
    kept.push_back(cell);
  }
  PutBack(kept, spans, values, nullptr);
}

bool SameCells(const std::vector<Span>& a_spans, const std::vector<double>& a_values, const std::vector<Span>& b_spans,
               const std::vector<double>& b_values) {
  const auto populated = [](const std::vector<Span>& spans, const std::vector<double>& values) {
    Cells cells = TakeOut(spans, values, nullptr);
    std::erase_if(cells, [](const Cell& cell) { return cell.value == 0; });
    return cells;
  };
  const Cells a = populated(a_spans, a_values), b = populated(b_spans, b_values);
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Cell& x, const Cell& y) { return x.index == y.index && SameBits(x.value, y.value); });
}

// Some bucket of `before` is larger than in `after`, or populated and missing.
bool Shrank(const Cells& before, const Cells& after) {
  size_t i = 0;
  for (const Cell& cell : before) {
    while (i < after.size() && after[i].index < cell.index) ++i;
    if (i < after.size() && after[i].index == cell.index) {
      if (after[i].value < cell.value) return true;
    } else if (cell.value != 0) {
      return true;
    }
  }
  return false;
}

// Near the end of the range of doubles a sum of two may overflow.
bool Large(const Histogram& h) {
  bool large = false;
  ForEachNumber(h, [&large](double v) { large |= !(std::abs(v) < 0x1p1021); });
  return large;
}
}  // namespace

void Compact(Histogram& h, int empty_max) {
  CompactSide(h.positive_spans, h.positive_buckets, empty_max);
  CompactSide(h.negative_spans, h.negative_buckets, empty_max);
}

void ReduceToSchema(Histogram& h, int32_t schema) {
  if (UsesCustomBuckets(h.schema) || schema == h.schema) return;
  VARVE_CHECK(schema < h.schema);
  Open open(h);
  open.Reduce(schema, Rounding::kPlain);
  open.Close(h, nullptr);
}

Histogram CopyToSchema(const Histogram& histogram, int32_t schema) {
  Histogram copy = histogram;
  ReduceToSchema(copy, schema);
  return copy;
}

bool ReduceToLimit(Histogram& h, size_t buckets_max) {
  const auto fits = [&] { return h.positive_buckets.size() + h.negative_buckets.size() <= buckets_max; };
  if (!UsesCustomBuckets(h.schema)) {
    while (!fits() && h.schema > kExponentialSchemaMin) ReduceToSchema(h, h.schema - 1);
  }
  return fits();
}

bool Equals(const Histogram& a, const Histogram& b) {
  if (a.schema != b.schema || !SameBits(a.count, b.count) || !SameBits(a.sum, b.sum)) return false;
  if (UsesCustomBuckets(a.schema)) {
    if (!SameBounds(a.custom_values, b.custom_values)) return false;
  } else if (a.zero_threshold != b.zero_threshold || !SameBits(a.zero_count, b.zero_count)) {
    return false;
  }
  return SameCells(a.positive_spans, a.positive_buckets, b.positive_spans, b.positive_buckets) &&
         SameCells(a.negative_spans, a.negative_buckets, b.negative_spans, b.negative_buckets);
}

bool HasOverflow(const Histogram& h) {
  bool overflow = false;
  ForEachNumber(h, [&overflow](double v) { overflow |= std::isinf(v); });
  return overflow;
}

ResetHint CombineHints(ResetHint a, ResetHint b, bool* conflict) {
  if (a == b) return a;
  if (a == ResetHint::kGauge || b == ResetHint::kGauge) return ResetHint::kGauge;
  if (a != ResetHint::kUnknown && b != ResetHint::kUnknown && conflict != nullptr) *conflict = true;
  return ResetHint::kUnknown;
}

Combined Add(Histogram& a, const Histogram& b) { return Combine(a, nullptr, b, 1); }

Combined Subtract(Histogram& a, const Histogram& b) {
  const Combined result = Combine(a, nullptr, b, -1);
  if (result.compatible) a.hint = ResetHint::kGauge;
  return result;
}

void Multiply(Histogram& h, double factor) {
  ForEachNumber(h, [factor](double& v) { v *= factor; });
  h.integer = false;
  if (factor < 0) h.hint = ResetHint::kGauge;
}

void Divide(Histogram& h, double divisor) {
  ForEachNumber(h, [divisor](double& v) { v /= divisor; });
  h.integer = false;
  if (divisor < 0) h.hint = ResetHint::kGauge;
  if (divisor != 0) return;
  h.positive_spans.clear();
  h.negative_spans.clear();
  h.positive_buckets.clear();
  h.negative_buckets.clear();
}

Combined HistogramSum::Add(const Histogram& histogram) {
  if (count_ == 0) {
    sum_ = histogram;
    sum_.integer = false;
    rest_ = histogram;
    ForEachNumber(rest_, [](double& v) { v = 0; });
    count_ = 1;
    return {};
  }
  const Combined result = Combine(sum_, &rest_, histogram, 1);
  if (result.compatible) ++count_;
  return result;
}

Histogram HistogramSum::Total() const {
  Histogram total = sum_;
  total.count += rest_.count;
  total.sum += rest_.sum;
  total.zero_count += rest_.zero_count;
  for (size_t i = 0; i < total.positive_buckets.size(); ++i) total.positive_buckets[i] += rest_.positive_buckets[i];
  for (size_t i = 0; i < total.negative_buckets.size(); ++i) total.negative_buckets[i] += rest_.negative_buckets[i];
  return total;
}

Combined HistogramMean::Add(const Histogram& histogram) {
  if (!running_) {
    if (sum_.empty() || (!Large(sum_.sum_) && !Large(histogram))) return sum_.Add(histogram);
    HistogramSum tried = sum_;
    const Combined result = tried.Add(histogram);
    if (!result.compatible) return result;
    if (!HasOverflow(tried.sum_)) {
      sum_ = std::move(tried);
      return result;
    }
    running_ = true;
    Divide(sum_.sum_, static_cast<double>(sum_.count_));
    Divide(sum_.rest_, static_cast<double>(sum_.count_));
  }
  if (UsesCustomBuckets(histogram.schema) != UsesCustomBuckets(sum_.sum_.schema)) {
    Combined result;
    result.compatible = false;
    return result;
  }
  const double count = static_cast<double>(sum_.count_ + 1), share = (count - 1) / count;
  Multiply(sum_.sum_, share);
  Multiply(sum_.rest_, share);
  Histogram part = histogram;
  Divide(part, count);
  return sum_.Add(part);
}

Histogram HistogramMean::Mean() const {
  if (running_) return sum_.Total();
  HistogramSum mean = sum_;
  Divide(mean.sum_, static_cast<double>(sum_.count_));
  Divide(mean.rest_, static_cast<double>(sum_.count_));
  return mean.Total();
}

bool DetectReset(const Histogram& previous, const Histogram& next) {
  if (next.hint == ResetHint::kReset) return true;
  if (next.hint == ResetHint::kNotReset) return false;
  if (next.count < previous.count) return true;
  const bool custom = UsesCustomBuckets(next.schema);
  if (custom != UsesCustomBuckets(previous.schema)) return true;
  if (SameLayout(previous, next)) {  // nearly always
    const auto fell = [](const std::vector<double>& before, const std::vector<double>& after) {
      bool any = false;
      for (size_t i = 0; i < before.size(); ++i) any |= after[i] < before[i];
      return any;
    };
    return (!custom && next.zero_count < previous.zero_count) ||
           fell(previous.positive_buckets, next.positive_buckets) ||
           fell(previous.negative_buckets, next.negative_buckets);
  }
  Open before(previous), after(next);
  if (custom) {
    if (!SameBounds(previous.custom_values, next.custom_values)) {
      const std::vector<double> shared = SharedBounds(previous.custom_values, next.custom_values);
      before.positive = ToBounds(before.positive, previous.custom_values, shared, Rounding::kPlain);
      after.positive = ToBounds(after.positive, next.custom_values, shared, Rounding::kPlain);
    }
    return Shrank(before.positive, after.positive);
  }
  if (next.schema > previous.schema || next.zero_threshold < previous.zero_threshold) return true;
  if (next.zero_threshold > previous.zero_threshold) {
    if (before.FittingThreshold(next.zero_threshold) != next.zero_threshold) return true;
    before.Widen(next.zero_threshold, Rounding::kPlain);
  }
  if (next.zero_count < before.zero_count) return true;
  before.Reduce(next.schema, Rounding::kPlain);
  return Shrank(before.positive, after.positive) || Shrank(before.negative, after.negative);
}

}  // namespace varve::model
