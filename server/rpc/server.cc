#include "server/rpc/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <chrono>
#include <mutex>

#include "storage/base/bytes.h"
#include "storage/base/strings.h"

namespace varve::rpc {
namespace {

std::chrono::system_clock::time_point After(int64_t ms) {
  return std::chrono::system_clock::now() + std::chrono::milliseconds(ms);
}

}  // namespace

struct Server::Impl {
  std::unique_ptr<grpc::Server> server;
  int port = 0;
  bool stopped = false;
};

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerConfig& config) {
  static std::once_flag once;  // both register factories for every server built afterwards
  std::call_once(once, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  });
  auto impl = std::make_unique<Impl>();
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(config.message_bytes_max);
  // Two servers on one port would share its calls at random.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(config.listen, grpc::InsecureServerCredentials(), &impl->port);
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr || impl->port == 0) {
    return absl::UnavailableError(
        base::StrCat("grpc.listen ", config.listen, ": cannot listen there; is the port taken?"));
  }
  auto server = std::unique_ptr<Server>(new Server(std::move(impl)));
  server->SetServing(false);
  return server;
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() { Stop(0); }

int Server::port() const { return impl_->port; }

void Server::SetServing(bool serving, std::string_view service) {
  grpc::HealthCheckServiceInterface* health = impl_->server->GetHealthCheckService();
  if (service.empty()) {
    health->SetServingStatus(serving);  // every known service
    health->SetServingStatus("", serving);
  } else {
    health->SetServingStatus(std::string(service), serving);
  }
}

void Server::Stop(int64_t deadline_ms) {
  if (impl_->stopped) return;
  impl_->stopped = true;
  impl_->server->GetHealthCheckService()->Shutdown();
  impl_->server->Shutdown(After(deadline_ms));
  impl_->server->Wait();
}

absl::StatusOr<bool> CheckHealth(const std::string& address, const std::string& service, int64_t timeout_ms) {
  // HealthCheckRequest{service = 1} and HealthCheckResponse{status = 1} by hand: Debian ships no generated code for
  // them.
  std::string request;
  if (!service.empty()) {
    base::PutU8(request, 0x0A);
    base::PutBytes(request, service);
  }
  const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(After(timeout_ms));
  const grpc::Slice slice(request);
  const grpc::ByteBuffer request_bytes(&slice, 1);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request_bytes, &queue);
  call->StartCall();
  grpc::ByteBuffer response_bytes;
  grpc::Status status;
  call->Finish(&response_bytes, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);  // returns at the deadline at the latest
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) {
    return absl::NotFoundError(base::StrCat(address, " knows no service ", base::QuoteGo(service)));
  }
  if (!status.ok()) return absl::UnavailableError(base::StrCat(address, ": ", status.error_message()));
  grpc::Slice joined;
  if (!response_bytes.DumpToSingleSlice(&joined).ok()) return absl::InternalError("health answer unreadable");
  base::ByteReader reader({reinterpret_cast<const char*>(joined.begin()), joined.size()});
  uint64_t serving_status = 0;
  while (!reader.AtEnd()) {
    const uint64_t key = reader.Varint();
    if (key != 0x08) return absl::InternalError("health answer malformed");
    serving_status = reader.Varint();
  }
  if (!reader.ok()) return absl::InternalError("health answer malformed");
  return serving_status == 1;
}

}  // namespace varve::rpc
