// What an operator does with two numbers, two histograms, or one of each.
#include <cmath>

#include "query/exec/binary.h"
#include "query/exec/histogram_ops.h"
#include "storage/base/strings.h"

namespace varve::exec {

using promql::BinaryOp;

double Calculate(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      return a / b;
    case BinaryOp::kMod:
      return std::fmod(a, b);
    case BinaryOp::kPow:
      return std::pow(a, b);
    case BinaryOp::kAtan2:
      return std::atan2(a, b);
    case BinaryOp::kEqual:
      return a == b ? 1 : 0;
    case BinaryOp::kNotEqual:
      return a != b ? 1 : 0;
    case BinaryOp::kLess:
      return a < b ? 1 : 0;
    case BinaryOp::kGreater:
      return a > b ? 1 : 0;
    case BinaryOp::kLessEqual:
      return a <= b ? 1 : 0;
    case BinaryOp::kGreaterEqual:
      return a >= b ? 1 : 0;
    default:
      return 0;
  }
}

bool DropsName(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMul:
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
    case BinaryOp::kPow:
    case BinaryOp::kAtan2:
      return true;
    default:
      return false;
  }
}

ElementResult ApplyElement(BinaryOp op, const Element& a, const Element& b, promql::PositionRange position,
                           Context& context) {
  ElementResult result;
  const auto incompatible = [&] {
    context.annotations().Info(
        base::StrCat("incompatible sample types encountered for binary operator \"", promql::ToString(op),
                     "\": ", a.histogram != nullptr ? "histogram" : "float", " ", promql::ToString(op), " ",
                     b.histogram != nullptr ? "histogram" : "float"),
        position);
    result.valid = false;
    return result;
  };
  if (a.histogram == nullptr && b.histogram == nullptr) {
    if (op == BinaryOp::kTrimUpper || op == BinaryOp::kTrimLower) return incompatible();
    if (promql::IsComparison(op)) {
      result.keep = Calculate(op, a.value, b.value) != 0;
      result.element.value = a.value;
    } else {
      result.element.value = Calculate(op, a.value, b.value);
    }
    return result;
  }
  if (a.histogram == nullptr) {
    if (op != BinaryOp::kMul) return incompatible();
    result.element.histogram = CompactHistogram(ScaleHistogram(b.histogram, a.value));
    return result;
  }
  if (b.histogram == nullptr) {
    switch (op) {
      case BinaryOp::kMul:
        result.element.histogram = CompactHistogram(ScaleHistogram(a.histogram, b.value));
        return result;
      case BinaryOp::kDiv:
        result.element.histogram = CompactHistogram(DivideHistogram(a.histogram, b.value));
        return result;
      case BinaryOp::kTrimUpper:
      case BinaryOp::kTrimLower:
        result.element.histogram = TrimHistogram(a.histogram, b.value, op == BinaryOp::kTrimUpper);
        return result;
      default:
        return incompatible();
    }
  }
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: {
      model::Combined notes;
      HistogramPtr h = op == BinaryOp::kAdd ? AddHistograms(a.histogram, b.histogram, notes)
                                            : SubHistograms(a.histogram, b.histogram, notes);
      if (h == nullptr) {
        context.annotations().Warn(
            base::StrCat("incompatible bucket layout encountered for binary operator ", promql::ToString(op)),
            position);
        result.valid = false;
        return result;
      }
      AnnotateCombined(notes, context, position, op == BinaryOp::kAdd ? "addition" : "subtraction");
      result.element.histogram = CompactHistogram(h);
      return result;
    }
    case BinaryOp::kEqual:
      result.keep = model::Equals(*a.histogram, *b.histogram);
      result.element.histogram = a.histogram;
      return result;
    case BinaryOp::kNotEqual:
      result.keep = !model::Equals(*a.histogram, *b.histogram);
      result.element.histogram = a.histogram;
      return result;
    default:
      return incompatible();
  }
}

}  // namespace varve::exec
