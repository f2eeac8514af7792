#pragma once
// What a tenant may do. Plain values; where they come from is policy (server/app now, server/admin later).
#include <cstdint>

namespace varve::model {

struct Limits {
  int64_t out_of_order_window_ms = 10 * 60 * 1000;  // samples older than their series' newest by more are refused
  int64_t future_max_ms = 10 * 60 * 1000;           // samples further ahead of the server's clock are refused
  uint32_t label_names_per_series_max = 60;
  uint32_t label_name_bytes_max = 1024;
  uint32_t label_value_bytes_max = 2048;
  uint64_t series_max = 0;           // active series per tenant and process; 0 = no limit
  uint64_t exemplars_max = 100'000;  // kept per tenant; 0 = exemplars are not kept
};

}  // namespace varve::model
