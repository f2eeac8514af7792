#pragma once
// Which handler answers which path. Filled before the server starts, only read afterwards.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/message.h"

namespace varve::http {

// A pattern is a path whose segments are literals or "{name}"; a last segment "{name...}" takes the rest of the path,
// slashes included. Where several patterns fit, the one whose first differing segment is a literal wins. A handler for
// GET also answers HEAD, unless HEAD has its own.
class Router {
 public:
  Router();
  ~Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;

  // Adding the same method and pattern twice is our own fault and stops the process.
  void Add(std::string_view method, std::string_view pattern, Handler handler);
  void Get(std::string_view pattern, Handler handler) { Add("GET", pattern, std::move(handler)); }
  void Post(std::string_view pattern, Handler handler) { Add("POST", pattern, std::move(handler)); }

  struct Route {
    std::string method, pattern;
    Handler handler;
    size_t index;  // 0 ... size() - 1, in the order of adding
  };
  struct Match {
    const Route* route = nullptr;  // null: see `allow`
    std::vector<std::pair<std::string, std::string>> path_parameters;
    std::string allow;  // when only the method does not fit: those that would, as the Allow header has them
  };
  // `raw_path` is not yet percent-decoded, so that an encoded slash stays inside its segment.
  Match Find(std::string_view method, std::string_view raw_path) const;
  size_t size() const;
  const Route& at(size_t index) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace varve::http
