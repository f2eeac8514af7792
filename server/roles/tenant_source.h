#pragma once
#include <string>

#include "storage/model/series_source.h"

namespace varve::roles {

class Ingester;

// One tenant's samples in this process: the heads of all shards as of one moment, and the blocks cut from them.
class TenantSource : public model::SeriesSource {
 public:
  TenantSource(Ingester& ingester, std::string tenant) : ingester_(ingester), tenant_(std::move(tenant)) {}
  absl::StatusOr<std::unique_ptr<model::Selection>> Select(const model::SelectRequest& request) const override;
  absl::StatusOr<std::vector<std::string>> LabelNames(const model::SelectRequest& request) const override;
  absl::StatusOr<std::vector<std::string>> LabelValues(std::string_view name,
                                                       const model::SelectRequest& request) const override;
  absl::StatusOr<std::vector<model::ExemplarSeries>> Exemplars(const model::SelectRequest& request) const override;
  std::vector<model::Metadata> MetadataFor(std::string_view metric) const override;
  absl::StatusOr<model::SourceStats> Stats(size_t limit) const override;
  std::vector<std::string> Warnings() const override;

 private:
  Ingester& ingester_;
  const std::string tenant_;
};

}  // namespace varve::roles
