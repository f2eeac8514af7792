#include "tools/loadgen/run.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "server/http/client.h"
#include "storage/base/mutex.h"
#include "storage/base/strings.h"
#include "tools/loadgen/request.h"

namespace varve::loadgen {

namespace {

using base::StrAppend;
using base::StrCat;

double CpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

std::string Fixed(double v, int decimals) {
  char buffer[64];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::fixed, decimals).ptr};
}

// One connection with its part of the fleet.
class Sender {
 public:
  Sender(const Fleet& fleet, const RunConfig& config, const base::Clock& clock, size_t shard)
      : config_(config),
        clock_(clock),
        stream_(fleet, {config.version, config.samples_per_request, config.scrapes, shard, config.connections,
                        config.first_scrape}) {
    headers_ = {{"Content-Encoding", "snappy"}, {"User-Agent", "varve-loadgen"}};
    if (config.version == 2) {
      headers_.emplace_back("Content-Type", "application/x-protobuf;proto=io.prometheus.write.v2.Request");
      headers_.emplace_back("X-Prometheus-Remote-Write-Version", "2.0.0");
    } else {
      headers_.emplace_back("Content-Type", "application/x-protobuf");
      headers_.emplace_back("X-Prometheus-Remote-Write-Version", "0.1.0");
    }
    if (!config.tenant.empty()) headers_.emplace_back("X-Scope-OrgID", config.tenant);
  }

  void Prepare() {
    while (auto request = stream_.Next()) prepared_.push_back(*std::move(request));
  }
  void Send(const http::Url& url, int64_t begin_ns, bool first, const Fleet& fleet) {
    if (first && config_.version == 1 && !config_.dry_run) {
      const Request metadata = MetadataRequest(fleet);
      SendOne(url, metadata);
    }
    const double per_sample_ns = config_.samples_per_second > 0
                                     ? 1e9 * static_cast<double>(config_.connections) / config_.samples_per_second
                                     : 0;
    double due_ns = static_cast<double>(begin_ns);
    for (size_t i = 0;; ++i) {
      std::optional<Request> made;
      const Request* request = nullptr;
      if (config_.prepare) {
        if (i == prepared_.size()) break;
        request = &prepared_[i];
      } else {
        made = stream_.Next();
        if (!made.has_value()) break;
        request = &*made;
      }
      const int64_t now_ns = clock_.MonotonicNs();
      if (config_.seconds_max > 0 && static_cast<double>(now_ns - begin_ns) > config_.seconds_max * 1e9) return;
      if (per_sample_ns > 0 && due_ns > static_cast<double>(now_ns)) {
        std::this_thread::sleep_for(std::chrono::nanoseconds(static_cast<int64_t>(due_ns) - now_ns));
      }
      due_ns += per_sample_ns * static_cast<double>(request->samples);
      SendOne(url, *request);
    }
    counts.complete = true;
  }

  Summary counts;
  std::vector<int64_t> latencies_ns;

 private:
  void SendOne(const http::Url& url, const Request& request) {
    counts.body_bytes += request.body.size();
    counts.message_bytes += request.message_bytes;
    counts.newest_ms = std::max(counts.newest_ms, request.newest_ms);
    if (config_.dry_run) {
      ++counts.requests;
      counts.samples += request.samples;
      return;
    }
    for (int attempt = 0;; ++attempt) {
      std::string error;
      if (!connection_.has_value()) {
        auto opened = http::Connection::Open(url.host, url.port, config_.timeout_ms);
        if (opened.ok())
          connection_ = *std::move(opened);
        else
          error = base::Message(opened.status());
      }
      if (connection_.has_value()) {
        const int64_t sent_ns = clock_.MonotonicNs();
        auto answer = connection_->Send("POST", url.target, headers_, request.body, config_.timeout_ms);
        if (answer.ok()) {
          latencies_ns.push_back(clock_.MonotonicNs() - sent_ns);
          if (answer->status / 100 == 2) {
            ++counts.requests;
            counts.samples += request.samples;
            return;
          }
          error = StrCat("status ", answer->status, ": ", answer->body.substr(0, 600));
          if (answer->status / 100 == 4 && answer->status != 429) {
            ++counts.refused_requests;
            counts.refused_samples += request.samples;
            if (counts.first_error.empty()) counts.first_error = error;
            return;
          }
        } else {
          error = base::Message(answer.status());
          connection_.reset();
        }
      }
      if (counts.first_error.empty()) counts.first_error = error;
      if (attempt + 1 >= config_.attempts) {
        ++counts.failed_requests;
        return;
      }
      ++counts.retries;
      std::this_thread::sleep_for(std::chrono::milliseconds(50 << std::min(attempt, 6)));  // as senders back off
    }
  }

  const RunConfig& config_;
  const base::Clock& clock_;
  Stream stream_;
  http::Headers headers_;
  std::vector<Request> prepared_;
  std::optional<http::Connection> connection_;
};

template <class F>
void InThreads(std::vector<std::unique_ptr<Sender>>& senders, F&& work) {
  std::vector<std::thread> threads;
  threads.reserve(senders.size());
  for (size_t i = 0; i < senders.size(); ++i) threads.emplace_back([&work, &senders, i] { work(*senders[i], i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

Summary Run(const Fleet& fleet, const RunConfig& config, const base::Clock& clock) {
  Summary total;
  total.targets = fleet.targets();
  total.series = fleet.config().series;
  const auto url = http::Url::Parse(config.url);
  if (!url.ok() && !config.dry_run) {
    total.first_error = base::Message(url.status());
    total.failed_requests = 1;
    return total;
  }
  std::vector<std::unique_ptr<Sender>> senders;
  for (size_t i = 0; i < config.connections; ++i) senders.push_back(std::make_unique<Sender>(fleet, config, clock, i));
  if (config.prepare) {
    const int64_t begin = clock.MonotonicNs();
    InThreads(senders, [](Sender& sender, size_t) { sender.Prepare(); });
    total.prepare_seconds = static_cast<double>(clock.MonotonicNs() - begin) * 1e-9;
  }
  const double cpu_before = CpuSeconds();
  const int64_t begin = clock.MonotonicNs();
  const http::Url target = url.ok() ? *url : http::Url();
  InThreads(senders, [&](Sender& sender, size_t i) { sender.Send(target, begin, i == 0, fleet); });
  total.seconds = static_cast<double>(clock.MonotonicNs() - begin) * 1e-9;
  total.cpu_seconds = CpuSeconds() - cpu_before;

  std::vector<int64_t> latencies;
  total.complete = true;
  for (const auto& sender : senders) {
    const Summary& part = sender->counts;
    total.requests += part.requests;
    total.samples += part.samples;
    total.refused_requests += part.refused_requests;
    total.refused_samples += part.refused_samples;
    total.failed_requests += part.failed_requests;
    total.retries += part.retries;
    total.body_bytes += part.body_bytes;
    total.message_bytes += part.message_bytes;
    total.newest_ms = std::max(total.newest_ms, part.newest_ms);
    total.complete = total.complete && part.complete;
    if (total.first_error.empty()) total.first_error = part.first_error;
    latencies.insert(latencies.end(), sender->latencies_ns.begin(), sender->latencies_ns.end());
  }
  std::sort(latencies.begin(), latencies.end());
  if (!latencies.empty()) {
    const auto at = [&](double part) {
      return static_cast<double>(latencies[static_cast<size_t>(part * static_cast<double>(latencies.size() - 1))]) *
             1e-6;
    };
    total.latency_p50_ms = at(0.5), total.latency_p99_ms = at(0.99), total.latency_max_ms = at(1);
  }
  return total;
}

std::string Summary::AsTable() const {
  const double per_second = seconds > 0 ? static_cast<double>(samples) / seconds : 0;
  std::string out;
  const auto row = [&out](std::string_view name, std::string_view value) {
    StrAppend(out, name, std::string(name.size() < 20 ? 20 - name.size() : 1, ' '), value, "\n");
  };
  row("series", StrCat(series, " on ", targets, " targets"));
  row("samples", StrCat(samples, " stored, ", refused_samples, " in refused requests"));
  row("requests",
      StrCat(requests, " ok, ", refused_requests, " refused, ", failed_requests, " given up, ", retries, " retries"));
  row("bytes", StrCat(body_bytes, " sent, ", message_bytes, " before compression"));
  if (prepare_seconds > 0) row("prepared in", StrCat(Fixed(prepare_seconds, 2), " s"));
  row("time", StrCat(Fixed(seconds, 2), " s, ", Fixed(cpu_seconds, 2), " s of CPU here"));
  row("rate", StrCat(Fixed(per_second, 0), " samples/s"));
  row("latency", StrCat("p50 ", Fixed(latency_p50_ms, 2), " ms, p99 ", Fixed(latency_p99_ms, 2), " ms, max ",
                        Fixed(latency_max_ms, 2), " ms"));
  row("newest timestamp", StrCat(newest_ms, complete ? "" : " (stopped before the end)"));
  if (!first_error.empty()) row("first error", first_error);
  return out;
}

std::string Summary::AsJson() const {
  std::string error;
  base::AppendJsonString(error, first_error);
  return StrCat("{\"series\":", series, ",\"targets\":", targets, ",\"requests\":", requests, ",\"samples\":", samples,
                ",\"refused_requests\":", refused_requests, ",\"refused_samples\":", refused_samples,
                ",\"failed_requests\":", failed_requests, ",\"retries\":", retries, ",\"body_bytes\":", body_bytes,
                ",\"message_bytes\":", message_bytes, ",\"prepare_seconds\":", Fixed(prepare_seconds, 6),
                ",\"seconds\":", Fixed(seconds, 6), ",\"cpu_seconds\":", Fixed(cpu_seconds, 6),
                ",\"samples_per_second\":", Fixed(seconds > 0 ? static_cast<double>(samples) / seconds : 0, 0),
                ",\"latency_p50_ms\":", Fixed(latency_p50_ms, 3), ",\"latency_p99_ms\":", Fixed(latency_p99_ms, 3),
                ",\"latency_max_ms\":", Fixed(latency_max_ms, 3), ",\"newest_ms\":", newest_ms,
                ",\"complete\":", complete, ",\"first_error\":", error, "}\n");
}

}  // namespace varve::loadgen
