#pragma once
#include <string>
#include <string_view>

namespace varve::http {

// True when an Accept-Encoding header allows gzip ("gzip", "x-gzip" or "*" with a weight above 0).
bool AcceptsGzip(std::string_view accept_encoding);
// True for content types that shrink: text, JSON and the like.
bool IsCompressible(std::string_view content_type);
// RFC 1952, level 1. Empty when zlib has no memory.
std::string Gzip(std::string_view bytes);

}  // namespace varve::http
