// What a client can put into a request line, a form and a header, beyond what Beast parses. The first line is a path,
// the second a header value, the rest a form.
#include <cstdint>
#include <string>
#include <string_view>

#include "server/http/answer.h"
#include "server/http/client.h"
#include "server/http/compress.h"
#include "server/http/router.h"
#include "storage/base/check.h"

using namespace varve;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const http::Router* router = [] {
    auto* r = new http::Router;
    const http::Handler nothing = [](const std::shared_ptr<const http::Request>&, const http::Respond&) {};
    r->Get("/api/v1/label/{name}/values", nothing);
    r->Get("/api/v1/labels", nothing);
    r->Post("/{any}/v1/{thing}", nothing);
    r->Get("/ui/{rest...}", nothing);
    return r;
  }();
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view path = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), path.size() + 1));
  const std::string_view header = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), header.size() + 1));

  const http::Router::Match match = router->Find("GET", path);
  VARVE_CHECK(match.route != nullptr || match.path_parameters.empty());
  http::AcceptsGzip(header);
  (void)http::Url::Parse(header);

  http::Request request;
  request.method = "POST";
  request.query = path;
  request.headers = {{"content-type", "application/x-www-form-urlencoded"}};
  request.body = text;
  const auto parameters = http::Parameters::FromRequest(request);
  if (parameters.ok()) (void)parameters->All("match[]");

  http::Response response = http::Response::Text(200, text);
  response.headers.emplace_back("X-Value", header);
  std::string head;
  http::RenderHead(response, {}, head);
  // One empty line, and it is the last: no value from outside ends the head early.
  VARVE_CHECK(head.find("\r\n\r\n") == head.size() - 4);
  return 0;
}
