#include <catch2/catch.hpp>

#include "storage/base/strings.h"
#include "tests/tidy/rules.h"

namespace varve::tidy {
namespace {

const Tree& Real() {
  static const Tree tree = ReadTree(".");
  return tree;
}

void RequireNone(const std::vector<std::string>& complaints) {
  for (const std::string& complaint : complaints) {
    UNSCOPED_INFO(complaint);
  }
  CHECK(complaints.empty());
}

TEST_CASE("the tree is there") {
  CHECK(Real().size() > 100);
  CHECK(Real().count("storage/base/strings.h") == 1);
}
TEST_CASE("includes point down") { RequireNone(IncludesPointDown(Real())); }
TEST_CASE("heavy headers stay inside") { RequireNone(HeavyHeadersStayInside(Real())); }
TEST_CASE("folders introduce themselves") { RequireNone(FoldersIntroduceThemselves(Real())); }
TEST_CASE("nothing is left over") { RequireNone(NothingIsLeftOver(Real())); }
TEST_CASE("headers are guarded") { RequireNone(HeadersAreGuarded(Real())); }
TEST_CASE("every source is built") { RequireNone(EverySourceIsBuilt(Real())); }
TEST_CASE("metrics are documented") { RequireNone(MetricsAreDocumented(Real())); }

TEST_CASE("an include that points up is found") {
  CHECK(IncludesPointDown({{"storage/wal/a.cc", "#include \"storage/head/head.h\"\n"}}) ==
        std::vector<std::string>{
            "storage/wal/a.cc:1: storage/wal includes storage/head/head.h, but storage/head does not lie "
            "below it; pass the thing in, or move what both want further down"});
  CHECK(IncludesPointDown({{"storage/head/a.cc", "\n#include \"storage/base/check.h\"\n#include <vector>\n"}}).empty());
  CHECK(IncludesPointDown({{"query/api/a.h", "#include \"server/http/message.h\"\n"}}).size() == 1);
  CHECK(IncludesPointDown({{"storage/new/a.h", ""}}).size() == 1);
  CHECK(IncludesPointDown({{"tools/x/a.cc", "#include \"tests/support/mem_fs.h\"\n"}}).size() == 1);
  CHECK(IncludesPointDown({{"tests/storage/a.cc", "#include \"server/app/config.h\"\n"}}).empty());
}

TEST_CASE("a heavy header out of place is found") {
  CHECK(HeavyHeadersStayInside({{"server/http/a.h", "#include <boost/asio.hpp>\n"}}).size() == 1);
  CHECK(HeavyHeadersStayInside({{"server/roles/a.cc", "#include <boost/asio.hpp>\n"}}).size() == 1);
  CHECK(HeavyHeadersStayInside({{"server/http/a.cc", "#include <boost/asio.hpp>\n"}}).empty());
  CHECK(HeavyHeadersStayInside({{"ingest/decode/a.h", "#include \"proto/x.pb.h\"\n"}}).size() == 1);
  CHECK(HeavyHeadersStayInside({{"storage/model/a.cc", "#include <re2/re2.h>\n"}}).empty());
}

TEST_CASE("missing pages and left-over marks and unbuilt sources are found") {
  CHECK(FoldersIntroduceThemselves({{"storage/x/a.h", ""}}).size() == 1);
  CHECK(FoldersIntroduceThemselves({{"storage/x/a.h", ""}, {"storage/x/README.md", ""}}).empty());
  CHECK(NothingIsLeftOver({{"a.cc", std::string("// FIX") + "ME: later\n"}}).size() == 1);
  CHECK(NothingIsLeftOver({{"a.md", "To do good things.\n"}}).empty());
  CHECK(HeadersAreGuarded({{"a.h", "// A header.\n#pragma once\n"}}).size() == 1);
  CHECK(EverySourceIsBuilt({{"x/a.cc", ""}, {"x/CMakeLists.txt", "add(ba.cc)"}}).size() == 1);
  CHECK(EverySourceIsBuilt({{"x/a.cc", ""}, {"x/CMakeLists.txt", "add(a.cc)"}}).empty());
  CHECK(MetricsAreDocumented({{"server/a.cc", "f(\"varve_x_total\""}, {"docs/metrics.md", "`varve_x`"}}).size() == 1);
  CHECK(MetricsAreDocumented({{"server/a.cc", "f(\"varve_x_total\""}, {"docs/metrics.md", "`varve_x_total`"}}).empty());
  CHECK(EverySourceIsBuilt({{"x/y/a.cc", ""}, {"x/CMakeLists.txt", "add(y/a.cc)"}}).empty());
}

}  // namespace
}  // namespace varve::tidy
