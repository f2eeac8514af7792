#include "server/rpc/server.h"

#include <catch2/catch.hpp>

#include "storage/base/strings.h"

namespace varve::rpc {
namespace {

constexpr int64_t kPatienceMs = 20'000;  // only ever reached by a failing test

ServerConfig AnyPort() {
  ServerConfig config;
  config.listen = "127.0.0.1:0";
  return config;
}

TEST_CASE("health says what it was told") {
  const auto server = Server::Start(AnyPort()).value();
  const std::string address = base::StrCat("127.0.0.1:", server->port());
  CHECK(CheckHealth(address, "", kPatienceMs).value() == false);
  server->SetServing(true);
  CHECK(CheckHealth(address, "", kPatienceMs).value() == true);
  CHECK(absl::IsNotFound(CheckHealth(address, "varve.Ingester", kPatienceMs).status()));
  server->SetServing(true, "varve.Ingester");
  CHECK(CheckHealth(address, "varve.Ingester", kPatienceMs).value() == true);
  server->SetServing(false);
  CHECK(CheckHealth(address, "varve.Ingester", kPatienceMs).value() == false);
}

TEST_CASE("a stopped server is gone and may be stopped again") {
  auto server = Server::Start(AnyPort()).value();
  const std::string address = base::StrCat("127.0.0.1:", server->port());
  server->SetServing(true);
  server->Stop(1000);
  server->Stop(1000);
  CHECK(absl::IsUnavailable(CheckHealth(address, "", 1000).status()));
}

TEST_CASE("a taken or senseless address is refused") {
  const auto first = Server::Start(AnyPort()).value();
  ServerConfig config;
  config.listen = base::StrCat("127.0.0.1:", first->port());
  CHECK(absl::IsUnavailable(Server::Start(config).status()));
  config.listen = "no such host:1";
  CHECK(absl::IsUnavailable(Server::Start(config).status()));
}

}  // namespace
}  // namespace varve::rpc
