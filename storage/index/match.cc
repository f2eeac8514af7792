#include "storage/index/match.h"

#include <algorithm>

#include "storage/base/cancel.h"

namespace varve::index {

using model::Matcher;
using model::MatchType;

Bitmap Union::Take() {
  if (!loose_.empty()) {
    if (!std::is_sorted(loose_.begin(), loose_.end())) std::sort(loose_.begin(), loose_.end());
    bitmap_.addMany(loose_.size(), loose_.data());
    loose_.clear();
  }
  return std::move(bitmap_);
}

namespace {

constexpr size_t kCheckEvery = 1024;  // values or series between two looks at the cancel flag

absl::Status CheckCancel(const base::Cancel* cancel) { return cancel == nullptr ? absl::OkStatus() : cancel->Check(); }

// Numbers of the values that a matcher accepts, or, for a matcher that accepts the empty value, those that it refuses.
struct Values {
  std::vector<uint32_t> numbers;
  uint64_t count = 0;  // of series
};

struct Term {
  const Matcher* matcher;
  std::optional<uint32_t> name;
  bool subtract = false;  // the matcher accepts an absent label: series with a refused value are taken away
  bool known = false;     // `values` is filled
  Values values = {};
};

class Matching {
 public:
  Matching(const PostingsView& view, const base::Cancel* cancel) : view_(view), cancel_(cancel) {}

  absl::StatusOr<Bitmap> Run(std::span<const Matcher> matchers) {
    for (const Matcher& matcher : matchers) {
      if (matcher.value() == ".*") {  // matches everything or nothing, whatever the values
        if (matcher.type() == MatchType::kRegex) continue;
        if (matcher.type() == MatchType::kNotRegex) return Bitmap();
      }
      Term term{.matcher = &matcher, .name = view_.FindName(matcher.name()), .subtract = matcher.MatchesEmpty()};
      if (!term.name.has_value()) {
        if (term.subtract) continue;  // every series lacks the label
        return Bitmap();
      }
      RETURN_IF_ERROR(LookUp(term));
      if (term.known && !term.subtract && term.values.count == 0) return Bitmap();
      if (term.known && term.subtract && term.values.numbers.empty()) continue;
      terms_.push_back(std::move(term));
    }
    // Additive terms with known sizes, smallest first; then expressions over few values; what takes away comes last.
    std::stable_sort(terms_.begin(), terms_.end(), [&](const Term& a, const Term& b) { return Cost(a) < Cost(b); });
    bool begun = false;
    Bitmap left;
    for (Term& term : terms_) {
      RETURN_IF_ERROR(CheckCancel(cancel_));
      if (begun) {
        const uint64_t candidates = left.cardinality();
        if (candidates == 0) return left;
        if (IsCheaperBySeries(term, candidates)) {
          RETURN_IF_ERROR(FilterBySeries(term, left));
          continue;
        }
      } else if (term.subtract) {
        left = view_.All();
        begun = true;
      }
      if (!term.known) RETURN_IF_ERROR(Scan(term));
      Union postings;
      for (size_t i = 0; i < term.values.numbers.size(); ++i) {
        if (i % kCheckEvery == kCheckEvery - 1) RETURN_IF_ERROR(CheckCancel(cancel_));
        RETURN_IF_ERROR(view_.AddPostings(*term.name, term.values.numbers[i], postings));
      }
      if (term.subtract)
        left -= postings.Take();
      else if (begun)
        left &= postings.Take();
      else
        left = postings.Take();
      begun = true;
    }
    if (!begun) left = view_.All();
    return left;
  }

 private:
  // Fills the values of a matcher that names them itself.
  absl::Status LookUp(Term& term) const {
    const Matcher& matcher = *term.matcher;
    const bool one = matcher.type() == MatchType::kEqual || matcher.type() == MatchType::kNotEqual;
    const bool negative = matcher.type() == MatchType::kNotEqual || matcher.type() == MatchType::kNotRegex;
    const std::string single[1] = {matcher.value()};
    const std::span<const std::string> named = one ? std::span<const std::string>(single) : matcher.set_matches();
    // The named values are the accepted ones of a positive matcher and the refused ones of a negative matcher. They are
    // what the term needs when it adds accepted or takes away refused ones; the other way round takes a scan.
    if (named.empty() || negative != term.subtract) return absl::OkStatus();
    for (const std::string& value : named) {
      if (value.empty()) continue;
      ASSIGN_OR_RETURN(const std::optional<uint32_t> number, view_.FindValue(*term.name, value));
      if (number.has_value()) term.values.numbers.push_back(*number);
    }
    std::sort(term.values.numbers.begin(), term.values.numbers.end());
    term.values.numbers.erase(std::unique(term.values.numbers.begin(), term.values.numbers.end()),
                              term.values.numbers.end());
    for (const uint32_t number : term.values.numbers) term.values.count += view_.Count(*term.name, number);
    term.known = true;
    return absl::OkStatus();
  }

  absl::Status Scan(Term& term) const {
    const Matcher& matcher = *term.matcher;
    // Only accepted values begin with the prefix, and only of a positive matcher.
    const bool positive = matcher.type() == MatchType::kEqual || matcher.type() == MatchType::kRegex;
    const std::string_view prefix =
        positive && !term.subtract ? std::string_view(matcher.prefix()) : std::string_view();
    // Stored values are never empty, so that `!=""` and `=~".+"` accept them all unseen.
    const bool any = (matcher.type() == MatchType::kNotEqual && matcher.value().empty()) ||
                     (matcher.type() == MatchType::kRegex && matcher.value() == ".+");
    size_t seen = 0;
    const auto accept = [&](std::string_view value) -> absl::StatusOr<bool> {
      if (++seen % kCheckEvery == 0) RETURN_IF_ERROR(CheckCancel(cancel_));
      return any || matcher.Matches(value) != term.subtract;
    };
    RETURN_IF_ERROR(view_.ScanValues(*term.name, prefix, accept, term.values.numbers));
    for (const uint32_t number : term.values.numbers) term.values.count += view_.Count(*term.name, number);
    term.known = true;
    return absl::OkStatus();
  }

  // (class, size): see Run.
  std::pair<int, uint64_t> Cost(const Term& term) const {
    const int kind = term.subtract ? 2 : term.known ? 0 : 1;
    return {kind, term.known ? term.values.count : view_.value_count(*term.name)};
  }

  bool IsCheaperBySeries(const Term& term, uint64_t candidates) const {
    // A value is looked at or its postings are added once per value; a series costs about as much.
    const uint64_t values = term.known ? term.values.numbers.size() : view_.value_count(*term.name);
    return candidates * 4 < values;
  }

  absl::Status FilterBySeries(const Term& term, Bitmap& left) const {
    std::vector<uint32_t> series(left.cardinality());
    left.toUint32Array(series.data());
    std::string scratch;
    size_t kept = 0;
    for (size_t i = 0; i < series.size(); ++i) {
      if (i % kCheckEvery == kCheckEvery - 1) RETURN_IF_ERROR(CheckCancel(cancel_));
      ASSIGN_OR_RETURN(const std::string_view value, view_.ValueOf(series[i], *term.name, scratch));
      if (term.matcher->Matches(value)) series[kept++] = series[i];
    }
    left = Bitmap(kept, series.data());
    return absl::OkStatus();
  }

  const PostingsView& view_;
  const base::Cancel* const cancel_;
  std::vector<Term> terms_;
};

}  // namespace

absl::StatusOr<Bitmap> Match(const PostingsView& view, std::span<const Matcher> matchers, const base::Cancel* cancel) {
  RETURN_IF_ERROR(CheckCancel(cancel));
  return Matching(view, cancel).Run(matchers);
}

}  // namespace varve::index
