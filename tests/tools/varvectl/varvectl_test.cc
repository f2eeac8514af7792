#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "server/http/server.h"
#include "storage/base/strings.h"
#include "tools/varvectl/json.h"
#include "tools/varvectl/render.h"
#include "tools/varvectl/run.h"

namespace varve::ctl {
namespace {

class FixedClock : public base::Clock {
 public:
  int64_t NowMs() const override { return 1'700'000'000'500; }
  int64_t MonotonicNs() const override { return 0; }
};

// A server with fixed answers that remembers what it was asked.
struct Fixture {
  Fixture() {
    http::ServerConfig config;
    config.listen = "127.0.0.1:0";
    http::Router router;
    const auto answer = [this](int status, std::string body) {
      return [this, status, body](std::shared_ptr<const http::Request> r, http::Respond respond) {
        base::MutexLock lock(mu);
        base::StrAppend(asked, r->method, " ", r->path, "?", r->query, " ", r->body, " [", r->Header("x-scope-orgid"),
                        "]\n");
        respond(http::Response::Json(status, body));
      };
    };
    router.Post(
        "/api/v1/query",
        answer(
            200,
            R"({"status":"success","warnings":["careful"],"data":{"resultType":"vector","result":[)"
            R"({"metric":{"__name__":"up","job":"a"},"value":[1700000000.5,"1"]},)"
            R"({"metric":{"__name__":"h"},"histogram":[1700000000,{"count":"3","sum":"4.5","buckets":[[0,"1","2","3"]]}]}]}})"));
    router.Post("/api/v1/query_range", answer(200, R"({"status":"success","data":{"resultType":"matrix","result":[)"
                                                   R"({"metric":{},"values":[[0,"1"],[60,"NaN"]]}]}})"));
    router.Post("/api/v1/labels", answer(200, R"({"status":"success","data":["__name__","job"]})"));
    router.Get("/api/v1/label/{name}/values", answer(200, R"({"status":"success","data":["a","b"]})"));
    router.Post("/api/v1/series",
                answer(422, R"({"status":"error","errorType":"execution","error":"too many series"})"));
    for (const char* part : {"buildinfo", "runtimeinfo", "tsdb"}) {
      router.Get(base::StrCat("/api/v1/status/", part),
                 answer(200, base::StrCat(R"({"status":"success","data":{"of_)", part,
                                          R"(":"x","headStats":{"numSeries":5}}})")));
    }
    router.Post("/api/v1/import/prometheus", answer(200, ""));
    server = http::Server::Start(config, std::move(router), base::Logger::Silent(), registry).value();
  }
  int Do(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), {"--address", base::StrCat("http://", server->address(), "/")});
    std::istringstream in(input);
    std::ostringstream out_stream, err_stream;
    const int code = Run(arguments, FixedClock(), in, out_stream, err_stream);
    out = out_stream.str(), err = err_stream.str();
    return code;
  }
  std::string out, err;
  base::Mutex mu;
  std::string asked;
  base::Registry registry;
  std::unique_ptr<http::Server> server;
};

TEST_CASE("a query is shown as a table and its warnings go to standard error") {
  Fixture f;
  CHECK(f.Do({"query", "up + 1", "--time", "now-1h", "--tenant", "t1"}) == kOk);
  CHECK(f.asked == "POST /api/v1/query? query=up%20%2B%201&time=1699996400.500 [t1]\n");
  CHECK(f.out ==
        "SERIES       TIME                      VALUE\n"
        "up{job=\"a\"}  2023-11-14T22:13:20.500Z  1\n"
        "h            2023-11-14T22:13:20Z      histogram count=3 sum=4.5 buckets=1\n");
  CHECK(f.err == "warning: careful\n");
}

TEST_CASE("a range query has sixty points unless told") {
  Fixture f;
  CHECK(f.Do({"query-range", "x", "--start", "0", "--end", "3600"}) == kOk);
  CHECK(f.asked == "POST /api/v1/query_range? query=x&start=0&end=3600&step=60 []\n");
  CHECK(f.out == "{}\n  TIME                  VALUE\n  1970-01-01T00:00:00Z  1\n  1970-01-01T00:01:00Z  NaN\n");
  CHECK(f.Do({"query-range", "x", "--start", "now*1"}) == kUsage);
  CHECK(f.err.find("is not a time") != std::string::npos);
}

TEST_CASE("json is as it came and yaml says the same") {
  Fixture f;
  CHECK(f.Do({"labels", "-o", "json"}) == kOk);
  CHECK(f.out == "{\"status\":\"success\",\"data\":[\"__name__\",\"job\"]}\n");
  CHECK(f.Do({"-o", "yaml", "query-range", "x"}) == kOk);
  CHECK(f.out ==
        "resultType: \"matrix\"\nresult:\n  - metric: {}\n    values:\n      - - 0\n        - \"1\"\n      - - 60\n    "
        "    - \"NaN\"\n");
}

TEST_CASE("labels and their values are lists") {
  Fixture f;
  CHECK(f.Do({"labels"}) == kOk);
  CHECK(f.out == "__name__\njob\n");
  CHECK(f.Do({"labels", "a/b", "--match", "up"}) == kOk);
  CHECK(f.out == "a\nb\n");
  CHECK(f.asked.find("GET /api/v1/label/a/b/values?match%5B%5D=up") != std::string::npos);
  f.asked.clear();
  CHECK(f.Do({"labels", "--match", "up", "--match", "down", "a"}) == kOk);
  CHECK(f.asked.find("GET /api/v1/label/a/values?match%5B%5D=up&match%5B%5D=down") != std::string::npos);
}

TEST_CASE("a refusal says what the server said") {
  Fixture f;
  CHECK(f.Do({"series", "up"}) == kRefused);
  CHECK(f.err == "varvectl: the server said 422: execution: too many series\n");
}

TEST_CASE("status gathers three answers") {
  Fixture f;
  CHECK(f.Do({"status"}) == kOk);
  CHECK(f.out.find("of_buildinfo") != std::string::npos);
  CHECK(f.out.find("headStats.numSeries  5") != std::string::npos);
}

TEST_CASE("a long import goes in pieces of whole lines") {
  Fixture f;
  std::string page;
  while (page.size() < (9u << 20)) base::StrAppend(page, "m{n=\"", page.size(), "\"} 1\n");
  CHECK(f.Do({"import", "prometheus-text", "-"}, page) == kOk);
  CHECK(f.out == base::StrCat("imported ", page.size(), " bytes\n"));
  std::string arrived;
  size_t pieces = 0;
  for (size_t at = 0; (at = f.asked.find("POST /api/v1/import/prometheus? ", at)) != std::string::npos; ++pieces) {
    at += 32;
    const size_t end = f.asked.find(" []\n", at);
    arrived += f.asked.substr(at, end - at);
  }
  CHECK(pieces == 2);
  CHECK(arrived == page);
  CHECK(f.Do({"import", "prometheus-text", "/nowhere"}) == kUsage);
}

TEST_CASE("wrong usage and absent servers have their own exit codes") {
  Fixture f;
  CHECK(f.Do({}) == kUsage);
  CHECK(f.Do({"query"}) == kUsage);
  CHECK(f.Do({"nonsense"}) == kUsage);
  CHECK(f.err.starts_with("varvectl: unknown command nonsense; there are query,"));
  CHECK(f.Do({"import", "prometheus-text", "/"}) == kUsage);
  CHECK(f.err == "varvectl: cannot read /\n");
  CHECK(f.Do({"--version"}) == kOk);
  CHECK(f.out.starts_with("varvectl "));
  CHECK(f.Do({"query", "up", "-o", "xml"}) == kUsage);
  CHECK(f.Do({"query", "up", "--timeout", "soon"}) == kUsage);
  CHECK(f.Do({"--help"}) == kOk);
  CHECK(f.out.find("Examples:") != std::string::npos);
  CHECK(f.Do({"version"}) == kOk);
  f.server->Stop(1000);
  CHECK(f.Do({"query", "up"}) == kUnreachable);
}

TEST_CASE("JSON is read without rounding and garbage is refused") {
  const Json json = Json::Parse(R"( {"a":[1,2.50,-3e+7,null,true],"b":"\u00e4\ud83d\ude00\n\"","c":{}} )").value();
  CHECK(json["a"][1].text == "2.50");
  CHECK(json["a"][2].text == "-3e+7");
  CHECK(json["b"].text == "\xc3\xa4\xf0\x9f\x98\x80\n\"");
  CHECK_FALSE(json.Has("d"));
  CHECK(json[7].kind == Json::Kind::kNull);
  for (const char* bad :
       {"", "{", "[1,]", "{\"a\"}", "\"", "\"\\x\"", "\"\\ud800\"", "\"\\u12\"", "1 2", "nul", "-", "{a:1}"}) {
    INFO(bad);
    CHECK(absl::IsInvalidArgument(Json::Parse(bad).status()));
  }
  CHECK_FALSE(Json::Parse(std::string(100'000, '[')).ok());
}

TEST_CASE("times are shown in UTC to the millisecond") {
  CHECK(TimeText("0") == "1970-01-01T00:00:00Z");
  CHECK(TimeText("-0.001") == "1969-12-31T23:59:59.999Z");
  CHECK(TimeText("1700000000.05") == "2023-11-14T22:13:20.050Z");
  CHECK(TimeText("1e300") == "1e300");
}

}  // namespace
}  // namespace varve::ctl
