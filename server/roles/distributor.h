#pragma once
// The distributor role: a write request from bytes to the answer its sender gets. Decodes, screens, hands the batch to
// the ingester and words what became of it.
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ingest/admit/status.h"
#include "server/roles/ingester.h"
#include "storage/base/clock.h"
#include "storage/base/metrics.h"
#include "storage/base/mutex.h"
#include "storage/model/limits.h"
#include "storage/model/write_batch.h"

namespace varve::roles {

struct WriteRequest {
  std::string tenant;
  std::string content_type, content_encoding;
  std::string_view body;  // as it came, compressed; only looked at during the call
};

// Any thread.
class Distributor {
 public:
  using Done = std::function<void(admit::Answer)>;

  struct Config {
    size_t body_bytes_max = 32u << 20;  // of an uncompressed body
    std::shared_ptr<const model::Limits> limits = std::make_shared<model::Limits>();
  };
  Distributor(Config config, Ingester& ingester, const base::Clock& clock, base::Registry& registry);

  // Remote write 1.0 and 2.0. `done` is called once, perhaps before the call returns.
  void Write(const WriteRequest& request, Done done);
  // A page in Prometheus' text format or OpenMetrics.
  void ImportText(const WriteRequest& request, Done done);

 private:
  std::shared_ptr<model::WriteBatch> NewBatch();
  void Store(const std::string& tenant, std::shared_ptr<model::WriteBatch> batch, int version, Done done);
  void Refuse(const absl::Status& status, int version, const Done& done);
  void CountResult(const std::string& tenant, const model::WriteResult& result);

  const Config config_;
  Ingester& ingester_;
  const base::Clock& clock_;
  base::Registry& registry_;
  struct Metrics {
    base::Counter &requests, &received_bytes, &received_samples, &failed_requests;
    base::Histogram& seconds;
    explicit Metrics(base::Registry& registry);
  } metrics_;

  // Batches keep the capacity that they have grown to.
  struct Pool {
    base::Mutex mu;  // leaf
    std::vector<std::unique_ptr<model::WriteBatch>> free ABSL_GUARDED_BY(mu);
  };
  std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();
};

}  // namespace varve::roles
