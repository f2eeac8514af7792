#include "server/http/message.h"

#include <catch2/catch.hpp>

#include "server/http/answer.h"
#include "server/http/client.h"
#include "server/http/compress.h"

namespace varve::http {
namespace {

TEST_CASE("percent-encoding leaves only what no URL gives a meaning, and decodes to itself") {
  CHECK(PercentEncode("aZ09-_.~") == "aZ09-_.~");
  CHECK(PercentEncode("a b+c&d=e/f%") == "a%20b%2Bc%26d%3De%2Ff%25");
  CHECK(PercentEncode("\xe2\x82\xac") == "%E2%82%AC");
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  CHECK(PercentDecode(PercentEncode(all), false).value() == all);
  CHECK(PercentDecode(PercentEncode(all), true).value() == all);
}

TEST_CASE("percent-decoding takes hex pairs and nothing else") {
  CHECK(PercentDecode("a%20b%2Fc", false).value() == "a b/c");
  CHECK(PercentDecode("a+b", true).value() == "a b");
  CHECK(PercentDecode("a+b", false).value() == "a+b");
  CHECK(PercentDecode("%e2%82%AC", false).value() == "\xe2\x82\xac");
  for (const char* bad : {"%", "%4", "%zz", "a%2", "%%41"}) {
    const auto result = PercentDecode(bad, true);
    INFO(bad);
    CHECK(absl::IsInvalidArgument(result.status()));
  }
}

TEST_CASE("parameters come from the query string and then from a form body") {
  Request request;
  request.method = "POST";
  request.query = "match[]=up&match%5B%5D=down&empty=&flag";
  request.headers = {{"content-type", "application/x-www-form-urlencoded; charset=utf-8"}};
  request.body = "match[]=a%2Bb+c&time=7";
  const Parameters parameters = Parameters::FromRequest(request).value();
  CHECK(parameters.All("match[]") == std::vector<std::string>{"up", "down", "a+b c"});
  CHECK(parameters.Get("match[]") == "up");
  CHECK(parameters.Get("time") == "7");
  CHECK(parameters.Has("empty"));
  CHECK(parameters.Has("flag"));
  CHECK_FALSE(parameters.Has("nothing"));
}

TEST_CASE("a body that is not a form is not read as one") {
  Request request;
  request.method = "POST";
  request.headers = {{"content-type", "application/x-protobuf"}};
  request.body = "a=%";
  CHECK_FALSE(Parameters::FromRequest(request).value().Has("a"));
  request.headers = {{"content-type", "application/x-www-form-urlencoded"}};
  CHECK(absl::IsInvalidArgument(Parameters::FromRequest(request).status()));
}

TEST_CASE("accept-encoding weights are respected") {
  CHECK(AcceptsGzip("gzip"));
  CHECK(AcceptsGzip("deflate, gzip;q=0.5"));
  CHECK(AcceptsGzip("*"));
  CHECK_FALSE(AcceptsGzip(""));
  CHECK_FALSE(AcceptsGzip("gzip;q=0"));
  CHECK_FALSE(AcceptsGzip("gzip;q=0, *"));
  CHECK_FALSE(AcceptsGzip("br, deflate"));
}

TEST_CASE("header values cannot start a header of their own") {
  Response response = Response::Text(200, "x");
  response.headers.emplace_back("X-Echo", "a\r\nSet-Cookie: b");
  std::string head;
  RenderHead(response, {}, head);
  CHECK(head.find("X-Echo: aSet-Cookie: b\r\n") != std::string::npos);
  CHECK(head.find("\nSet-Cookie") == std::string::npos);
}

TEST_CASE("answers without a body carry no length") {
  std::string head;
  RenderHead(Response::Text(204, ""), {}, head);
  CHECK(head == "HTTP/1.1 204 No Content\r\n\r\n");
}

TEST_CASE("dates are as RFC 9110 wants them") {
  CHECK(HttpDate(784111777) == "Sun, 06 Nov 1994 08:49:37 GMT");
  CHECK(HttpDate(0) == "Thu, 01 Jan 1970 00:00:00 GMT");
}

TEST_CASE("URLs are taken apart") {
  const Url plain = Url::Parse("http://localhost:9201/api?x=1").value();
  CHECK(plain.host == "localhost");
  CHECK(plain.port == 9201);
  CHECK(plain.target == "/api?x=1");
  CHECK(Url::Parse("http://[::1]:80").value().host == "::1");
  CHECK(Url::Parse("http://h?x").value().target == "/?x");
  for (const char* bad : {"", "localhost:80", "https://h", "http://", "http://h:0", "http://h:x", "http://h:99999",
                          "http://[::1", "http://h/a b"}) {
    INFO(bad);
    CHECK(absl::IsInvalidArgument(Url::Parse(bad).status()));
  }
}

}  // namespace
}  // namespace varve::http
