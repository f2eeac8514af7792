#include "server/roles/distributor.h"

#include "ingest/admit/admission.h"
#include "ingest/decode/encoding.h"
#include "ingest/decode/push_format.h"
#include "ingest/decode/text_format.h"
#include "ingest/decode/write_request.h"
#include "storage/base/strings.h"

namespace varve::roles {

namespace {
constexpr size_t kBatchesKept = 16;
// A batch that once held a giant request gives its memory back.
constexpr size_t kSeriesKept = 20'000;
}  // namespace

Distributor::Metrics::Metrics(base::Registry& r)
    : requests(r.AddCounter("varve_distributor_requests_total", "Write requests received.")),
      received_bytes(
          r.AddCounter("varve_distributor_received_bytes_total", "Bytes of write requests as they came, compressed.")),
      received_samples(r.AddCounter("varve_distributor_received_samples_total",
                                    "Samples received, floats and histograms, stored or not.")),
      failed_requests(
          r.AddCounter("varve_distributor_failed_requests_total",
                       "Write requests of which nothing was looked at: malformed, too large, or no storage.")),
      seconds(r.AddHistogram("varve_distributor_write_seconds", "From a decoded request to its answer.",
                             base::Histogram::LatencySeconds())) {}

Distributor::Distributor(Config config, Ingester& ingester, const base::Clock& clock, base::Registry& registry)
    : config_(std::move(config)), ingester_(ingester), clock_(clock), registry_(registry), metrics_(registry) {}

std::shared_ptr<model::WriteBatch> Distributor::NewBatch() {
  std::unique_ptr<model::WriteBatch> batch;
  {
    base::MutexLock lock(pool_->mu);
    if (!pool_->free.empty()) {
      batch = std::move(pool_->free.back());
      pool_->free.pop_back();
    }
  }
  if (batch == nullptr) batch = std::make_unique<model::WriteBatch>();
  return {batch.release(), [pool = pool_](model::WriteBatch* used) {
            std::unique_ptr<model::WriteBatch> owned(used);
            if (owned->series.capacity() > kSeriesKept) return;
            // The body's buffer keeps its size: growing a string again would fill it with zeros first.
            std::string body = owned->bodies.empty() ? std::string() : std::move(owned->bodies.front());
            owned->Clear();
            owned->bodies.push_back(std::move(body));
            base::MutexLock lock(pool->mu);
            if (pool->free.size() < kBatchesKept) pool->free.push_back(std::move(owned));
          }};
}

void Distributor::Refuse(const absl::Status& status, int version, const Done& done) {
  metrics_.failed_requests.Add();
  done(admit::AnswerError(status, version));
}

void Distributor::Write(const WriteRequest& request, Done done) {
  metrics_.requests.Add();
  metrics_.received_bytes.Add(request.body.size());
  const auto format = decode::ParsePushFormat(request.content_type, request.content_encoding);
  if (!format.ok()) {
    Refuse(absl::UnimplementedError(std::string(base::Message(format.status()))), 1, done);
    return;
  }
  auto batch = NewBatch();
  if (batch->bodies.empty()) batch->bodies.emplace_back();
  std::string& body = batch->bodies.front();  // the decoder may add more behind it
  absl::Status status = decode::Uncompress(format->encoding, request.body, config_.body_bytes_max, body);
  if (status.ok()) {
    status = format->version == 2 ? decode::DecodeWriteV2(body, ingester_.hash_seed(), *batch)
                                  : decode::DecodeWriteV1(body, ingester_.hash_seed(), *batch);
  }
  if (!status.ok()) {
    Refuse(status, format->version, done);
    return;
  }
  Store(request.tenant, std::move(batch), format->version, std::move(done));
}

void Distributor::ImportText(const WriteRequest& request, Done done) {
  metrics_.requests.Add();
  metrics_.received_bytes.Add(request.body.size());
  auto batch = NewBatch();
  std::string uncompressed;
  std::string_view page = request.body;
  if (request.content_encoding == "gzip" || request.content_encoding == "zstd") {
    const auto encoding = request.content_encoding == "gzip" ? decode::Encoding::kGzip : decode::Encoding::kZstd;
    const absl::Status status = decode::Uncompress(encoding, request.body, config_.body_bytes_max, uncompressed);
    if (!status.ok()) {
      Refuse(status, 1, done);
      return;
    }
    page = uncompressed;
  } else if (!request.content_encoding.empty() && request.content_encoding != "identity") {
    Refuse(absl::UnimplementedError(base::StrCat("Content-Encoding ", base::QuoteGo(request.content_encoding),
                                                 " is not supported; use gzip, zstd or none")),
           1, done);
    return;
  }
  decode::TextOptions options;
  options.format = decode::TextFormatOf(request.content_type);
  options.now_ms = clock_.NowMs();
  options.hash_seed = ingester_.hash_seed();
  if (const absl::Status status = decode::DecodeText(page, options, *batch); !status.ok()) {
    Refuse(status, 1, done);
    return;
  }
  Store(request.tenant, std::move(batch), 1, std::move(done));
}

void Distributor::Store(const std::string& tenant, std::shared_ptr<model::WriteBatch> batch, int version, Done done) {
  metrics_.received_samples.Add(batch->values.size() + batch->histograms.size());
  model::WriteResult screened;
  admit::Screen(*batch, *config_.limits, screened);
  const int64_t begun_ns = clock_.MonotonicNs();
  ingester_.Push(tenant, std::move(batch), config_.limits, std::move(screened),
                 [this, tenant, version, begun_ns, done = std::move(done)](const absl::Status& status,
                                                                           const model::WriteResult& result) {
                   metrics_.seconds.Observe(static_cast<double>(clock_.MonotonicNs() - begun_ns) * 1e-9);
                   if (!status.ok()) {
                     Refuse(status, version, done);
                     return;
                   }
                   CountResult(tenant, result);
                   done(admit::AnswerWrite(result, *config_.limits, version));
                 });
}

void Distributor::CountResult(const std::string& tenant, const model::WriteResult& result) {
  if (result.AllStored()) return;
  for (size_t i = 0; i < result.rejections.size(); ++i) {
    const model::Rejection& rejection = result.rejections[i];
    if (rejection.series == 0) continue;
    registry_
        .AddCounter("varve_discarded_samples_total", "Samples refused, by tenant and reason.",
                    {{"tenant", tenant}, {"reason", std::string(model::ToString(static_cast<model::Reason>(i)))}})
        .Add(rejection.samples);
  }
}

}  // namespace varve::roles
