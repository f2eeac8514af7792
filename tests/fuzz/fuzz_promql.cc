// Any text either fails to parse or prints as text that parses to the same tree. The first byte chooses the flags.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "query/promql/parser.h"

namespace {
void Die(const char* what, const std::string& printed) {
  std::fprintf(stderr, "%s: %s\n", what, printed.c_str());
  std::abort();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace varve;
  if (size == 0) return 0;
  promql::Options options;
  options.experimental_functions = (data[0] & 1) == 0;
  options.extended_range_selectors = (data[0] & 2) == 0;
  options.fill_modifiers = (data[0] & 4) == 0;
  options.duration_expressions = (data[0] & 8) == 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto expr = promql::Parse(text, options);
  if (!expr.ok()) return 0;
  const std::string printed = promql::Print(**expr);
  const auto again = promql::Parse(printed, options);
  if (!again.ok()) Die("printed text does not parse", printed);
  if (!promql::Equal(**expr, **again)) Die("printed text is another tree", printed);
  const std::string pretty = promql::PrettyPrint(**expr);
  const auto from_pretty = promql::Parse(pretty, options);
  if (!from_pretty.ok() || !promql::Equal(**expr, **from_pretty)) Die("pretty text is another tree", pretty);
  return 0;
}
