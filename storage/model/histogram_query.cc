// Questions that PromQL puts to one histogram. Interpolation on a logarithmic scale is the one place that takes libm's
// word; nothing stored depends on it.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "storage/model/histogram_math.h"

namespace varve::model {

namespace {
using Which = BucketIterator::Which;
using Order = BucketIterator::Order;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The zero bucket is one-sided when there are buckets on one side only; a first custom bucket begins at 0, as
// observations that may be negative would have had a negative bound.
void Bias(const Histogram& h, Bucket& b) {
  if (UsesCustomBuckets(h.schema)) {
    if (b.lower == -kInf && b.upper > 0 && b.upper < kInf) b.lower = 0;
  } else if (b.lower < 0 && b.upper > 0) {
    if (h.negative_buckets.empty() && !h.positive_buckets.empty()) b.lower = 0;
    if (h.positive_buckets.empty() && !h.negative_buckets.empty()) b.upper = 0;
  }
}

bool IsLinear(const Histogram& h, const Bucket& b) {
  return UsesCustomBuckets(h.schema) || (b.lower <= 0 && b.upper >= 0);
}

// The share of the bucket's observations at or below v, which lies inside of it.
double ShareBelow(const Histogram& h, const Bucket& b, double v) {
  if (IsLinear(h, b)) {
    if (b.lower == -kInf) return 1;
    return (v - b.lower) / (b.upper - b.lower);
  }
  const double log_lower = std::log2(std::abs(b.lower)), log_upper = std::log2(std::abs(b.upper));
  const double log_v = std::log2(std::abs(v));
  if (v > 0) return (log_v - log_lower) / (log_upper - log_lower);
  return 1 - (log_v - log_upper) / (log_lower - log_upper);
}

// Where a bucket's observations are taken to be when only one number will do.
double Middle(const Histogram& h, const Bucket& b) {
  if (IsLinear(h, b)) return (b.lower + b.upper) / 2;
  const double product = b.lower * b.upper;  // may leave the range of doubles in the outermost buckets
  const double middle = std::isfinite(product) && product > 0x1p-1000
                            ? std::sqrt(product)
                            : std::sqrt(std::abs(b.lower)) * std::sqrt(std::abs(b.upper));
  return b.upper <= 0 ? -middle : middle;
}

enum class Keep { kBelow, kAbove };

struct Part {
  double count = 0, middle = 0;
};

// What of a bucket stays. `b` is biased already.
Part KeptPart(const Histogram& h, const Bucket& b, double cut, Keep keep) {
  const Part all{b.count, Middle(h, b)};
  const Part none{};
  const bool from_inf = b.lower == -kInf, to_inf = b.upper == kInf;
  if (std::isnan(cut)) return none;
  if (from_inf && to_inf) {
    const bool whole = keep == Keep::kBelow ? cut == kInf : cut == -kInf;
    return whole ? Part{b.count, 0} : none;
  }
  if (from_inf) {
    // No telling how far down they lie: what stays is put at the cut or at the bound.
    if (keep == Keep::kBelow) return cut == -kInf ? none : Part{b.count, std::min(cut, b.upper)};
    return cut == -kInf ? Part{b.count, b.upper} : none;
  }
  if (to_inf) {
    if (keep == Keep::kBelow) return cut == kInf ? Part{b.count, b.lower} : none;
    return cut == kInf ? none : Part{b.count, std::max(cut, b.lower)};
  }
  if (cut >= b.upper) return keep == Keep::kBelow ? all : none;
  if (cut <= b.lower) return keep == Keep::kBelow ? none : all;
  const double below = b.count * ShareBelow(h, b, cut);
  Bucket part = b;
  if (keep == Keep::kBelow) {
    part.upper = cut;
    part.count = below;
  } else {
    part.lower = cut;
    part.count = b.count - below;
  }
  // The zero bucket's parts keep their linear middle, also when they no longer touch zero.
  return {part.count, IsLinear(h, b) ? (part.lower + part.upper) / 2 : Middle(h, part)};
}

void Trim(Histogram& h, double cut, Keep keep) {
  double count = 0, sum = 0, rest = 0;
  bool changed = false;
  const Histogram before = h;
  const auto trim = [&](Bucket b, double& slot) {
    Bias(before, b);
    const Part part = KeptPart(before, b, cut, keep);
    changed |= part.count != b.count;
    slot = part.count;
    count += part.count;
    if (part.count == 0) return;
    const double x = part.count * part.middle, total = sum + x;
    if (std::isfinite(total)) rest += std::abs(sum) >= std::abs(x) ? (sum - total) + x : (x - total) + sum;
    sum = total;
  };
  size_t i = h.negative_buckets.size();
  for (BucketIterator it(before, Which::kNegative, Order::kReverse); it.Next();) {
    if (i > 0) trim(it.at(), h.negative_buckets[--i]);
  }
  if (h.zero_count != 0 && !UsesCustomBuckets(h.schema)) trim(ZeroBucket(before), h.zero_count);
  i = 0;
  for (BucketIterator it(before, Which::kPositive); it.Next();) {
    if (i < h.positive_buckets.size()) trim(it.at(), h.positive_buckets[i++]);
  }
  if (!changed) return;
  h.count = count;
  h.sum = sum + rest;
  h.integer = false;
  Compact(h);
}

// Go's %g: the shortest digits that read back, in exponent form below 1e-4 and from 1e6 on.
void AppendG(std::string& out, double v) {
  if (std::isnan(v)) {
    out += "NaN";
  } else if (std::isinf(v)) {
    out += v < 0 ? "-Inf" : "+Inf";
  } else {
    char buffer[64];
    const char* end = std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::scientific).ptr;
    std::string_view text(buffer, static_cast<size_t>(end - buffer));
    const size_t e = text.find('e');
    int exponent = 0;
    std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), end, exponent);
    if (v != 0 && (exponent < -4 || exponent >= 6)) {
      out += text;
      return;
    }
    end = std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::fixed).ptr;
    out.append(buffer, static_cast<size_t>(end - buffer));
  }
}

void AppendBucket(std::string& out, const Bucket& b) {
  out += ", ";
  out += b.lower_inclusive ? '[' : '(';
  AppendG(out, b.lower);
  out += ',';
  AppendG(out, b.upper);
  out += b.upper_inclusive ? ']' : ')';
  out += ':';
  AppendG(out, b.count);
}
}  // namespace

QuantileAnswer Quantile(double q, const Histogram& h) {
  if (q < 0) return {-kInf};
  if (q > 1) return {kInf};
  if (h.count == 0 || std::isnan(q)) return {kNan};
  // Observations of NaN are in the count and in no bucket; counted from the top they would shift every rank.
  const bool nans = std::isnan(h.sum);
  const bool upwards = nans || q < 0.5;
  double rank = (upwards ? q : 1 - q) * h.count;
  double count = 0;
  Bucket b;
  for (BucketIterator it(h, Which::kAll, upwards ? Order::kForward : Order::kReverse); it.Next();) {
    if (it.at().count == 0) continue;
    b = it.at();
    count += b.count;
    if (count >= rank) break;
  }
  count = std::min(count, h.count);
  if (nans && (count < rank || count == 0)) return {kNan, true, false};
  QuantileAnswer answer;
  answer.nan_skewed = nans;
  Bias(h, b);
  if (UsesCustomBuckets(h.schema)) {
    if (b.lower == -kInf) return answer.value = b.upper, answer;
    if (b.upper == kInf) return answer.value = b.lower, answer;
  }
  rank = upwards ? rank - (count - b.count) : count - rank;
  const double fraction = rank / b.count;
  if (IsLinear(h, b)) {
    answer.value = b.lower + (b.upper - b.lower) * fraction;
    return answer;
  }
  const double log_lower = std::log2(std::abs(b.lower)), log_upper = std::log2(std::abs(b.upper));
  answer.value = b.lower > 0 ? std::exp2(log_lower + (log_upper - log_lower) * fraction)
                             : -std::exp2(log_upper + (log_lower - log_upper) * (1 - fraction));
  return answer;
}

FractionAnswer Fraction(double lower, double upper, const Histogram& h) {
  if (h.count == 0 || std::isnan(lower) || std::isnan(upper)) return {kNan};
  FractionAnswer answer;
  answer.nan_excluded = std::isnan(h.sum);
  if (lower >= upper) return answer;
  double total = h.count;
  if (answer.nan_excluded) {
    total = 0;
    for (BucketIterator it(h, Which::kAll); it.Next();) total += it.at().count;
  }
  double rank = 0, lower_rank = 0, upper_rank = 0;
  bool lower_set = false, upper_set = false;
  for (BucketIterator it(h, Which::kAll); it.Next() && !(lower_set && upper_set);) {
    Bucket b = it.at();
    Bias(h, b);
    const auto settle = [&](double v, double& at, bool& set) {
      if (set) return;
      if (b.lower >= v) {
        at = rank;
        set = true;
      } else if (b.upper > v) {
        at = rank + b.count * ShareBelow(h, b, v);
        set = true;
      }
    };
    settle(lower, lower_rank, lower_set);
    settle(upper, upper_rank, upper_set);
    rank += b.count;
  }
  if (!lower_set || lower_rank > total) lower_rank = total;
  if (!upper_set || upper_rank > total) upper_rank = total;
  answer.value = (upper_rank - lower_rank) / h.count;
  return answer;
}

double Average(const Histogram& h) { return h.sum / h.count; }

double Variance(const Histogram& h) {
  const double mean = h.sum / h.count;
  double sum = 0, rest = 0;
  for (BucketIterator it(h, Which::kAll); it.Next();) {
    const Bucket& b = it.at();
    if (b.count == 0) continue;
    // The zero bucket counts as zero, whichever side has buckets.
    const bool zero = !UsesCustomBuckets(h.schema) && b.lower <= 0 && b.upper >= 0;
    const double delta = (zero ? 0 : Middle(h, b)) - mean;
    const double x = b.count * delta * delta, total = sum + x;
    if (std::isfinite(total)) rest += std::abs(sum) >= std::abs(x) ? (sum - total) + x : (x - total) + sum;
    sum = total;
  }
  return (sum + rest) / h.count;
}

void TrimAbove(Histogram& h, double cut) { Trim(h, cut, Keep::kBelow); }
void TrimBelow(Histogram& h, double cut) { Trim(h, cut, Keep::kAbove); }

std::string ToString(const Histogram& h) {
  std::string out = "{count:";
  AppendG(out, h.count);
  out += ", sum:";
  AppendG(out, h.sum);
  for (BucketIterator it(h, Which::kNegative, Order::kReverse); it.Next();) {
    if (it.at().count != 0) AppendBucket(out, it.at());
  }
  if (h.zero_count != 0) AppendBucket(out, ZeroBucket(h));
  for (BucketIterator it(h, Which::kPositive); it.Next();) {
    if (it.at().count != 0) AppendBucket(out, it.at());
  }
  out += '}';
  return out;
}

}  // namespace varve::model
