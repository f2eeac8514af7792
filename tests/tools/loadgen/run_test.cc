#include "tools/loadgen/run.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "ingest/decode/encoding.h"
#include "ingest/decode/write_request.h"
#include "server/http/server.h"
#include "storage/base/mutex.h"
#include "storage/base/strings.h"

namespace varve::loadgen {

namespace {

// A receiver that keeps what it gets, says no as often as it is told to, and answers the three queries of Verify.
class Receiver {
 public:
  Receiver() {
    http::Router router;
    router.Post("/api/v1/write", [this](std::shared_ptr<const http::Request> request, http::Respond respond) {
      respond(Write(*request));
    });
    router.Post("/api/v1/query", [this](std::shared_ptr<const http::Request> request, http::Respond respond) {
      respond(Query(request->body));
    });
    http::ServerConfig config;
    config.listen = "127.0.0.1:0";
    auto server = http::Server::Start(config, std::move(router), base::Logger::Silent(), registry_);
    REQUIRE(server.ok());
    server_ = *std::move(server);
  }
  std::string url() const { return "http://" + server_->address(); }
  void AnswerNext(int status, int times) {
    base::MutexLock lock(mu_);
    status_ = status;
    times_ = times;
  }
  void SpoilValues() {
    base::MutexLock lock(mu_);
    for (auto& [selector, samples] : samples_) {
      for (auto& [t_ms, value] : samples) value += 1;
    }
  }
  void LoseOneSample() {
    base::MutexLock lock(mu_);
    samples_.begin()->second.erase(samples_.begin()->second.begin());
  }
  std::set<std::string> tenants() {
    base::MutexLock lock(mu_);
    return tenants_;
  }
  size_t metadata() {
    base::MutexLock lock(mu_);
    return metadata_;
  }

 private:
  http::Response Write(const http::Request& request) {
    base::MutexLock lock(mu_);
    if (times_ > 0) {
      --times_;
      return http::Response::Text(status_, "not now");
    }
    tenants_.insert(std::string(request.Header("x-scope-orgid")));
    std::string message;
    model::WriteBatch batch;
    const bool second = request.Header("content-type").find("write.v2") != std::string_view::npos;
    if (!decode::Uncompress(decode::Encoding::kSnappy, request.body, 1 << 24, message).ok() ||
        !(second ? decode::DecodeWriteV2(message, 1, batch) : decode::DecodeWriteV1(message, 1, batch)).ok()) {
      return http::Response::Text(400, "not a message");
    }
    metadata_ += batch.metadata.size();
    for (const auto& series : batch.series) {
      std::string selector;
      for (const model::LabelRef label : model::LabelsView(series.labels)) {
        base::StrAppend(selector, selector.empty() ? "{" : ",", label.name, "=", base::QuoteGo(label.value));
      }
      samples_[selector + "}"][batch.timestamps[series.float_begin]] = batch.values[series.float_begin];
    }
    return http::Response::Text(200, "");
  }

  http::Response Query(std::string_view form) {
    const size_t amp = form.find("&time=");
    const std::string query = *http::PercentDecode(form.substr(6, amp - 6), false);
    const double seconds = *base::ParseDouble(form.substr(amp + 6));
    const auto t_ms = static_cast<int64_t>(seconds * 1000 + 0.5);
    base::MutexLock lock(mu_);
    double value = 0;
    if (query.starts_with("count(")) {
      value = static_cast<double>(samples_.size());
    } else if (query.starts_with("sum(count_over_time({__name__=")) {
      const std::string metric = query.substr(30, query.find(',') - 30);
      for (const auto& [selector, samples] : samples_) {
        if (selector.find(base::StrCat("__name__=", metric, ",")) != std::string::npos)
          value += static_cast<double>(samples.size());
      }
    } else {
      const auto it = samples_.find(query);
      if (it == samples_.end() || it->second.count(t_ms) == 0) {
        return http::Response::Json(200, R"({"status":"success","data":{"resultType":"vector","result":[]}})");
      }
      value = it->second.at(t_ms);
    }
    return http::Response::Json(
        200, base::StrCat(R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[)",
                          seconds, ",\"", value, "\"]}]}}"));
  }

  base::Registry registry_;
  base::Mutex mu_;
  int status_ ABSL_GUARDED_BY(mu_) = 0;
  int times_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, std::map<int64_t, double>> samples_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> tenants_ ABSL_GUARDED_BY(mu_);
  size_t metadata_ ABSL_GUARDED_BY(mu_) = 0;
  std::unique_ptr<http::Server> server_;  // last: its threads use the rest
};

Fleet MakeFleet() {
  FleetConfig config;
  config.series = 300;
  config.start_ms = 1'700'000'000'000;
  auto fleet = Fleet::Create(config, {BuiltinPage()});
  REQUIRE(fleet.ok());
  return *std::move(fleet);
}
RunConfig MakeRun(const Receiver& receiver) {
  RunConfig run;
  run.url = receiver.url() + "/api/v1/write";
  run.samples_per_request = 100;
  run.scrapes = 4;
  run.connections = 2;
  return run;
}

}  // namespace

TEST_CASE("everything arrives and is verified", "[loadgen]") {
  const Fleet fleet = MakeFleet();
  const base::SystemClock clock;
  for (const int version : {1, 2}) {
    for (const bool prepare : {false, true}) {
      CAPTURE(version, prepare);
      Receiver receiver;
      RunConfig run = MakeRun(receiver);
      run.version = version;
      run.prepare = prepare;
      run.tenant = "team-a";
      const Summary summary = Run(fleet, run, clock);
      CHECK(summary.first_error.empty());
      CHECK(summary.complete);
      CHECK(summary.samples == 1200);
      CHECK(summary.failed_requests + summary.refused_requests + summary.retries == 0);
      CHECK(receiver.tenants() == std::set<std::string>{"team-a"});
      CHECK(receiver.metadata() >= fleet.metadata().size());
      const auto verified = Verify(fleet, receiver.url(), "team-a", 4, 50, 10'000);
      REQUIRE(verified.ok());
      INFO(verified->first_difference);
      CHECK(verified->ok());
      CHECK(verified->samples_got == 1200);
      CHECK(verified->spots_right == 50);
    }
  }
}

TEST_CASE("verification notices lost samples and other values", "[loadgen]") {
  const Fleet fleet = MakeFleet();
  const base::SystemClock clock;
  Receiver receiver;
  Run(fleet, MakeRun(receiver), clock);
  receiver.LoseOneSample();
  auto verified = Verify(fleet, receiver.url(), "", 4, 0, 10'000);
  REQUIRE(verified.ok());
  CHECK_FALSE(verified->ok());
  CHECK(verified->samples_got == 1199);
  CHECK(verified->first_difference.find("want ") != std::string::npos);
  receiver.SpoilValues();
  verified = Verify(fleet, receiver.url(), "", 4, 20, 10'000);
  REQUIRE(verified.ok());
  CHECK(verified->spots_right == 0);
}

TEST_CASE("a busy server is asked again and a refusal is final", "[loadgen]") {
  const Fleet fleet = MakeFleet();
  const base::SystemClock clock;
  Receiver receiver;
  receiver.AnswerNext(503, 2);
  Summary summary = Run(fleet, MakeRun(receiver), clock);
  CHECK(summary.retries == 2);
  CHECK(summary.samples == 1200);
  CHECK(summary.failed_requests == 0);
  CHECK(summary.first_error == "status 503: not now");

  receiver.AnswerNext(400, 1000);
  summary = Run(fleet, MakeRun(receiver), clock);
  CHECK(summary.samples == 0);
  CHECK(summary.refused_samples == 1200);
  CHECK(summary.retries == 0);
  CHECK(summary.AsJson().find("\"refused_samples\":1200") != std::string::npos);
}

TEST_CASE("a server that is not there is a failure that is told", "[loadgen]") {
  const Fleet fleet = MakeFleet();
  const base::SystemClock clock;
  std::string gone;
  {
    Receiver receiver;
    gone = receiver.url();
  }
  RunConfig run;
  run.url = gone + "/api/v1/write";
  run.attempts = 1;
  const Summary summary = Run(fleet, run, clock);
  CHECK(summary.requests == 0);
  CHECK(summary.failed_requests > 0);
  CHECK_FALSE(summary.first_error.empty());
  CHECK_FALSE(Verify(fleet, gone, "", 1, 1, 1000).ok());
}

}  // namespace varve::loadgen
