#pragma once
// A log in a file system that may be bad, with verbs.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "storage/wal/reader.h"
#include "storage/wal/records.h"
#include "storage/wal/writer.h"
#include "tests/support/fault_fs.h"
#include "tests/support/manual_clock.h"

namespace varve::test {

inline constexpr char kFolder[] = "data/wal";
inline constexpr char kQuarantine[] = "data/quarantine";

struct LogWorld {
  base::Registry registry;
  wal::WriterMetrics metrics{registry};
  ManualClock clock;

  std::unique_ptr<wal::Writer> Open(fs::FileSystem& fs, uint64_t segment_bytes = 1u << 20u) {
    wal::WriterConfig config;
    config.segment_bytes = segment_bytes;
    auto writer = wal::Writer::Open(fs, kFolder, config, clock, metrics);
    return writer.ok() ? *std::move(writer) : nullptr;
  }
};

// A record that carries one number and some bytes: a tenant, whose name is free text.
inline std::string Numbered(uint32_t number, size_t padding = 0) {
  wal::RecordBuilder builder;
  builder.Begin();
  builder.AddTenant(number, std::string(padding, 'x'));
  return std::string(builder.Finish());
}

struct ReadBackResult {
  std::vector<uint32_t> numbers;
  std::vector<wal::Position> begins;
  wal::ReadReport report;
};

inline ReadBackResult ReadBack(fs::FileSystem& fs, wal::Position from = {}, const std::string& quarantine = "") {
  ReadBackResult result;
  auto reader = wal::Reader::Open(fs, kFolder, from, quarantine);
  REQUIRE(reader.ok());
  wal::Record record;
  while ((*reader)->Next(&record)) {
    if (record.type != wal::RecordType::kTenant) continue;
    const auto tenant = wal::DecodeTenant(record.payload);
    REQUIRE(tenant.ok());
    result.numbers.push_back(tenant->ref);
    result.begins.push_back(record.begin);
  }
  result.report = (*reader)->report();
  return result;
}

inline std::string SegmentPath(uint64_t segment) { return std::string(kFolder) + "/" + wal::SegmentName(segment); }

}  // namespace varve::test
