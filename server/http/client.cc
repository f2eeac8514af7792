#include "server/http/client.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "storage/base/strings.h"

namespace varve::http {
namespace {

namespace beast = boost::beast;

class Deadline {
 public:
  explicit Deadline(int64_t timeout_ms) : end_(Clock::now() + std::chrono::milliseconds(timeout_ms)) {}
  int LeftMs() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
    return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_;
};

absl::Status WaitFor(int fd, short events, const Deadline& deadline, std::string_view what) {
  for (;;) {
    pollfd wanted{fd, events, 0};
    const int n = poll(&wanted, 1, deadline.LeftMs());
    if (n > 0) return absl::OkStatus();
    if (n == 0) return absl::DeadlineExceededError(base::StrCat(what, ": timed out"));
    if (errno != EINTR) return absl::UnavailableError(base::StrCat(what, ": ", std::strerror(errno)));
  }
}

absl::Status Broken(std::string_view what, int error_number) {
  return absl::UnavailableError(base::StrCat(what, ": ", std::strerror(error_number)));
}

}  // namespace

std::string_view ClientResponse::Header(std::string_view lower_case_name) const {
  for (const auto& [name, value] : headers) {
    if (name == lower_case_name) return value;
  }
  return {};
}

absl::StatusOr<Url> Url::Parse(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return absl::InvalidArgumentError(base::StrCat("URL ", base::QuoteGo(text), ": ", why));
  };
  constexpr std::string_view kScheme = "http://";
  if (!text.starts_with(kScheme)) return bad("must begin with http://");
  std::string_view rest = text.substr(kScheme.size());
  const size_t end = rest.find_first_of("/?");
  Url url;
  if (end != std::string_view::npos) url.target = base::StrCat(rest[end] == '?' ? "/" : "", rest.substr(end));
  std::string_view authority = rest.substr(0, end);
  std::string_view port;
  if (authority.starts_with('[')) {
    const size_t bracket = authority.find(']');
    if (bracket == std::string_view::npos) return bad("no closing bracket");
    url.host = authority.substr(1, bracket - 1);
    port = authority.substr(bracket + 1);
    if (!port.empty() && !port.starts_with(':')) return bad("bad port");
  } else {
    const size_t colon = authority.find(':');
    url.host = authority.substr(0, colon);
    if (colon != std::string_view::npos) port = authority.substr(colon);
  }
  if (url.host.empty()) return bad("no host");
  if (!port.empty()) {
    const auto number = base::ParseUint64(port.substr(1));
    if (!number || *number == 0 || *number > 65535) return bad("bad port");
    url.port = static_cast<int>(*number);
  }
  for (const char c : url.target) {
    if (static_cast<unsigned char>(c) <= ' ') return bad("white space must be percent-encoded");
  }
  return url;
}

struct Connection::Impl {
  ~Impl() {
    if (fd >= 0) close(fd);
  }
  int fd = -1;
  std::string where;  // for errors and the Host header
  beast::flat_buffer buffer;
};

Connection::Connection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;
Connection::~Connection() = default;

absl::StatusOr<Connection> Connection::Open(const std::string& host, int port, int64_t timeout_ms) {
  auto impl = std::make_unique<Impl>();
  impl->where = base::StrCat(host.find(':') == std::string::npos ? host : base::StrCat("[", host, "]"), ":", port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int resolved = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (resolved != 0) return absl::UnavailableError(base::StrCat(host, ": ", gai_strerror(resolved)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, freeaddrinfo);
  const Deadline deadline(timeout_ms);
  absl::Status last = absl::UnavailableError(base::StrCat(impl->where, ": no address"));
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    if (impl->fd >= 0) close(impl->fd);
    impl->fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol);
    if (impl->fd < 0) {
      last = Broken(impl->where, errno);
      continue;
    }
    if (connect(impl->fd, a->ai_addr, a->ai_addrlen) != 0 && errno != EINPROGRESS) {
      last = Broken(impl->where, errno);
      continue;
    }
    last = WaitFor(impl->fd, POLLOUT, deadline, impl->where);
    if (!last.ok()) continue;
    int error_number = 0;
    socklen_t length = sizeof error_number;
    getsockopt(impl->fd, SOL_SOCKET, SO_ERROR, &error_number, &length);
    if (error_number != 0) {
      last = Broken(impl->where, error_number);
      continue;
    }
    const int on = 1;
    setsockopt(impl->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return Connection(std::move(impl));
  }
  return last;
}

absl::Status Connection::SendRaw(std::string_view bytes, int64_t timeout_ms) {
  const Deadline deadline(timeout_ms);
  while (!bytes.empty()) {
    const ssize_t n = send(impl_->fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      RETURN_IF_ERROR(WaitFor(impl_->fd, POLLOUT, deadline, impl_->where));
    } else if (errno != EINTR) {
      return Broken(impl_->where, errno);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ClientResponse> Connection::ReadResponse(int64_t timeout_ms, bool to_head) {
  const Deadline deadline(timeout_ms);
  beast::http::response_parser<beast::http::string_body> parser;
  parser.body_limit(1ull << 32);
  parser.header_limit(1u << 20);
  parser.eager(true);
  parser.skip(to_head);
  boost::system::error_code ec;
  while (!parser.is_done()) {
    if (impl_->buffer.size() > 0) {
      impl_->buffer.consume(parser.put(impl_->buffer.data(), ec));
      if (ec && ec != beast::http::error::need_more) {
        return absl::InternalError(base::StrCat(impl_->where, ": not an HTTP answer: ", ec.message()));
      }
      if (parser.is_done()) break;
    }
    const auto room = impl_->buffer.prepare(64u << 10);
    const ssize_t n = recv(impl_->fd, room.data(), room.size(), 0);
    if (n > 0) {
      impl_->buffer.commit(static_cast<size_t>(n));
    } else if (n == 0) {
      if (!parser.is_header_done()) return absl::UnavailableError(base::StrCat(impl_->where, ": connection closed"));
      parser.put_eof(ec);
      if (ec)
        return absl::UnavailableError(base::StrCat(impl_->where, ": connection closed in the middle of an answer"));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      RETURN_IF_ERROR(WaitFor(impl_->fd, POLLIN, deadline, impl_->where));
    } else if (errno != EINTR) {
      return Broken(impl_->where, errno);
    }
  }
  auto message = parser.release();
  ClientResponse response;
  response.status = message.result_int();
  for (const auto& field : message) {
    response.headers.emplace_back(base::AsciiLower({field.name_string().data(), field.name_string().size()}),
                                  std::string(field.value().data(), field.value().size()));
  }
  response.body = std::move(message.body());
  return response;
}

absl::StatusOr<ClientResponse> Connection::Send(std::string_view method, std::string_view target,
                                                const Headers& headers, std::string_view body, int64_t timeout_ms) {
  std::string head = base::StrCat(method, " ", target, " HTTP/1.1\r\nHost: ", impl_->where, "\r\n");
  for (const auto& [name, value] : headers) {
    if ((name + value).find_first_of("\r\n") != std::string::npos) {
      return absl::InvalidArgumentError(base::StrCat("header ", base::QuoteGo(name), " contains a line break"));
    }
    base::StrAppend(head, name, ": ", value, "\r\n");
  }
  if (!body.empty() || method == "POST" || method == "PUT") {
    base::StrAppend(head, "Content-Length: ", body.size(), "\r\n");
  }
  head += "\r\n";
  // Small bodies go out with the head in one segment.
  if (body.size() <= (64u << 10)) {
    head += body;
    body = {};
  }
  absl::Status sent = SendRaw(head, timeout_ms);
  if (sent.ok()) sent = SendRaw(body, timeout_ms);
  // A server that refuses early answers and closes while we still send: its answer says why.
  if (!sent.ok() && !absl::IsUnavailable(sent)) return sent;
  auto response = ReadResponse(timeout_ms, method == "HEAD");
  if (!sent.ok() && !response.ok()) return sent;
  return response;
}

void Connection::ShutdownWrite() { shutdown(impl_->fd, SHUT_WR); }

absl::StatusOr<ClientResponse> Get(std::string_view url, const Headers& headers, int64_t timeout_ms) {
  ASSIGN_OR_RETURN(const Url where, Url::Parse(url));
  ASSIGN_OR_RETURN(Connection connection, Connection::Open(where.host, where.port, timeout_ms));
  return connection.Send("GET", where.target, headers, {}, timeout_ms);
}

absl::StatusOr<ClientResponse> Post(std::string_view url, const Headers& headers, std::string_view body,
                                    int64_t timeout_ms) {
  ASSIGN_OR_RETURN(const Url where, Url::Parse(url));
  ASSIGN_OR_RETURN(Connection connection, Connection::Open(where.host, where.port, timeout_ms));
  return connection.Send("POST", where.target, headers, body, timeout_ms);
}

}  // namespace varve::http
