#include "server/http/server.h"

#include <array>
#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <functional>
#include <limits>
#include <optional>
#include <thread>
#include <unordered_set>

#include "server/http/answer.h"
#include "server/http/compress.h"
#include "storage/base/cancel.h"
#include "storage/base/check.h"
#include "storage/base/clock.h"
#include "storage/base/mutex.h"
#include "storage/base/strings.h"

namespace varve::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;
// The concrete executor instead of any_io_executor: no virtual call per operation.
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<tcp, Executor>;
using Acceptor = asio::basic_socket_acceptor<tcp, Executor>;
using Timer =
    asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, Executor>;
template <class T>
using Awaitable = asio::awaitable<T, Executor>;
constexpr asio::as_tuple_t<asio::use_awaitable_t<Executor>> kAsTuple{};

constexpr size_t kBufferSmall = 8u << 10;
constexpr size_t kBufferLarge = 128u << 10;  // see README.md
constexpr int64_t kLingerMs = 1000;
constexpr int64_t kForcedGraceMs = 1000;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

int64_t SteadyMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// What one route has seen, by status class. Filled as classes appear.
class RouteMetrics {
 public:
  RouteMetrics(base::Registry& registry, std::string route, std::string method)
      : registry_(registry), route_(std::move(route)), method_(std::move(method)) {}
  void Observe(int status, double seconds) {
    const size_t status_class = static_cast<size_t>(std::clamp(status / 100, 1, 5));
    base::Histogram* histogram = by_class_[status_class].load(std::memory_order_acquire);
    if (histogram == nullptr) {
      histogram = &registry_.AddHistogram(
          "varve_http_request_duration_seconds", "Time from a request's last byte to its answer's last byte.",
          base::Histogram::LatencySeconds(),
          {{"route", route_}, {"method", method_}, {"status_class", base::StrCat(status_class, "xx")}});
      by_class_[status_class].store(histogram, std::memory_order_release);
    }
    histogram->Observe(seconds);
  }

 private:
  base::Registry& registry_;
  const std::string route_, method_;
  std::array<std::atomic<base::Histogram*>, 6> by_class_{};
};

struct Metrics {
  explicit Metrics(base::Registry& r)
      : connections(r.AddGauge("varve_http_connections", "Open connections.")),
        in_flight(r.AddGauge("varve_http_requests_in_flight", "Requests whose handler has not answered yet.")),
        accepted(r.AddCounter("varve_http_connections_accepted_total", "Connections accepted.")),
        accept_waits(r.AddCounter("varve_http_accept_waits_total",
                                  "Times that accepting paused because http.connections-max was reached.")),
        request_bytes(r.AddCounter("varve_http_request_body_bytes_total", "Body bytes of requests as received.")),
        response_bytes(r.AddCounter("varve_http_response_bytes_total", "Bytes of answers as sent.")),
        cancelled(
            r.AddCounter("varve_http_requests_cancelled_total", "Requests whose client went away before the answer.")),
        registry(r) {}
  base::Counter& Refused(std::string_view reason) {
    return registry.AddCounter("varve_http_requests_refused_total",
                               "Requests answered by the listener itself, before any handler.",
                               {{"reason", std::string(reason)}});
  }
  base::Gauge& connections;
  base::Gauge& in_flight;
  base::Counter& accepted;
  base::Counter& accept_waits;
  base::Counter& request_bytes;
  base::Counter& response_bytes;
  base::Counter& cancelled;
  base::Registry& registry;
};

class Session;

// One event loop and the connections that live on it. Its sessions are touched by its thread only.
struct IoThread {
  IoThread() : guard(io.get_executor()), sweep_timer(io.get_executor()) {}
  asio::io_context io{1};
  asio::executor_work_guard<Executor> guard;
  Timer sweep_timer;
  std::thread thread;
  std::atomic<int64_t> connections{0};
  std::unordered_set<Session*> sessions;
  std::string date;
  int64_t date_second = 0;
};

// What all sessions of a server share. Any thread.
struct Shared {
  Shared(const ServerConfig& c, Router r, const base::Logger& l, base::Registry& registry)
      : config(c), router(std::move(r)), logger(l), metrics(registry), unmatched(registry, "other", "other") {
    for (size_t i = 0; i < router.size(); ++i) {
      routes.push_back(std::make_unique<RouteMetrics>(registry, router.at(i).pattern, router.at(i).method));
    }
  }
  const ServerConfig config;
  const Router router;
  const base::Logger logger;
  Metrics metrics;
  RouteMetrics unmatched;
  std::vector<std::unique_ptr<RouteMetrics>> routes;
  base::SystemClock clock;
  // Outlives the server as long as a handler keeps a request.
  std::shared_ptr<base::MemoryBudget> bodies =
      std::make_shared<base::MemoryBudget>(static_cast<int64_t>(config.inflight_body_bytes_max));
  std::atomic<bool> draining{false};
  std::atomic<int64_t> connections{0};
  std::function<void()> connection_ended;  // wakes the acceptor and Stop
};

// Gives its body's bytes back to the budget when the last user lets go of it.
struct BudgetedRequest : Request {
  ~BudgetedRequest() { budget->Release(charged); }
  std::shared_ptr<base::MemoryBudget> budget;
  int64_t charged = 0;
};

// The way back from a handler to its session. Any thread.
class Exchange {
 public:
  Exchange(std::shared_ptr<Session> session, bool gzip, size_t gzip_bytes_min)
      : gzip_(gzip), gzip_bytes_min_(gzip_bytes_min), session_(std::move(session)) {}
  void Deliver(Response response);
  // The session no longer wants an answer.
  void Abandon() {
    std::shared_ptr<Session> last;  // released after the lock
    base::MutexLock lock(mu_);
    last.swap(session_);
  }

 private:
  const bool gzip_;
  const size_t gzip_bytes_min_;
  base::Mutex mu_;                                         // the event loop's own lock is taken under it
  std::shared_ptr<Session> session_ ABSL_GUARDED_BY(mu_);  // null once delivered or abandoned
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Shared& shared, IoThread& thread, Socket socket)
      : shared_(shared), thread_(thread), socket_(std::move(socket)) {}

  void Start() {
    error_code ec;
    socket_.set_option(tcp::no_delay(true), ec);
    socket_.native_non_blocking(true, ec);
    const auto peer = socket_.remote_endpoint(ec);
    if (!ec) remote_address_ = peer.address().to_string();
    thread_.sessions.insert(this);
    deadline_ms_ = SteadyMs() + shared_.config.idle_timeout_ms;
    asio::co_spawn(
        thread_.io, [self = shared_from_this()]() { return self->Run(); },
        [self = shared_from_this()](std::exception_ptr error) { self->End(error); });
  }

  // Called by the sweep.
  void CheckDeadline(int64_t now_ms) {
    if (now_ms < deadline_ms_) return;
    error_code ec;
    if (phase_ == Phase::kReading) {
      timed_out_ = true;  // the reader answers 408
      socket_.cancel(ec);
    } else if (phase_ != Phase::kHandling) {
      forced_ = true;
      socket_.close(ec);
    }
  }
  void CloseIfIdle() {
    if (phase_ == Phase::kIdle) ForceClose();
  }
  void CancelRequest() {
    if (request_ != nullptr) request_->cancel->Request();
  }
  void ForceClose() {
    forced_ = true;
    error_code ec;
    socket_.close(ec);
    if (wake_) std::exchange(wake_, nullptr)();
  }

  // An answer that comes while the handler is still on the stack needs no trip through the event loop.
  bool InHandler() const { return std::this_thread::get_id() == thread_.thread.get_id() && in_handler_; }
  void OnAnswer(Response response) {
    response_ = std::move(response);
    if (wake_) std::exchange(wake_, nullptr)();
  }
  Executor executor() { return thread_.io.get_executor(); }

 private:
  enum class Phase { kIdle, kReading, kHandling, kWriting, kLingering };
  using Parser = beast::http::request_parser<beast::http::string_body>;

  // What a request needs while it is read, beside the parser.
  struct Incoming {
    int64_t charged = 0;
    int refusal = 0;  // status of the answer that ends the connection; -1: end it without one
    std::string_view reason, text;

    void Refuse(int status, std::string_view why, std::string_view words) {
      refusal = status, reason = why, text = words;
    }
  };

  Awaitable<void> Run() {
    bool keep = true, unread = false;
    while (keep && !forced_) {
      phase_ = Phase::kIdle;
      deadline_ms_ = SteadyMs() + shared_.config.idle_timeout_ms;
      SkipEmptyLines();
      if (buffer_.size() == 0) {
        if (shared_.draining.load(std::memory_order_relaxed)) break;
        if (!co_await ReadSome()) break;
        SkipEmptyLines();
        if (buffer_.size() == 0) continue;
      }
      phase_ = Phase::kReading;
      deadline_ms_ = SteadyMs() + shared_.config.read_timeout_ms;
      timed_out_ = false;
      parser_.emplace();
      Incoming incoming;
      co_await ReadRequest(incoming);
      if (incoming.refusal != 0) {
        shared_.bodies->Release(incoming.charged);
        if (incoming.refusal > 0 && !forced_) co_await Refuse(incoming);
        unread = true;
        break;
      }
      keep = co_await Answer(incoming);
    }
    if (!forced_) co_await Close(unread || buffer_.size() > 0);
  }

  void SkipEmptyLines() {  // RFC 9112 2.2: be lenient between requests
    while (buffer_.size() > 0) {
      const char first = *static_cast<const char*>(buffer_.data().data());
      if (first != '\r' && first != '\n') return;
      buffer_.consume(1);
    }
  }

  // False at end of stream, error and time-out.
  Awaitable<bool> ReadSome() {
    if (buffer_.capacity() == 0) buffer_.reserve(kBufferSmall);
    const size_t room = std::max(buffer_.capacity() - buffer_.size(), size_t{2048});
    auto [ec, n] = co_await socket_.async_read_some(buffer_.prepare(room), kAsTuple);
    buffer_.commit(n);
    co_return !ec && n > 0;
  }

  Awaitable<void> ReadRequest(Incoming& incoming) {
    const ServerConfig& config = shared_.config;
    Parser& parser = *parser_;
    parser.header_limit(static_cast<uint32_t>(config.header_bytes_max));
    parser.body_limit(config.body_bytes_max);
    bool header_done = false;
    for (;;) {
      error_code ec;
      if (buffer_.size() > 0) {
        buffer_.consume(parser.put(buffer_.data(), ec));
        if (ec == beast::http::error::need_more) ec = {};
      }
      if (ec) {
        ExplainParseError(ec, incoming);
        co_return;
      }
      if (!header_done && parser.is_header_done()) {
        header_done = true;
        co_await OnHeader(incoming);
        if (incoming.refusal != 0) co_return;
        parser.eager(true);
        if (buffer_.size() > 0 && !parser.is_done()) continue;
      }
      if (header_done && !ChargeBody(incoming)) co_return;
      if (parser.is_done()) co_return;
      // Neither a header nor a chunk's size line may fill memory without end.
      if (buffer_.size() > config.header_bytes_max + kBufferLarge) {
        incoming.Refuse(400, "malformed", "bad request: chunk header too large\n");
        co_return;
      }
      const bool more = co_await ReadSome();
      if (!more) {
        if (forced_) {
          incoming.refusal = -1;
        } else if (timed_out_) {
          incoming.Refuse(408, "timeout", "the request did not arrive in time\n");
        } else {
          incoming.Refuse(400, "malformed", "bad request: connection closed in the middle of a request\n");
        }
        co_return;
      }
    }
  }

  Awaitable<void> OnHeader(Incoming& incoming) {
    const Parser& parser = *parser_;
    const auto length = parser.content_length();
    if (length && *length > buffer_.size()) {
      if (*length > kBufferSmall) buffer_.reserve(kBufferLarge);
    }
    if (!HasRoomFor(length.value_or(0), incoming) || !ChargeBody(incoming)) co_return;
    const auto expect = parser.get().find(beast::http::field::expect);
    if (expect != parser.get().end() && parser.get().version() >= 11) {
      if (!beast::iequals(expect->value(), "100-continue")) {
        incoming.Refuse(417, "expectation", "only Expect: 100-continue is understood\n");
        co_return;
      }
      if (buffer_.size() == 0 && !parser.is_done()) {
        static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
        auto [ec, n] = co_await asio::async_write(socket_, asio::buffer(kContinue.data(), kContinue.size()), kAsTuple);
        if (ec) incoming.refusal = -1;
      }
    }
  }

  // A body that cannot fit now is refused before it is sent. Nothing is set aside for it: whoever announces much and
  // sends little must not keep others out.
  bool HasRoomFor(uint64_t announced, Incoming& incoming) {
    const auto bytes = static_cast<int64_t>(announced);
    if (!shared_.bodies->TryCharge(bytes)) return RefuseBusy(incoming);
    shared_.bodies->Release(bytes);
    return true;
  }

  // Pays for what has come of the body. False when the budget for bodies is used up.
  bool ChargeBody(Incoming& incoming) {
    const int64_t grown = static_cast<int64_t>(parser_->get().body().size()) - incoming.charged;
    if (grown <= 0) return true;
    if (!shared_.bodies->TryCharge(grown)) return RefuseBusy(incoming);
    incoming.charged += grown;
    return true;
  }

  static bool RefuseBusy(Incoming& incoming) {
    incoming.Refuse(503, "busy", "too many request bytes in flight; retry later\n");
    return false;
  }

  void ExplainParseError(const error_code& ec, Incoming& incoming) {
    namespace http = beast::http;
    if (ec == http::error::body_limit) {
      message_ =
          base::StrCat("request body larger than ", shared_.config.body_bytes_max, " bytes (--http.body-bytes-max)\n");
      incoming.Refuse(413, "body-too-large", message_);
    } else if (ec == http::error::header_limit) {
      message_ = base::StrCat("request header larger than ", shared_.config.header_bytes_max,
                              " bytes (--http.header-bytes-max)\n");
      incoming.Refuse(431, "header-too-large", message_);
    } else if (ec == http::error::bad_version) {
      incoming.Refuse(505, "malformed", "only HTTP/1.1 and HTTP/1.0 are spoken here\n");
    } else {
      message_ = base::StrCat("bad request: ", ec.message(), "\n");
      incoming.Refuse(400, "malformed", message_);
    }
  }

  Awaitable<void> Refuse(const Incoming& incoming) {
    shared_.metrics.Refused(incoming.reason).Add();
    Response response = Response::Text(incoming.refusal, incoming.text);
    if (incoming.refusal == 503) response.headers.emplace_back("Retry-After", "1");
    if (shared_.logger.Enabled(base::LogLevel::kDebug)) {
      shared_.logger.Debug("http request refused",
                           {{"remote", remote_address_}, {"status", incoming.refusal}, {"reason", incoming.reason}});
    }
    co_await Write(response, {.keep_alive = false}, /*head_only=*/false);
  }

  // Runs the handler and writes its answer. False when the connection is to be closed.
  Awaitable<bool> Answer(Incoming& incoming) {
    const int64_t begin_ns = shared_.clock.MonotonicNs();
    phase_ = Phase::kHandling;
    deadline_ms_ = kNever;

    auto request = std::make_shared<BudgetedRequest>();
    request->budget = shared_.bodies;
    request->charged = incoming.charged;
    request->cancel = std::make_shared<base::Cancel>();
    request->remote_address = remote_address_;
    const bool http_1_0 = parser_->get().version() < 11;
    bool keep = parser_->keep_alive();
    const std::string raw_path = MoveInto(*request);
    shared_.metrics.request_bytes.Add(request->body.size());

    RouteMetrics* metrics = &shared_.unmatched;
    Router::Match match = shared_.router.Find(request->method, raw_path);
    auto path = PercentDecode(raw_path, /*plus_is_space=*/false);
    if (!path.ok() || !raw_path.starts_with('/')) {
      response_ = Response::Text(400, path.ok() ? "bad request: the target must be a path\n"
                                                : base::StrCat("bad request: ", base::Message(path.status()), "\n"));
    } else if (match.route != nullptr) {
      request->path = *std::move(path);
      request->path_parameters = std::move(match.path_parameters);
      metrics = shared_.routes[match.route->index].get();
      request_ = request;
      shared_.metrics.in_flight.Add(1);
      co_await CallHandler(match.route->handler, request);
      shared_.metrics.in_flight.Add(-1);
      request_.reset();
      if (!response_) co_return false;  // closed by force
    } else if (!match.allow.empty()) {
      response_ = Response::Text(
          405, base::StrCat("method ", request->method, " not allowed here; allowed: ", match.allow, "\n"));
      response_->headers.emplace_back("Allow", match.allow);
    } else {
      response_ = Response::Text(404, base::StrCat("nothing at ", *path, "\n"));
    }

    const Response response = *std::exchange(response_, std::nullopt);
    if (shared_.draining.load(std::memory_order_relaxed)) keep = false;
    const bool written =
        co_await Write(response, {.http_1_0 = http_1_0, .keep_alive = keep}, request->method == "HEAD");
    const double seconds = static_cast<double>(shared_.clock.MonotonicNs() - begin_ns) * 1e-9;
    metrics->Observe(response.status, seconds);
    if (shared_.logger.Enabled(base::LogLevel::kDebug)) {
      shared_.logger.Debug("http request", {{"remote", remote_address_},
                                            {"method", request->method},
                                            {"path", raw_path},
                                            {"status", response.status},
                                            {"request_bytes", request->body.size()},
                                            {"response_bytes", response.body.size()},
                                            {"seconds", seconds}});
    }
    co_return (keep && written);
  }

  // Fills method, query, headers and body; returns the path as it came.
  std::string MoveInto(Request& request) {
    auto& message = parser_->get();
    request.method.assign(message.method_string().data(), message.method_string().size());
    std::string_view target(message.target().data(), message.target().size());
    if (!target.starts_with('/')) {  // the absolute form, which proxies send
      const size_t scheme = target.find("://");
      if (scheme != std::string_view::npos) {
        const size_t slash = target.find_first_of("/?", scheme + 3);
        target = slash == std::string_view::npos ? "/" : target.substr(slash);
      }
    }
    target = target.substr(0, target.find('#'));
    const size_t question = target.find('?');
    if (question != std::string_view::npos) request.query = target.substr(question + 1);
    std::string raw_path(target.substr(0, question));
    for (const auto& field : message) {
      const auto name = field.name_string();
      request.headers.emplace_back(base::AsciiLower({name.data(), name.size()}),
                                   std::string(field.value().data(), field.value().size()));
    }
    request.body = std::move(message.body());
    return raw_path;
  }

  Awaitable<void> CallHandler(const Handler& handler, std::shared_ptr<BudgetedRequest> request) {
    const bool gzip = AcceptsGzip(request->Header("accept-encoding"));
    response_.reset();
    auto exchange = std::make_shared<Exchange>(shared_from_this(), gzip, shared_.config.gzip_bytes_min);
    // A handler that drops its Respond without calling it must not leave the client waiting.
    std::shared_ptr<Exchange> answerer(exchange.get(), [exchange](Exchange*) {
      exchange->Deliver(Response::Text(500, "internal error: the request was dropped\n"));
    });
    in_handler_ = true;
    try {
      handler(request, [answerer = std::move(answerer)](Response response) { answerer->Deliver(std::move(response)); });
    } catch (const std::exception& error) {  // handlers do not throw; memory that ran out does
      shared_.logger.Error("http handler threw", {{"path", request->path}, {"error", error.what()}});
      exchange->Deliver(Response::Text(500, "internal error\n"));
    }
    in_handler_ = false;
    if (!response_ && !forced_) {
      Watch();
      co_await Wait();
    }
    if (!response_) exchange->Abandon();
  }

  // Until an answer is there or the session is closed by force.
  Awaitable<void> Wait() {
    return asio::async_initiate<const asio::use_awaitable_t<Executor>, void()>(
        [this](auto handler) {
          auto shared_handler = std::make_shared<decltype(handler)>(std::move(handler));
          wake_ = [this, shared_handler] {
            // Not from here: the caller may be deep in a handler's or the sweep's stack.
            asio::post(executor(), [shared_handler] { std::move (*shared_handler)(); });
          };
        },
        asio::use_awaitable_t<Executor>());
  }

  // Looks out for the client's end of stream while a handler runs. Bytes that come meanwhile are the next request's.
  void Watch() {
    if (watching_ || buffer_.size() >= kBufferLarge) return;
    watching_ = true;
    socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const error_code& ec) {
      self->watching_ = false;
      if (!ec && self->wake_) self->OnReadable();
    });
  }
  void OnReadable() {
    error_code ec;
    const size_t n = socket_.read_some(buffer_.prepare(4096), ec);
    if (!ec && n > 0) {
      buffer_.commit(n);
      Watch();
    } else if (ec == asio::error::would_block) {
      Watch();
    } else if (request_ != nullptr) {
      shared_.metrics.cancelled.Add();
      request_->cancel->Request();
    }
  }

  Awaitable<bool> Write(const Response& response, AnswerShape shape, bool head_only) {
    phase_ = Phase::kWriting;
    deadline_ms_ = SteadyMs() + shared_.config.write_timeout_ms;
    const int64_t second = shared_.clock.NowMs() / 1000;
    if (second != thread_.date_second) thread_.date_second = second, thread_.date = HttpDate(second);
    shape.date = thread_.date;
    RenderHead(response, shape, head_);
    const std::array<asio::const_buffer, 2> bytes = {asio::buffer(head_),
                                                     head_only ? asio::const_buffer() : asio::buffer(response.body)};
    auto [ec, n] = co_await asio::async_write(socket_, bytes, kAsTuple);
    shared_.metrics.response_bytes.Add(n);
    co_return !ec;
  }

  // Where bytes may be left unread, reads on for a moment after the last answer: the kernel would reset the connection
  // and throw the answer away.
  Awaitable<void> Close(bool linger) {
    error_code ec;
    socket_.shutdown(tcp::socket::shutdown_send, ec);
    if (ec || !linger) co_return;
    phase_ = Phase::kLingering;
    deadline_ms_ = SteadyMs() + kLingerMs;
    buffer_.clear();
    for (;;) {
      auto [read_ec, n] = co_await socket_.async_read_some(buffer_.prepare(kBufferSmall), kAsTuple);
      if (read_ec || n == 0) co_return;
    }
  }

  void End(std::exception_ptr error) {
    if (error != nullptr) {
      try {
        std::rethrow_exception(error);
      } catch (const std::exception& e) {
        shared_.logger.Error("http session failed", {{"remote", remote_address_}, {"error", e.what()}});
      }
    }
    error_code ec;
    socket_.close(ec);
    thread_.sessions.erase(this);
    thread_.connections.fetch_sub(1, std::memory_order_relaxed);
    shared_.metrics.connections.Add(-1);
    shared_.connections.fetch_sub(1, std::memory_order_acq_rel);
    shared_.connection_ended();
  }

  Shared& shared_;
  IoThread& thread_;
  Socket socket_;
  std::string remote_address_;
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::string head_, message_;
  Phase phase_ = Phase::kIdle;
  int64_t deadline_ms_ = kNever;
  bool timed_out_ = false, forced_ = false, watching_ = false, in_handler_ = false;
  std::shared_ptr<BudgetedRequest> request_;  // while its handler runs
  std::optional<Response> response_;
  std::function<void()> wake_;  // set while the session waits for its answer
};

void Exchange::Deliver(Response response) {
  {
    base::MutexLock lock(mu_);
    if (session_ == nullptr) return;
  }
  MaybeGzip(response, gzip_, gzip_bytes_min_);
  std::shared_ptr<Session> session;
  base::MutexLock lock(mu_);
  session.swap(session_);
  if (session == nullptr) return;
  if (session->InHandler()) {
    session->OnAnswer(std::move(response));
    return;
  }
  // Under the lock: the event loop outlives every session that has not abandoned its exchange.
  Session* raw = session.get();
  asio::post(raw->executor(), [session = std::move(session), response = std::move(response)]() mutable {
    session->OnAnswer(std::move(response));
  });
}

struct HostPort {
  std::string host, port;
};
absl::StatusOr<HostPort> ParseListen(std::string_view listen) {
  const auto bad = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        base::StrCat("http.listen ", base::QuoteGo(listen), ": ", why, "; want host:port, for example 127.0.0.1:9201"));
  };
  const size_t colon = listen.rfind(':');
  if (colon == std::string_view::npos) return bad("no port");
  std::string_view host = listen.substr(0, colon);
  const std::string_view port = listen.substr(colon + 1);
  const auto number = base::ParseUint64(port);
  if (!number || *number > 65535) return bad("bad port");
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad("an IPv6 address stands in brackets");
  }
  return HostPort{std::string(host.empty() ? "0.0.0.0" : host), std::string(port)};
}

}  // namespace

absl::Status ServerConfig::Validate() const {
  RETURN_IF_ERROR(ParseListen(listen).status());
  const auto positive = [](std::string_view name, int64_t value) {
    return value > 0 ? absl::OkStatus()
                     : absl::InvalidArgumentError(base::StrCat("http.", name, " is ", value, "; want more than 0"));
  };
  RETURN_IF_ERROR(positive("threads", threads));
  RETURN_IF_ERROR(positive("connections-max", connections_max));
  RETURN_IF_ERROR(positive("body-bytes-max", static_cast<int64_t>(body_bytes_max)));
  RETURN_IF_ERROR(positive("idle-timeout", idle_timeout_ms));
  RETURN_IF_ERROR(positive("read-timeout", read_timeout_ms));
  RETURN_IF_ERROR(positive("write-timeout", write_timeout_ms));
  if (header_bytes_max < 1024 || header_bytes_max > (16u << 20)) {
    return absl::InvalidArgumentError(
        base::StrCat("http.header-bytes-max is ", header_bytes_max, "; want 1KiB to 16MiB"));
  }
  if (inflight_body_bytes_max < body_bytes_max) {
    return absl::InvalidArgumentError(base::StrCat("http.inflight-body-bytes-max (", inflight_body_bytes_max,
                                                   ") is less than http.body-bytes-max (", body_bytes_max,
                                                   "): a body of the allowed size could never be taken"));
  }
  return absl::OkStatus();
}

struct Server::Impl {
  Impl(const ServerConfig& config, Router router, const base::Logger& logger, base::Registry& registry)
      : shared(config, std::move(router), logger, registry) {
    for (int i = 0; i < config.threads; ++i) threads.push_back(std::make_unique<IoThread>());
    acceptor.emplace(threads[0]->io.get_executor());
    accept_timer.emplace(threads[0]->io.get_executor());
    shared.connection_ended = [this] {
      if (accept_paused.load()) {
        asio::post(threads[0]->io, [this] { accept_timer->cancel(); });
      }
      if (shared.draining.load()) {
        base::MutexLock lock(mu);
        changed.NotifyAll();
      }
    };
  }

  absl::Status Listen() {
    ASSIGN_OR_RETURN(const HostPort where, ParseListen(shared.config.listen));
    error_code ec;
    tcp::resolver resolver(threads[0]->io);
    const auto found = resolver.resolve(where.host, where.port, tcp::resolver::passive, ec);
    if (ec || found.empty()) {
      return absl::InvalidArgumentError(base::StrCat("http.listen ", shared.config.listen, ": ", ec.message()));
    }
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor->open(endpoint.protocol(), ec);
    if (!ec) acceptor->set_option(tcp::acceptor::reuse_address(true), ec);
    if (!ec) acceptor->bind(endpoint, ec);
    if (!ec) acceptor->listen(1024, ec);
    if (ec) return absl::UnavailableError(base::StrCat("http.listen ", shared.config.listen, ": ", ec.message()));
    local = acceptor->local_endpoint(ec);
    return absl::OkStatus();
  }

  void Run() {
    for (const auto& thread : threads) {
      // Set before the loop runs, as sessions compare it with their own.
      base::MutexLock lock(mu);
      thread->thread = std::thread([this, t = thread.get()] {
        {
          base::MutexLock started(mu);
        }
        Sweep(*t);
        t->io.run();
      });
    }
    asio::co_spawn(threads[0]->io, Accept(), [this](std::exception_ptr error) {
      if (error != nullptr) shared.logger.Error("http accept loop failed", {});
      base::MutexLock lock(mu);
      accepting = false;
      changed.NotifyAll();
    });
  }

  Awaitable<void> Accept() {
    while (!shared.draining.load()) {
      if (shared.connections.load() >= shared.config.connections_max) {
        shared.metrics.accept_waits.Add();
        accept_paused = true;
        // The timer is the second line: a connection may have ended before the flag was up.
        accept_timer->expires_after(std::chrono::milliseconds(50));
        if (shared.connections.load() >= shared.config.connections_max) co_await accept_timer->async_wait(kAsTuple);
        accept_paused = false;
        continue;
      }
      IoThread* target = threads[0].get();
      for (const auto& thread : threads) {
        if (thread->connections.load() < target->connections.load()) target = thread.get();
      }
      Socket socket(target->io.get_executor());
      auto [ec] = co_await acceptor->async_accept(socket, kAsTuple);
      if (shared.draining.load()) break;
      if (ec) {
        if (ec == asio::error::operation_aborted || ec == asio::error::bad_descriptor) break;
        if (ec != asio::error::connection_aborted) {  // out of descriptors, most likely
          shared.logger.Warn("http accept failed", {{"error", ec.message()}});
          accept_timer->expires_after(std::chrono::milliseconds(100));
          co_await accept_timer->async_wait(kAsTuple);
        }
        continue;
      }
      target->connections.fetch_add(1);
      shared.connections.fetch_add(1);
      shared.metrics.connections.Add(1);
      shared.metrics.accepted.Add();
      auto session = std::make_shared<Session>(shared, *target, std::move(socket));
      asio::post(target->io, [session = std::move(session)] { session->Start(); });
    }
    error_code ec;
    acceptor->close(ec);
  }

  void Sweep(IoThread& thread) {
    const ServerConfig& config = shared.config;
    const int64_t shortest =
        std::min({config.idle_timeout_ms, config.read_timeout_ms, config.write_timeout_ms, kLingerMs});
    thread.sweep_timer.expires_after(std::chrono::milliseconds(std::clamp<int64_t>(shortest / 4, 5, 250)));
    thread.sweep_timer.async_wait([this, &thread](const error_code& ec) {
      if (ec) return;
      const int64_t now_ms = SteadyMs();
      for (Session* session : thread.sessions) session->CheckDeadline(now_ms);
      Sweep(thread);
    });
  }

  void OnAllSessions(void (Session::*action)()) {
    for (const auto& thread : threads) {
      asio::post(thread->io, [t = thread.get(), action] {
        for (Session* session : t->sessions) (session->*action)();
      });
    }
  }

  // False when the time ran out first.
  bool WaitUntilEmpty(int64_t deadline_ms) {
    const int64_t until = SteadyMs() + deadline_ms;
    base::MutexLock lock(mu);
    while (accepting || shared.connections.load() > 0) {
      const int64_t left = until - SteadyMs();
      if (left <= 0) return false;
      changed.WaitFor(mu, std::chrono::milliseconds(left));
    }
    return true;
  }

  void Stop(int64_t deadline_ms) {
    if (stopped) return;
    stopped = true;
    shared.draining = true;
    asio::post(threads[0]->io, [this] {
      error_code ec;
      acceptor->close(ec);
      accept_timer->cancel();
    });
    OnAllSessions(&Session::CloseIfIdle);
    if (!WaitUntilEmpty(deadline_ms)) {
      OnAllSessions(&Session::CancelRequest);
      if (!WaitUntilEmpty(kForcedGraceMs)) {
        shared.logger.Warn("http connections closed by force", {{"connections", shared.connections.load()}});
      }
    }
    while (true) {
      OnAllSessions(&Session::ForceClose);
      if (WaitUntilEmpty(100)) break;
    }
    for (const auto& thread : threads) {
      asio::post(thread->io, [t = thread.get()] {
        t->sweep_timer.cancel();
        t->guard.reset();
        t->io.stop();
      });
    }
    for (const auto& thread : threads) thread->thread.join();
  }

  Shared shared;
  std::vector<std::unique_ptr<IoThread>> threads;
  std::optional<Acceptor> acceptor;
  std::optional<Timer> accept_timer;
  std::atomic<bool> accept_paused{false};
  tcp::endpoint local;
  bool stopped = false;
  base::Mutex mu;  // leaf
  base::CondVar changed;
  bool accepting ABSL_GUARDED_BY(mu) = true;
};

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerConfig& config, Router router,
                                                      const base::Logger& logger, base::Registry& registry) {
  RETURN_IF_ERROR(config.Validate());
  auto impl = std::make_unique<Impl>(config, std::move(router), logger, registry);
  RETURN_IF_ERROR(impl->Listen());
  impl->Run();
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() { Stop(0); }

int Server::port() const { return impl_->local.port(); }

std::string Server::address() const {
  const auto& address = impl_->local.address();
  const std::string host = address.is_v6() ? base::StrCat("[", address.to_string(), "]") : address.to_string();
  return base::StrCat(host, ":", impl_->local.port());
}

void Server::Stop(int64_t deadline_ms) { impl_->Stop(deadline_ms); }

}  // namespace varve::http
