#include "server/http/router.h"

#include <catch2/catch.hpp>

namespace varve::http {
namespace {

const Handler kNothing = [](std::shared_ptr<const Request>, Respond) {};

Router Make() {
  Router router;
  router.Get("/api/v1/label/{name}/values", kNothing);
  router.Get("/api/v1/query", kNothing);
  router.Post("/api/v1/query", kNothing);
  router.Get("/api/v1/label/special/values", kNothing);
  router.Get("/api/v1/{any}/{thing}/values", kNothing);
  router.Get("/ui/{path...}", kNothing);
  router.Post("/only/{post}", kNothing);
  return router;
}

std::string Pattern(const Router::Match& match) { return match.route == nullptr ? "" : match.route->pattern; }

TEST_CASE("literals win over parameters") {
  const Router router = Make();
  CHECK(Pattern(router.Find("GET", "/api/v1/label/special/values")) == "/api/v1/label/special/values");
  CHECK(Pattern(router.Find("GET", "/api/v1/label/job/values")) == "/api/v1/label/{name}/values");
  CHECK(Pattern(router.Find("GET", "/api/v1/other/job/values")) == "/api/v1/{any}/{thing}/values");
}

TEST_CASE("parameters are decoded and an encoded slash stays inside its segment") {
  const Router router = Make();
  const auto match = router.Find("GET", "/api/v1/label/a%2Fb%20c/values");
  REQUIRE(match.path_parameters.size() == 1);
  CHECK(match.path_parameters[0].first == "name");
  CHECK(match.path_parameters[0].second == "a/b c");
}

TEST_CASE("a rest parameter takes slashes") {
  const auto match = Make().Find("GET", "/ui/css/a.css");
  REQUIRE(match.path_parameters.size() == 1);
  CHECK(match.path_parameters[0].second == "css/a.css");
}

TEST_CASE("a wrong method says which ones would do") {
  const Router router = Make();
  CHECK(router.Find("DELETE", "/api/v1/query").allow == "GET, HEAD, POST");
  CHECK(router.Find("GET", "/only/x").allow == "POST");
  CHECK(router.Find("HEAD", "/only/x").route == nullptr);
  CHECK(router.Find("HEAD", "/api/v1/query").route->method == "GET");
}

TEST_CASE("unknown paths match nothing") {
  const Router router = Make();
  for (const char* path : {"/", "", "x", "/api/v1/query/", "/api/v1/label//values", "/api/v1/label/%zz/values",
                           "/api/v1/label/a/b/values"}) {
    INFO(path);
    const auto match = router.Find("GET", path);
    CHECK(match.route == nullptr);
    CHECK(match.allow.empty());
  }
}

TEST_CASE("an encoded letter of a literal is the letter") {
  CHECK(Pattern(Make().Find("GET", "/api/v1/%71uery")) == "/api/v1/query");
}

}  // namespace
}  // namespace varve::http
