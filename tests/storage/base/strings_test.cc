#include "storage/base/strings.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "storage/base/dice.h"
#include "storage/base/status.h"

namespace varve::base {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST_CASE("numbers are read as Go reads them") {
  const std::vector<std::pair<std::string, double>> good = {
      {"0", 0},
      {"1", 1},
      {"-1", -1},
      {"+1", 1},
      {"1.5", 1.5},
      {".5", 0.5},
      {"5.", 5},
      {"1e3", 1000},
      {"1E+3", 1000},
      {"1e-3", 0.001},
      {"-2.5e2", -250},
      {"0x10", 16},
      {"0X1p4", 16},
      {"0x1.8p1", 3},
      {"-0x1p-1", -0.5},
      {"0x.8p0", 0.5},
      {"Inf", kInf},
      {"inf", kInf},
      {"+Inf", kInf},
      {"-inf", -kInf},
      {"infinity", kInf},
      {"-Infinity", -kInf},
      {"INF", kInf},
      {"1e400", kInf},
      {"-1e400", -kInf},
      {"1e-400", 0},
      {"4.9e-324", 5e-324},
      {"1.7976931348623157e308", std::numeric_limits<double>::max()},
      {"0.1", 0.1},
      {"00012", 12},
  };
  for (const auto& [text, value] : good) {
    CAPTURE(text);
    const std::optional<double> parsed = ParseDouble(text);
    REQUIRE(parsed);
    CHECK(*parsed == value);
  }
  CHECK(std::signbit(*ParseDouble("-0")));
  for (const std::string text : {"NaN", "nan", "NAN"}) {
    REQUIRE(ParseDouble(text));
    CHECK(std::isnan(*ParseDouble(text)));
  }
  for (const std::string text : {"",    " ",   "+",   "-",    ".",    "e5", "1e",   "1e+", "1 ",   " 1",    "1x", "0x",
                                 "0xg", "--1", "+-1", "1..2", "infi", "in", "nano", "1,5", "0x1p", "++Inf", "1_"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseDouble(text));
  }
  CHECK_FALSE(ParseDouble(std::string_view("1\0", 2)));
}

TEST_CASE("what StrCat writes of a number reads back as the same number") {
  Dice dice(3);
  for (int i = 0; i < 10'000; ++i) {
    const auto v = std::bit_cast<double>(dice.Next());
    if (std::isnan(v)) continue;
    CHECK(std::bit_cast<uint64_t>(*ParseDouble(StrCat(v))) == std::bit_cast<uint64_t>(v));
    const auto n = static_cast<int64_t>(dice.Next() >> dice.Below(64));
    CHECK(ParseInt64(StrCat(n)) == n);
    CHECK(ParseUint64(StrCat(static_cast<uint64_t>(n))) == static_cast<uint64_t>(n));
  }
  CHECK(StrCat("a", 'b', true, -3, uint8_t{7}, std::string("s")) == "abtrue-37s");
}

TEST_CASE("integers are read whole or not at all") {
  CHECK(ParseInt64("-9223372036854775808") == std::numeric_limits<int64_t>::min());
  CHECK(ParseInt64("9223372036854775807") == std::numeric_limits<int64_t>::max());
  CHECK(ParseUint64("18446744073709551615") == std::numeric_limits<uint64_t>::max());
  for (const std::string text : {"", "-", "9223372036854775808", "1.0", "1 ", " 1", "0x1", "1e3", "abc"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseInt64(text));
  }
  for (const std::string text : {"", "-1", "18446744073709551616", "1.0", "x"}) CHECK_FALSE(ParseUint64(text));
}

TEST_CASE("text is split and trimmed and joined") {
  CHECK(StrSplit("a,,b", ',') == std::vector<std::string_view>{"a", "", "b"});
  CHECK(StrSplit("", ',') == std::vector<std::string_view>{""});
  CHECK(StrSplit(",", ',') == std::vector<std::string_view>{"", ""});
  CHECK(StrTrim(" \t a b \r\n") == "a b");
  CHECK(StrTrim("  ").empty());
  CHECK(StrJoin(std::vector<std::string>{"a", "b", "c"}, ", ") == "a, b, c");
  CHECK(StrJoin(std::vector<std::string>{}, ", ").empty());
  CHECK(AsciiLower("AbC\xC3\x84") == "abc\xC3\x84");
}

TEST_CASE("UTF-8 is told from other bytes") {
  for (const std::string text : {"", "plain", "\xC2\x80", "\xC3\xA4", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                                 "\xEF\xBF\xBD", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    CHECK(IsValidUtf8(text));
    CHECK(IsValidUtf8("a" + text + "z"));
  }
  CHECK(IsValidUtf8(std::string_view("\0", 1)));
  for (const std::string text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC3", "\xE0\x80\x80", "\xE0\x9F\xBF",
        "\xED\xA0\x80" /* a surrogate */, "\xED\xBF\xBF", "\xE2\x82", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3\x28", "\xE2\x28\xA1", "\xF0\x90\x28\xBC"}) {
    CHECK_FALSE(IsValidUtf8(text));
    CHECK_FALSE(IsValidUtf8("0123456789abcdef" + text + "z"));
  }
}

TEST_CASE("quoting is Go's") {
  CHECK(QuoteGo("plain") == R"("plain")");
  CHECK(QuoteGo("a\"b\\c") == R"("a\"b\\c")");
  CHECK(QuoteGo("\a\b\f\n\r\t\v") == R"("\a\b\f\n\r\t\v")");
  CHECK(QuoteGo(std::string_view("\0\x01\x7F", 3)) == R"("\x00\x01\x7f")");
  CHECK(QuoteGo("\xC3\xA4") == "\"\xC3\xA4\"");
  CHECK(QuoteGo("\xFF\xC3") == R"("\xff\xc3")");
  CHECK(QuoteGo("\xE2\x80\xA8") == R"("\u2028")");  // a line separator is not printable
  CHECK(QuoteGo("\xC2\x9B\xC2\xA0\xEF\xBB\xBF\xF3\xA0\x80\x81") == R"("\u009b\u00a0\ufeff\U000e0001")");
  CHECK(QuoteGo("\xF0\x9F\x98\x80") == "\"\xF0\x9F\x98\x80\"");
}

TEST_CASE("system call errors become statuses with their cause") {
  CHECK(absl::IsResourceExhausted(ErrnoStatus(ENOSPC, "write a")));
  CHECK(absl::IsResourceExhausted(ErrnoStatus(EDQUOT, "write a")));
  CHECK(absl::IsNotFound(ErrnoStatus(ENOENT, "open a")));
  CHECK(absl::IsAlreadyExists(ErrnoStatus(EEXIST, "create a")));
  CHECK(absl::IsPermissionDenied(ErrnoStatus(EACCES, "open a")));
  CHECK(absl::IsPermissionDenied(ErrnoStatus(EPERM, "open a")));
  CHECK(absl::IsInternal(ErrnoStatus(EIO, "read a")));
  CHECK(Message(ErrnoStatus(ENOENT, "open a")).starts_with("open a"));
  CHECK(Message(Annotate(absl::NotFoundError("x"), "y")) == "y: x");
  CHECK(absl::IsNotFound(Annotate(absl::NotFoundError("x"), "y")));
  CHECK(Annotate(absl::OkStatus(), "y").ok());
}

TEST_CASE("code points become UTF-8") {
  std::string out;
  for (const uint32_t rune : {0x41u, 0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xFFFFu, 0x10000u, 0x10FFFFu}) AppendUtf8(out, rune);
  CHECK(out ==
        "A\x7F"
        "\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF");
  CHECK(IsValidUtf8(out));
}

TEST_CASE("any bytes become a JSON string of one line") {
  const auto json = [](std::string_view text) {
    std::string out = "x";
    AppendJsonString(out, text);
    return out;
  };
  CHECK(json("") == R"(x"")");
  CHECK(json("plain \xC3\xA4 \xF0\x9F\x98\x80") == "x\"plain \xC3\xA4 \xF0\x9F\x98\x80\"");
  CHECK(json("a\"b\\c/") == R"(x"a\"b\\c/")");
  CHECK(json(std::string_view("\n\r\t\0\x1B\x7F", 6)) == R"(x"\n\r\t\u0000\u001b\u007f")");
  CHECK(json("\xFF|\xC3|\xE2\x82|\xED\xA0\x80") ==
        "x\"\xEF\xBF\xBD|\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace varve::base
