#include "server/http/server.h"

#include <unistd.h>
#include <zlib.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <thread>

#include "server/http/client.h"
#include "storage/base/mutex.h"
#include "storage/base/strings.h"

namespace varve::http {
namespace {

constexpr int64_t kPatienceMs = 20'000;  // only ever reached by a failing test

// Requests that a test answers when it wants to.
class Parked {
 public:
  Handler handler() {
    return [this](std::shared_ptr<const Request> request, Respond respond) {
      base::MutexLock lock(mu_);
      requests_.push_back({std::move(request), std::move(respond)});
      changed_.NotifyAll();
    };
  }
  struct Item {
    std::shared_ptr<const Request> request;
    Respond respond;
  };
  Item Take() {
    base::MutexLock lock(mu_);
    while (requests_.empty()) {
      if (!changed_.WaitFor(mu_, std::chrono::milliseconds(kPatienceMs))) throw std::runtime_error("no request came");
    }
    Item item = std::move(requests_.front());
    requests_.erase(requests_.begin());
    return item;
  }
  size_t size() {
    base::MutexLock lock(mu_);
    return requests_.size();
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<Item> requests_ ABSL_GUARDED_BY(mu_);
};

template <class Condition>
bool Eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::yield();
  }
  return false;
}

struct Fixture {
  explicit Fixture(ServerConfig config = {}) {
    config.listen = "127.0.0.1:0";
    Router router;
    const auto echo = [](std::shared_ptr<const Request> r, Respond respond) {
      respond(Response::Text(200, base::StrCat(r->method, " ", r->path, "?", r->query, " ", r->body)));
    };
    router.Get("/echo", echo);
    router.Post("/echo", echo);
    router.Get("/label/{name}", [](std::shared_ptr<const Request> r, Respond respond) {
      respond(Response::Text(200, r->PathParameter("name")));
    });
    router.Post("/size", [](std::shared_ptr<const Request> r, Respond respond) {
      respond(Response::Text(200, base::StrCat(r->body.size())));
    });
    router.Get("/large", [](std::shared_ptr<const Request>, Respond respond) {
      respond(Response::Json(200, std::string(200'000, 'x')));
    });
    router.Get("/dropped", [](std::shared_ptr<const Request>, Respond) {});
    router.Get("/threw", [](std::shared_ptr<const Request>, Respond) { throw std::runtime_error("no memory"); });
    router.Get("/other-thread", [this](std::shared_ptr<const Request> r, Respond respond) {
      threads.push_back(std::async(std::launch::async, [r, respond] { respond(Response::Text(200, r->query)); }));
    });
    router.Get("/parked", parked.handler());
    router.Post("/parked", parked.handler());
    server = Server::Start(config, std::move(router), base::Logger::Silent(), registry).value();
  }
  Connection Connect() { return Connection::Open("127.0.0.1", server->port(), kPatienceMs).value(); }
  std::string Url(std::string_view target) { return base::StrCat("http://", server->address(), target); }
  bool MetricHas(std::string_view line) { return registry.Exposition().find(line) != std::string::npos; }

  base::Registry registry;
  Parked parked;
  std::vector<std::future<void>> threads;  // of one socket thread's handlers
  std::unique_ptr<Server> server;
};

ServerConfig OneThread() {
  ServerConfig config;
  config.threads = 1;
  return config;
}

// What the server says to raw bytes, and whether it closes afterwards.
int StatusOf(Fixture& f, std::string_view bytes) {
  Connection c = f.Connect();
  REQUIRE(c.SendRaw(bytes, kPatienceMs).ok());
  const auto response = c.ReadResponse(kPatienceMs);
  INFO(response.status());
  REQUIRE(response.ok());
  if (response->status >= 400) CHECK(response->Header("connection") == "close");
  return response->status;
}

TEST_CASE("a request gets its answer") {
  Fixture f;
  const ClientResponse r = Get(f.Url("/echo?a=b%20c"), {}, kPatienceMs).value();
  CHECK(r.status == 200);
  CHECK(r.body == "GET /echo?a=b%20c ");
  CHECK(r.Header("content-type") == "text/plain; charset=utf-8");
  CHECK_FALSE(r.Header("date").empty());
  CHECK(Post(f.Url("/echo"), {}, "hello", kPatienceMs)->body == "POST /echo? hello");
  CHECK(Get(f.Url("/label/a%2Fb"), {}, kPatienceMs)->body == "a/b");
}

TEST_CASE("the absolute form of a target is understood") {
  Fixture f;
  Connection c = f.Connect();
  REQUIRE(c.SendRaw("GET http://example.org/echo?q HTTP/1.1\r\nHost: x\r\n\r\n", kPatienceMs).ok());
  CHECK(c.ReadResponse(kPatienceMs)->body == "GET /echo?q ");
}

TEST_CASE("a connection is kept") {
  Fixture f;
  Connection c = f.Connect();
  for (int i = 0; i < 300; ++i) {
    REQUIRE(c.Send("GET", base::StrCat("/echo?", i), {}, {}, kPatienceMs)->body == base::StrCat("GET /echo?", i, " "));
  }
  CHECK(f.MetricHas("varve_http_connections_accepted_total 1\n"));
}

TEST_CASE("pipelined requests are answered in order") {
  Fixture f(OneThread());
  Connection c = f.Connect();
  std::string bytes;
  for (int i = 0; i < 200; ++i) {
    base::StrAppend(bytes, "GET ", i % 3 == 0 ? "/other-thread" : "/echo", "?", i, " HTTP/1.1\r\nHost: x\r\n\r\n");
    base::StrAppend(bytes, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
  }
  REQUIRE(c.SendRaw(bytes, kPatienceMs).ok());
  for (int i = 0; i < 200; ++i) {
    REQUIRE(c.ReadResponse(kPatienceMs)->body == (i % 3 == 0 ? base::StrCat(i) : base::StrCat("GET /echo?", i, " ")));
    REQUIRE(c.ReadResponse(kPatienceMs)->body == "POST /echo? abc");
  }
}

TEST_CASE("a request may come one byte at a time") {
  Fixture f;
  Connection c = f.Connect();
  const std::string bytes =
      "\r\nPOST /echo?x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;ext=1\r\n world\r\n"
      "0\r\nTrailer: t\r\n\r\n";
  for (const char byte : bytes) REQUIRE(c.SendRaw({&byte, 1}, kPatienceMs).ok());
  CHECK(c.ReadResponse(kPatienceMs)->body == "POST /echo?x hello world");
  CHECK(c.Send("GET", "/echo", {}, {}, kPatienceMs)->body == "GET /echo? ");
}

TEST_CASE("large bodies arrive whole, with a length and in chunks") {
  Fixture f;
  Connection c = f.Connect();
  for (const size_t size : {1u, 4096u, 65536u, 8u << 20, 100u}) {
    CHECK(c.Send("POST", "/size", {}, std::string(size, 'b'), kPatienceMs)->body == base::StrCat(size));
  }
  std::string chunked = "POST /size HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 100; ++i) base::StrAppend(chunked, "10000\r\n", std::string(0x10000, 'c'), "\r\n");
  chunked += "0\r\n\r\n";
  REQUIRE(c.SendRaw(chunked, kPatienceMs).ok());
  CHECK(c.ReadResponse(kPatienceMs)->body == base::StrCat(100 * 0x10000));
}

TEST_CASE("HEAD is GET without the body") {
  Fixture f;
  Connection c = f.Connect();
  const ClientResponse head = c.Send("HEAD", "/large", {}, {}, kPatienceMs).value();
  CHECK(head.status == 200);
  CHECK(head.Header("content-length") == "200000");
  CHECK(head.body.empty());
  CHECK(c.Send("GET", "/echo", {}, {}, kPatienceMs)->status == 200);
}

TEST_CASE("HTTP 1.0 closes unless asked to stay") {
  Fixture f;
  {
    Connection c = f.Connect();
    REQUIRE(c.SendRaw("GET /echo HTTP/1.0\r\n\r\n", kPatienceMs).ok());
    CHECK(c.ReadResponse(kPatienceMs)->Header("connection") == "close");
    CHECK(absl::IsUnavailable(c.ReadResponse(kPatienceMs).status()));
  }
  Connection c = f.Connect();
  for (int i = 0; i < 3; ++i) {
    REQUIRE(c.SendRaw("GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", kPatienceMs).ok());
    CHECK(c.ReadResponse(kPatienceMs)->Header("connection") == "keep-alive");
  }
}

TEST_CASE("connection close is honoured") {
  Fixture f;
  Connection c = f.Connect();
  CHECK(c.Send("GET", "/echo", {{"Connection", "close"}}, {}, kPatienceMs)->Header("connection") == "close");
  CHECK(absl::IsUnavailable(c.ReadResponse(kPatienceMs).status()));
}

TEST_CASE("unknown paths and methods say what is there") {
  Fixture f;
  const ClientResponse missing = Get(f.Url("/nope"), {}, kPatienceMs).value();
  CHECK(missing.status == 404);
  CHECK(missing.body == "nothing at /nope\n");
  Connection c = f.Connect();
  const ClientResponse wrong = c.Send("DELETE", "/echo", {}, {}, kPatienceMs).value();
  CHECK(wrong.status == 405);
  CHECK(wrong.Header("allow") == "GET, HEAD, POST");
  CHECK(c.Send("GET", "/echo", {}, {}, kPatienceMs)->status == 200);
  CHECK(c.Send("GET", "/%zz", {}, {}, kPatienceMs)->status == 400);
}

TEST_CASE("garbage gets an answer") {
  Fixture f;
  CHECK(StatusOf(f, "garbage\r\n\r\n") == 400);
  CHECK(StatusOf(f, "GET\r\n\r\n") == 400);
  CHECK(StatusOf(f, "GET /echo\r\n\r\n") == 400);
  CHECK(StatusOf(f, "\x16\x03\x01\x02\x01\x01\x01\xfc\x03\x03 tls hello\r\n\r\n") == 400);
  CHECK(StatusOf(f, "GET /echo HTTP/3.7\r\n\r\n") == 505);
  CHECK(StatusOf(f, "GET /echo HTTP/1.1\r\nno colon here\r\n\r\n") == 400);
  CHECK(StatusOf(f, "GET /echo HTTP/1.1\r\nHost : x\r\n\r\n") == 400);
  CHECK(StatusOf(f, "POST /echo HTTP/1.1\r\nContent-Length: abc\r\n\r\n") == 400);
  CHECK(StatusOf(f, "POST /echo HTTP/1.1\r\nContent-Length: -1\r\n\r\n") == 400);
  CHECK(StatusOf(f, "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n") == 400);
  CHECK(StatusOf(f, "CONNECT example.org:443 HTTP/1.1\r\nConnection: close\r\n\r\n") == 400);
  CHECK(f.MetricHas("varve_http_requests_refused_total{reason=\"malformed\"} 10\n"));
}

TEST_CASE("two lengths that contradict each other are refused") {
  Fixture f;
  CHECK(StatusOf(f, "POST /echo HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd") == 400);
  CHECK(StatusOf(f, "POST /echo HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") == 400);
  CHECK(StatusOf(f, "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n") == 400);
}

TEST_CASE("a request that ends in the middle is answered before the connection closes") {
  Fixture f;
  Connection c = f.Connect();
  REQUIRE(c.SendRaw("POST /echo HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc", kPatienceMs).ok());
  c.ShutdownWrite();
  CHECK(c.ReadResponse(kPatienceMs)->status == 400);
}

TEST_CASE("bodies beyond the limit are refused and the answer survives the unread bytes") {
  ServerConfig config;
  config.body_bytes_max = 1 << 20;
  Fixture f(config);
  CHECK(Post(f.Url("/size"), {}, std::string(1 << 20, 'x'), kPatienceMs)->status == 200);
  const ClientResponse declared = Post(f.Url("/size"), {}, std::string((1 << 20) + 1, 'x'), kPatienceMs).value();
  CHECK(declared.status == 413);
  CHECK(declared.body.find("--http.body-bytes-max") != std::string::npos);
  Connection c = f.Connect();
  REQUIRE(c.SendRaw("POST /size HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", kPatienceMs).ok());
  absl::Status sent;
  for (int i = 0; i < 40 && sent.ok(); ++i) {
    sent = c.SendRaw(base::StrCat("10000\r\n", std::string(0x10000, 'c'), "\r\n"), kPatienceMs);
  }
  CHECK(c.ReadResponse(kPatienceMs)->status == 413);
}

TEST_CASE("headers beyond the limit are refused") {
  ServerConfig config;
  config.header_bytes_max = 4096;
  Fixture f(config);
  CHECK(StatusOf(f, base::StrCat("GET /echo HTTP/1.1\r\nX: ", std::string(3000, 'x'), "\r\n\r\n")) == 200);
  CHECK(StatusOf(f, base::StrCat("GET /echo HTTP/1.1\r\nX: ", std::string(9000, 'x'), "\r\n\r\n")) == 431);
  CHECK(StatusOf(f, base::StrCat("GET /", std::string(9000, 'x'))) == 431);
}

TEST_CASE("an endless chunk header is refused") {
  ServerConfig config;
  config.header_bytes_max = 4096;
  Fixture f(config);
  Connection c = f.Connect();
  REQUIRE(c.SendRaw("POST /size HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;x=", kPatienceMs).ok());
  absl::Status sent;
  for (int i = 0; i < 100 && sent.ok(); ++i) sent = c.SendRaw(std::string(4096, 'e'), kPatienceMs);
  CHECK(c.ReadResponse(kPatienceMs)->status == 400);
}

TEST_CASE("expect 100-continue is granted before the body is sent") {
  Fixture f;
  Connection c = f.Connect();
  REQUIRE(c.SendRaw("POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n", kPatienceMs).ok());
  CHECK(c.ReadResponse(kPatienceMs, /*to_head=*/true)->status == 100);
  REQUIRE(c.SendRaw("ok", kPatienceMs).ok());
  CHECK(c.ReadResponse(kPatienceMs)->body == "POST /echo? ok");
  CHECK(StatusOf(f, "POST /echo HTTP/1.1\r\nExpect: miracles\r\nContent-Length: 2\r\n\r\n") == 417);
}

TEST_CASE("a body over the limit is refused instead of asked for") {
  Fixture f;
  CHECK(StatusOf(f, "POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 999999999\r\n\r\n") == 413);
}

std::string Gunzip(const std::string& bytes) {
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, MAX_WBITS + 16) == Z_OK);
  std::string out(1 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

TEST_CASE("large answers are compressed for those who can read them") {
  Fixture f;
  const ClientResponse small = Get(f.Url("/large"), {{"Accept-Encoding", "deflate, gzip"}}, kPatienceMs).value();
  CHECK(small.Header("content-encoding") == "gzip");
  CHECK(small.Header("vary") == "Accept-Encoding");
  CHECK(small.body.size() < 10'000);
  CHECK(Gunzip(small.body) == std::string(200'000, 'x'));
  CHECK(Get(f.Url("/large"), {}, kPatienceMs)->body.size() == 200'000);
  CHECK(Get(f.Url("/large"), {{"Accept-Encoding", "gzip;q=0"}}, kPatienceMs)->body.size() == 200'000);
  CHECK(Get(f.Url("/echo"), {{"Accept-Encoding", "gzip"}}, kPatienceMs)->Header("content-encoding").empty());
}

TEST_CASE("a dropped request and a throwing handler are internal errors") {
  Fixture f;
  Connection c = f.Connect();
  CHECK(c.Send("GET", "/dropped", {}, {}, kPatienceMs)->status == 500);
  CHECK(c.Send("GET", "/threw", {}, {}, kPatienceMs)->status == 500);
  CHECK(c.Send("GET", "/echo", {}, {}, kPatienceMs)->status == 200);
}

TEST_CASE("an answer may come late and from another thread") {
  Fixture f;
  Connection c = f.Connect();
  REQUIRE(c.SendRaw("GET /parked HTTP/1.1\r\nHost: x\r\n\r\n", kPatienceMs).ok());
  Parked::Item item = f.parked.Take();
  CHECK(item.request->cancel->Check().ok());
  CHECK(f.MetricHas("varve_http_requests_in_flight 1\n"));
  item.respond(Response::Text(202, "late"));
  CHECK(c.ReadResponse(kPatienceMs)->body == "late");
  CHECK(f.MetricHas("varve_http_requests_in_flight 0\n"));
  item.respond(Response::Text(200, "again"));  // ignored
  CHECK(c.Send("GET", "/echo", {}, {}, kPatienceMs)->body == "GET /echo? ");
}

TEST_CASE("a client that goes away cancels its request") {
  Fixture f;
  std::optional<Connection> c = f.Connect();
  REQUIRE(c->SendRaw("GET /parked HTTP/1.1\r\nHost: x\r\n\r\n", kPatienceMs).ok());
  Parked::Item item = f.parked.Take();
  CHECK(item.request->cancel->Check().ok());
  c.reset();
  CHECK(Eventually([&] { return absl::IsCancelled(item.request->cancel->Check()); }));
  item.respond(Response::Text(200, "nobody listens"));
  CHECK(Eventually([&] { return f.MetricHas("varve_http_connections 0\n"); }));
}

TEST_CASE("a client that goes away behind pipelined bytes cancels its request too") {
  Fixture f;
  std::optional<Connection> c = f.Connect();
  REQUIRE(c->SendRaw("GET /parked HTTP/1.1\r\nHost: x\r\n\r\n", kPatienceMs).ok());
  Parked::Item item = f.parked.Take();
  REQUIRE(c->SendRaw("GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", kPatienceMs).ok());
  c.reset();
  CHECK(Eventually([&] { return absl::IsCancelled(item.request->cancel->Check()); }));
}

TEST_CASE("a client that only stops sending still gets its answer") {
  Fixture f;
  Connection c = f.Connect();
  REQUIRE(c.SendRaw("GET /parked HTTP/1.1\r\nHost: x\r\n\r\n", kPatienceMs).ok());
  c.ShutdownWrite();
  Parked::Item item = f.parked.Take();
  item.respond(Response::Text(200, "still here"));
  CHECK(c.ReadResponse(kPatienceMs)->body == "still here");
}

TEST_CASE("slow requests time out with 408 and idle connections are closed") {
  ServerConfig config;
  config.read_timeout_ms = 50;
  config.idle_timeout_ms = 100;
  Fixture f(config);
  CHECK(StatusOf(f, "GET /echo HTTP/1.1\r\nHo") == 408);
  CHECK(StatusOf(f, "POST /echo HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc") == 408);
  Connection idle = f.Connect();
  CHECK(idle.Send("GET", "/echo", {}, {}, kPatienceMs)->status == 200);
  CHECK(absl::IsUnavailable(idle.ReadResponse(kPatienceMs).status()));
}

TEST_CASE("a client that does not read its answer is cut off") {
  ServerConfig config;
  config.write_timeout_ms = 50;
  Fixture f(config);
  Connection c = f.Connect();
  std::string bytes;
  for (int i = 0; i < 200; ++i) bytes += "GET /large HTTP/1.1\r\nHost: x\r\n\r\n";
  REQUIRE(c.SendRaw(bytes, kPatienceMs).ok());
  REQUIRE(Eventually([&] { return f.MetricHas("varve_http_connections 1\n"); }));
  CHECK(Eventually([&] { return f.MetricHas("varve_http_connections 0\n"); }));
}

TEST_CASE("a handler may take longer than every timeout") {
  ServerConfig config;
  config.read_timeout_ms = config.idle_timeout_ms = config.write_timeout_ms = 20;
  Fixture f(config);
  Connection slow = f.Connect(), other = f.Connect();
  REQUIRE(slow.SendRaw("GET /parked HTTP/1.1\r\nHost: x\r\n\r\n", kPatienceMs).ok());
  Parked::Item item = f.parked.Take();
  CHECK(absl::IsUnavailable(other.ReadResponse(kPatienceMs).status()));  // the idle timeout has passed for this one
  item.respond(Response::Text(200, "done"));
  CHECK(slow.ReadResponse(kPatienceMs)->body == "done");
}

TEST_CASE("connections beyond the limit wait their turn") {
  ServerConfig config = OneThread();
  config.connections_max = 2;
  Fixture f(config);
  std::optional<Connection> a = f.Connect(), b = f.Connect();
  CHECK(a->Send("GET", "/echo", {}, {}, kPatienceMs)->status == 200);
  CHECK(b->Send("GET", "/echo", {}, {}, kPatienceMs)->status == 200);
  Connection c = f.Connect();  // the kernel takes it, the server does not
  REQUIRE(c.SendRaw("GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", kPatienceMs).ok());
  CHECK(Eventually([&] { return !f.MetricHas("varve_http_accept_waits_total 0\n"); }));
  CHECK(absl::IsDeadlineExceeded(c.ReadResponse(50).status()));
  a.reset();
  CHECK(c.ReadResponse(kPatienceMs)->status == 200);
}

TEST_CASE("bytes of bodies in flight are bounded") {
  ServerConfig config;
  config.body_bytes_max = 1000;
  config.inflight_body_bytes_max = 1500;
  Fixture f(config);
  Connection a = f.Connect();
  REQUIRE(a.SendRaw(base::StrCat("POST /parked HTTP/1.1\r\nContent-Length: 1000\r\n\r\n", std::string(1000, 'x')),
                    kPatienceMs)
              .ok());
  std::optional<Parked::Item> item = f.parked.Take();
  const ClientResponse busy = Post(f.Url("/size"), {}, std::string(1000, 'y'), kPatienceMs).value();
  CHECK(busy.status == 503);
  CHECK(busy.Header("retry-after") == "1");
  CHECK(StatusOf(f, base::StrCat("POST /size HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n300\r\n",
                                 std::string(0x300, 'z'), "\r\n0\r\n\r\n")) == 503);
  CHECK(Post(f.Url("/size"), {}, std::string(400, 'y'), kPatienceMs)->status == 200);
  item->respond(Response::Text(200, "ok"));
  CHECK(a.ReadResponse(kPatienceMs)->status == 200);
  item.reset();  // the last user of the body
  CHECK(Eventually([&] { return Post(f.Url("/size"), {}, std::string(1000, 'y'), kPatienceMs)->status == 200; }));
}

TEST_CASE("bodies that are announced and do not come keep nobody out") {
  ServerConfig config;
  config.body_bytes_max = 1000;
  config.inflight_body_bytes_max = 3500;  // an answer may come before its request's bytes are given back
  Fixture f(config);
  std::vector<Connection> slow;
  for (int i = 0; i < 8; ++i) {
    slow.push_back(f.Connect());
    REQUIRE(slow.back().SendRaw("POST /size HTTP/1.1\r\nContent-Length: 1000\r\n\r\nx", kPatienceMs).ok());
  }
  CHECK(Post(f.Url("/size"), {}, std::string(1000, 'y'), kPatienceMs)->status == 200);
  // Each of them gets its turn when its body comes after all.
  for (Connection& one : slow) {
    REQUIRE(one.SendRaw(std::string(999, 'x'), kPatienceMs).ok());
    CHECK(one.ReadResponse(kPatienceMs)->status == 200);
  }
}

TEST_CASE("stopping lets running requests finish") {
  Fixture f;
  Connection running = f.Connect(), idle = f.Connect();
  CHECK(idle.Send("GET", "/echo", {}, {}, kPatienceMs)->status == 200);
  REQUIRE(running.SendRaw("GET /parked HTTP/1.1\r\nHost: x\r\n\r\n", kPatienceMs).ok());
  Parked::Item item = f.parked.Take();
  const int port = f.server->port();
  auto stopped = std::async(std::launch::async, [&] { f.server->Stop(kPatienceMs); });
  CHECK(absl::IsUnavailable(idle.ReadResponse(kPatienceMs).status()));
  CHECK(Eventually([&] { return !Connection::Open("127.0.0.1", port, 1000).ok(); }));
  CHECK(item.request->cancel->Check().ok());
  item.respond(Response::Text(200, "finished"));
  const ClientResponse last = running.ReadResponse(kPatienceMs).value();
  CHECK(last.body == "finished");
  CHECK(last.Header("connection") == "close");
  stopped.get();
}

TEST_CASE("stopping cancels what does not finish and does not wait for ever") {
  Fixture f;
  Connection obeys = f.Connect(), ignores = f.Connect();
  REQUIRE(obeys.SendRaw("GET /parked?obeys HTTP/1.1\r\nHost: x\r\n\r\n", kPatienceMs).ok());
  Parked::Item first = f.parked.Take();
  REQUIRE(ignores.SendRaw("GET /parked?ignores HTTP/1.1\r\nHost: x\r\n\r\n", kPatienceMs).ok());
  Parked::Item second = f.parked.Take();
  auto stopped = std::async(std::launch::async, [&] { f.server->Stop(10); });
  CHECK(Eventually([&] { return absl::IsCancelled(first.request->cancel->Check()); }));
  first.respond(Response::Text(503, "cancelled"));
  CHECK(obeys.ReadResponse(kPatienceMs)->status == 503);
  stopped.get();
  CHECK(absl::IsUnavailable(ignores.ReadResponse(kPatienceMs).status()));
  f.server.reset();
  second.respond(Response::Text(200, "far too late"));  // must not crash
}

TEST_CASE("metrics know routes by pattern and status by class") {
  Fixture f;
  CHECK(Get(f.Url("/label/one"), {}, kPatienceMs)->status == 200);
  CHECK(Get(f.Url("/label/two"), {}, kPatienceMs)->status == 200);
  CHECK(Get(f.Url("/nope"), {}, kPatienceMs)->status == 404);
  CHECK(Eventually([&] {
    return f.MetricHas(
               "varve_http_request_duration_seconds_count{route=\"/label/{name}\",method=\"GET\",status_class=\"2xx\"} "
               "2\n") &&
           f.MetricHas(
               "varve_http_request_duration_seconds_count{route=\"other\",method=\"other\",status_class=\"4xx\"} 1\n");
  }));
}

TEST_CASE("a taken address and senseless settings are explained") {
  Fixture f;
  base::Registry registry;
  ServerConfig config;
  config.listen = f.server->address();
  const auto taken = Server::Start(config, Router(), base::Logger::Silent(), registry);
  CHECK(absl::IsUnavailable(taken.status()));
  CHECK(std::string(taken.status().message()).find(config.listen) != std::string::npos);
  for (const char* bad : {"", "localhost", "1.2.3.4:", "1.2.3.4:70000", "::1:80", "1.2.3.4:x"}) {
    config.listen = bad;
    INFO(bad);
    CHECK(absl::IsInvalidArgument(Server::Start(config, Router(), base::Logger::Silent(), registry).status()));
  }
  config = ServerConfig();
  config.inflight_body_bytes_max = 1;
  CHECK(absl::IsInvalidArgument(config.Validate()));
}

TEST_CASE("many clients at once all get their own answers") {
  Fixture f;
  std::vector<std::future<bool>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::async(std::launch::async, [&f, i] {
      Connection c = f.Connect();
      for (int k = 0; k < 200; ++k) {
        const std::string body = base::StrCat(i, "-", k, std::string(static_cast<size_t>(k) * 50, '.'));
        const auto response = c.Send("POST", "/echo", {}, body, kPatienceMs);
        if (!response.ok() || response->body != base::StrCat("POST /echo? ", body)) return false;
      }
      return true;
    }));
  }
  for (auto& client : clients) CHECK(client.get());
}

}  // namespace
}  // namespace varve::http
