#include "server/http/answer.h"

#include <ctime>

#include "server/http/compress.h"
#include "storage/base/strings.h"

namespace varve::http {
namespace {

void AppendHeader(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ");
  for (const char c : value) {
    if (static_cast<unsigned char>(c) >= 0x20 || c == '\t') out += c;
  }
  out.append("\r\n");
}

bool HasBody(int status) { return status >= 200 && status != 204 && status != 304; }

}  // namespace

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return "Unknown";
  }
}

void RenderHead(const Response& response, const AnswerShape& shape, std::string& out) {
  out.clear();
  base::StrAppend(out, shape.http_1_0 ? "HTTP/1.0 " : "HTTP/1.1 ", response.status, " ", ReasonPhrase(response.status),
                  "\r\n");
  if (!shape.date.empty()) AppendHeader(out, "Date", shape.date);
  if (HasBody(response.status)) {
    if (!response.content_type.empty()) AppendHeader(out, "Content-Type", response.content_type);
    base::StrAppend(out, "Content-Length: ", response.body.size(), "\r\n");
  }
  for (const auto& [name, value] : response.headers) AppendHeader(out, name, value);
  if (!shape.keep_alive) {
    out.append("Connection: close\r\n");
  } else if (shape.http_1_0) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append("\r\n");
}

std::string HttpDate(int64_t unix_seconds) {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const time_t seconds = unix_seconds;
  struct tm parts{};
  gmtime_r(&seconds, &parts);
  const auto two = [](int n) { return base::StrCat(n < 10 ? "0" : "", n); };
  return base::StrCat(kDays[parts.tm_wday], ", ", two(parts.tm_mday), " ", kMonths[parts.tm_mon], " ",
                      parts.tm_year + 1900, " ", two(parts.tm_hour), ":", two(parts.tm_min), ":", two(parts.tm_sec),
                      " GMT");
}

void MaybeGzip(Response& response, bool client_accepts, size_t bytes_min) {
  if (!IsCompressible(response.content_type) || response.body.size() < bytes_min || !HasBody(response.status)) return;
  for (const auto& header : response.headers) {
    if (base::AsciiLower(header.first) == "content-encoding") return;
  }
  response.headers.emplace_back("Vary", "Accept-Encoding");
  if (!client_accepts) return;
  std::string small = Gzip(response.body);
  if (small.empty() || small.size() >= response.body.size()) return;
  response.body = std::move(small);
  response.headers.emplace_back("Content-Encoding", "gzip");
}

}  // namespace varve::http
