#pragma once
// Ascending series numbers to bytes and back.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace varve::block {

void EncodeOrdinals(std::span<const uint32_t> ascending, std::string& out);
// Appends to `out`. False when the bytes are not exactly `count` ascending numbers below `end`.
bool DecodeOrdinals(std::string_view bytes, uint64_t count, uint32_t end, std::vector<uint32_t>& out);

}  // namespace varve::block
