#pragma once
// Doubles as Go's strconv.FormatFloat(v, format, -1, 64) writes them: the shortest digits that read back as the same
// number, laid out as the format says. Prometheus' texts are made of these.
#include <string>

namespace varve::base {

void AppendFloatFixed(std::string& out, double v);  // 'f': "0.001", "100000000000000000000000", "NaN", "+Inf", "-Inf"
void AppendFloatExponent(std::string& out, double v);  // 'e': "1e-07", "1.5e+21"; two exponent digits at least
// 'e' when the decimal exponent is below -4 or above 5, else 'f': Go's 'g' with -1, and its %v.
void AppendFloatGeneral(std::string& out, double v);
// The text of AppendFloatFixed at `out`, where kFloatQuickBytes are free; its end, or null when the number is not one
// of the ordinary ones (below 1e15, and not so small that most of the text is zeros).
inline constexpr int kFloatQuickBytes = 40;
char* WriteFloatQuick(char* out, double v);
std::string FloatFixed(double v);
std::string FloatGeneral(double v);

}  // namespace varve::base
