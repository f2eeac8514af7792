#pragma once
// Answers as tables for people.
#include <string>
#include <vector>

#include "tools/varvectl/json.h"

namespace varve::ctl {

// Columns as wide as their widest cell, two spaces apart; the header in capitals.
class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string MetricText(const Json& labels);       // name{a="b"}
std::string TimeText(std::string_view seconds);   // "1700000000.5" -> "2023-11-14T22:13:20.500Z"
std::string ResultTable(const Json& query_data);  // the `data` of query and query_range

}  // namespace varve::ctl
