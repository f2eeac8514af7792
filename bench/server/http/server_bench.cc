// What a request costs the socket thread: its CPU time, read by the handler itself, so that the client's share and what
// else runs on the machine do not count.
#include <benchmark/benchmark.h>

#include <atomic>
#include <ctime>

#include "server/http/client.h"
#include "server/http/server.h"
#include "storage/base/check.h"
#include "storage/base/strings.h"

namespace varve::http {
namespace {

int64_t ThreadCpuNs() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

// Requests of `body_bytes` over one connection, `pipelined` at a time.
void RunRequests(benchmark::State& state, size_t body_bytes, size_t pipelined) {
  base::Registry registry;
  std::atomic<int64_t> first_ns{0}, last_ns{0}, requests{0};
  Router router;
  router.Post("/bench", [&](const std::shared_ptr<const Request>& request, const Respond& respond) {
    VARVE_CHECK(request->body.size() == body_bytes);
    const int64_t now_ns = ThreadCpuNs();
    if (requests.fetch_add(1) == 0) first_ns = now_ns;
    last_ns = now_ns;
    respond(Response::Text(200, "ok"));
  });
  ServerConfig config;
  config.listen = "127.0.0.1:0";
  config.threads = 1;
  const auto server = Server::Start(config, std::move(router), base::Logger::Silent(), registry).value();
  Connection connection = Connection::Open("127.0.0.1", server->port(), 10'000).value();
  std::string bytes;
  for (size_t i = 0; i < pipelined; ++i) {
    base::StrAppend(bytes, "POST /bench HTTP/1.1\r\nHost: 127.0.0.1:9201\r\nUser-Agent: Prometheus/3.0.0\r\n",
                    "Content-Type: application/x-protobuf\r\nContent-Encoding: snappy\r\n",
                    "X-Prometheus-Remote-Write-Version: 0.1.0\r\nContent-Length: ", body_bytes, "\r\n\r\n",
                    std::string(body_bytes, 'b'));
  }
  for (auto _ : state) {
    VARVE_CHECK(connection.SendRaw(bytes, 10'000).ok());
    for (size_t i = 0; i < pipelined; ++i) VARVE_CHECK(connection.ReadResponse(10'000)->body == "ok");
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * pipelined));
  if (requests > 1) {
    const double us = static_cast<double>(last_ns - first_ns) / 1e3 / static_cast<double>(requests - 1);
    state.counters["server_us_per_request"] = us;
    state.counters["requests_per_core_second"] = 1e6 / us;
  }
}

void SmallOneByOne(benchmark::State& state) { RunRequests(state, 10, 1); }
void SmallPipelined(benchmark::State& state) { RunRequests(state, 10, 32); }
void Post64KiB(benchmark::State& state) { RunRequests(state, 64u << 10, 1); }
void Post64KiBPipelined(benchmark::State& state) { RunRequests(state, 64u << 10, 8); }
BENCHMARK(SmallOneByOne)->UseRealTime();
BENCHMARK(SmallPipelined)->UseRealTime();
BENCHMARK(Post64KiB)->UseRealTime();
BENCHMARK(Post64KiBPipelined)->UseRealTime();

}  // namespace
}  // namespace varve::http
