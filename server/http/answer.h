#pragma once
// How a response becomes bytes. No I/O.
#include <string>
#include <string_view>

#include "server/http/message.h"

namespace varve::http {

std::string_view ReasonPhrase(int status);  // "Not Found"; "Unknown" for numbers without a name

struct AnswerShape {
  bool http_1_0 = false;
  bool keep_alive = true;
  std::string_view date = {};  // as the Date header wants it; "" leaves it out
};
// Status line and headers with the empty line at their end; the body follows as it is. Control characters in header
// values are left out, so that a value from outside cannot start a header of its own.
void RenderHead(const Response& response, const AnswerShape& shape, std::string& out);

// "Sun, 06 Nov 1994 08:49:37 GMT".
std::string HttpDate(int64_t unix_seconds);

// Compresses the body when the client allows it and it pays, and says so in the headers.
void MaybeGzip(Response& response, bool client_accepts, size_t bytes_min);

}  // namespace varve::http
