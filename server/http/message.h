#pragma once
// HTTP without Boost: what a handler sees and gives back.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/base/cancel.h"

namespace varve::http {

struct Request {
  std::string method;  // "GET", "POST", ...
  std::string path;    // percent-decoded, without the query string
  std::string query;   // raw query string, without '?'
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;          // names in lower case
  std::vector<std::pair<std::string, std::string>> path_parameters;  // of the route's {name} segments, percent-decoded
  std::string remote_address;
  std::shared_ptr<base::Cancel> cancel;  // requested when the client goes away or the server stops

  std::string_view Header(std::string_view lower_case_name) const;  // "" when absent
  std::string_view PathParameter(std::string_view name) const;      // "" when absent
};

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;

  static Response Text(int status, std::string_view text);
  static Response Json(int status, std::string body);
};

// Form parameters: of the query string, then (for form-encoded POST bodies) of the body; repeated keys keep their
// order.
class Parameters {
 public:
  // InvalidArgument when percent-encoding is broken.
  static absl::StatusOr<Parameters> FromRequest(const Request& request);
  std::string_view Get(std::string_view key) const;  // the first one; "" when absent
  bool Has(std::string_view key) const;
  std::vector<std::string> All(std::string_view key) const;
  void Add(std::string key, std::string value) { pairs_.emplace_back(std::move(key), std::move(value)); }
  const std::vector<std::pair<std::string, std::string>>& pairs() const { return pairs_; }

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
};
absl::StatusOr<std::string> PercentDecode(std::string_view text, bool plus_is_space);
std::string PercentEncode(std::string_view text);  // all but letters, digits and -_.~

// Called once for each request, on a socket thread: must not block. `respond` is called exactly once, from any thread.
using Respond = std::function<void(Response)>;
using Handler = std::function<void(std::shared_ptr<const Request>, Respond)>;

}  // namespace varve::http
