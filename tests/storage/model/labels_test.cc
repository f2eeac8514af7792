#include "storage/model/labels.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "storage/base/bytes.h"
#include "storage/base/dice.h"
#include "storage/base/strings.h"

namespace varve::model {
namespace {

// Bytes as an arbitrary sender may encode them.
struct WireLabel {
  std::string bytes;
  WireLabel& Name(std::string_view name) { return Field(0x0A, name); }
  WireLabel& Value(std::string_view value) { return Field(0x12, value); }
  WireLabel& Field(uint64_t tag, std::string_view text) {
    base::PutVarint(bytes, tag);
    base::PutBytes(bytes, text);
    return *this;
  }
};
std::string Wire(const std::vector<WireLabel>& labels) {
  std::string out;
  for (const WireLabel& label : labels) {
    base::PutVarint(out, 0x0A);
    base::PutBytes(out, label.bytes);
  }
  return out;
}
WireLabel Pair(std::string_view name, std::string_view value) { return WireLabel().Name(name).Value(value); }

TEST_CASE("labels are kept in the bytes of remote write") {
  const Labels labels = Labels::Of({{"job", "node"}, {"__name__", "up"}, {"empty", ""}});
  CHECK(labels.bytes() == Wire({Pair("__name__", "up"), Pair("job", "node")}));
  CHECK(labels.ToString() == R"(up{job="node"})");
  CHECK(labels.Get("job") == "node");
  CHECK(labels.Get("empty").empty());
  CHECK(labels.Get("zzz").empty());
  CHECK(labels.view().MetricName() == "up");
  CHECK(labels.view().count() == 2);
  CHECK(Labels().bytes().empty());
  CHECK(Labels().ToString() == "{}");
}

TEST_CASE("label sets print as Prometheus prints them") {
  CHECK(Labels::Of({{"__name__", "up"}}).ToString() == "up");
  CHECK(Labels::Of({{"a", "b"}}).ToString() == R"({a="b"})");
  CHECK(Labels::Of({{"__name__", "with space"}, {"a", "b"}}).ToString() == R"({"with space", a="b"})");
  CHECK(Labels::Of({{"__name__", "up"}, {"a.b", "c\"d\n"}}).ToString() == R"(up{"a.b"="c\"d\n"})");
}

TEST_CASE("wire bytes of any shape become canonical") {
  const std::string canonical = Wire({Pair("a", "1"), Pair("b", "2")});
  for (const std::string& wire : {
           Wire({Pair("a", "1"), Pair("b", "2")}), Wire({Pair("b", "2"), Pair("a", "1")}),  // another order
           Wire({WireLabel().Value("1").Name("a"), Pair("b", "2")}),                        // value first
           Wire({Pair("a", "1"), Pair("b", "2"), Pair("c", "")}),                           // an empty value
           Wire({Pair("a", "1"), WireLabel().Name("c"), Pair("b", "2")}),                   // no value at all
           Wire({Pair("a", "1"), WireLabel().Name("x").Name("b").Value("2")}),  // a field twice: the last counts
           Wire({Pair("a", "1").Field(0x1A, "more"), Pair("b", "2")}),          // an unknown field
       }) {
    const absl::StatusOr<Labels> labels = Labels::FromWire(wire);
    REQUIRE(labels.ok());
    CHECK(labels->bytes() == canonical);
    CHECK(IsCanonical(wire) == (wire == canonical));
  }
  // The same numbers in more bytes than needed.
  const std::string padded = std::string("\x0A\x87\x80\x00\x0A\x01", 6) + "a" + std::string("\x12\x81\x00", 3) + "1";
  const absl::StatusOr<Labels> labels = Labels::FromWire(padded);
  REQUIRE(labels.ok());
  CHECK(labels->ToString() == R"({a="1"})");
  CHECK_FALSE(IsCanonical(padded));
  CHECK(Labels::FromWire("")->empty());
  CHECK(IsCanonical(""));
}

TEST_CASE("label bytes that cannot be are refused with a reason") {
  const auto reason = [](const std::string& wire) {
    const absl::StatusOr<Labels> labels = Labels::FromWire(wire);
    CHECK_FALSE(labels.ok());
    CHECK(absl::IsInvalidArgument(labels.status()));
    CHECK_FALSE(IsCanonical(wire));
    return std::string(base::Message(labels.status()));
  };
  CHECK(reason(Wire({Pair("a", "1"), Pair("a", "2")})).find("\"a\" occurs twice") != std::string::npos);
  CHECK(reason(Wire({Pair("a", "1"), Pair("b", "1"), Pair("a", "")})).find("twice") != std::string::npos);
  CHECK(reason(Wire({Pair("", "1")})).find("empty name") != std::string::npos);
  CHECK(reason(Wire({WireLabel()})).find("empty name") != std::string::npos);
  CHECK(reason("\x0A").find("malformed") != std::string::npos);
  CHECK(reason("\x0A\x05\x0A\x01").find("malformed") != std::string::npos);
  CHECK(reason("\x12\x01x").find("malformed") != std::string::npos);
  CHECK(reason(Wire({WireLabel().Name("a").Field(0x0B, "")})).find("malformed") != std::string::npos);  // a group
}

TEST_CASE("bytes that were cut or changed are refused or canonical and never crash") {
  const std::string long_value(300, 'x');
  const std::string wire(Labels::Of({{"__name__", "up"}, {"instance", long_value}, {"job", "node"}}).bytes());
  for (size_t cut = 0; cut < wire.size(); ++cut) static_cast<void>(Labels::FromWire(wire.substr(0, cut)));
  base::Dice dice(11);
  for (int i = 0; i < 50'000; ++i) {
    std::string changed = wire;
    for (size_t n = 1 + dice.Below(4); n > 0; --n)
      changed[dice.Below(40) % changed.size()] = static_cast<char>(dice.Next());
    const absl::StatusOr<Labels> labels = Labels::FromWire(changed);
    const bool canonical = labels.ok() && labels->bytes() == changed;
    CHECK(IsCanonical(changed) == canonical);
    if (!labels.ok()) continue;
    const absl::StatusOr<Labels> again = Labels::FromWire(labels->bytes());
    REQUIRE(again.ok());
    CHECK(*again == *labels);
    CHECK(IsCanonical(labels->bytes()));
    std::string_view last;
    for (const LabelRef label : *labels) {
      CHECK(last < label.name);
      CHECK_FALSE(label.value.empty());
      last = label.name;
    }
  }
}

TEST_CASE("label sets behave like sorted maps") {
  const uint64_t seed = GENERATE(1u, 2u, 3u);
  CAPTURE(seed);
  base::Dice dice(seed);
  using Map = std::map<std::string, std::string>;
  const auto make = [&] {
    Map map;
    for (size_t n = dice.Below(6); n > 0; --n) {
      map[base::StrCat("n", dice.Below(8))] = dice.OneIn(20) ? std::string(200, 'v') : base::StrCat(dice.Below(3));
    }
    return map;
  };
  const auto labels_of = [](const Map& map) {
    std::vector<Label> pairs;
    for (const auto& [name, value] : map) pairs.insert(pairs.begin(), {name, value});
    return Labels::FromPairs(pairs);
  };
  for (int i = 0; i < 2000; ++i) {
    const Map a = make(), b = make();
    const Labels x = labels_of(a), y = labels_of(b);
    CHECK((x == y) == (a == b));
    CHECK((x < y) == (std::vector<std::pair<std::string, std::string>>(a.begin(), a.end()) <
                      std::vector<std::pair<std::string, std::string>>(b.begin(), b.end())));
    CHECK((HashLabels(x.bytes(), 5) == HashLabels(y.bytes(), 5)) == (a == b));
    for (int n = 0; n < 8; ++n) {
      const std::string name = base::StrCat("n", n);
      CHECK(x.Get(name) == (a.contains(name) ? a.at(name) : ""));
      Map with = a;
      with[name] = "new";
      CHECK(With(x, name, "new") == labels_of(with));
      with.erase(name);
      CHECK(With(x, name, "") == labels_of(with));
    }
    const std::vector<std::string> names = {"n5", "n1", "n7"};
    Map kept, rest;
    for (const auto& [name, value] : a) {
      (std::find(names.begin(), names.end(), name) != names.end() ? kept : rest)[name] = value;
    }
    CHECK(Keep(x, names) == labels_of(kept));
    CHECK(Without(x, names) == labels_of(rest));
  }
}

TEST_CASE("hashes depend on the seed") {
  const Labels labels = Labels::Of({{"a", "b"}});
  CHECK(HashLabels(labels.bytes(), 1) != HashLabels(labels.bytes(), 2));
  CHECK(HashLabels(labels.bytes(), 1) == HashLabels(labels.bytes(), 1));
}

TEST_CASE("classic names are told from others") {
  for (const std::string name : {"a", "_", "A9", "a_b"}) {
    CHECK(IsClassicLabelName(name));
    CHECK(IsClassicMetricName(name));
  }
  CHECK(IsClassicMetricName("a:b"));
  CHECK_FALSE(IsClassicLabelName("a:b"));
  for (const std::string name : {"", "9", "a.b", "a-b", "\xC3\xA4", " a"}) {
    CHECK_FALSE(IsClassicLabelName(name));
    CHECK_FALSE(IsClassicMetricName(name));
  }
}

}  // namespace
}  // namespace varve::model
