#include "server/http/router.h"

#include <algorithm>

#include "storage/base/check.h"
#include "storage/base/strings.h"

namespace varve::http {
namespace {

struct Segment {
  std::string text;  // the literal, or the parameter's name
  enum Kind { kLiteral, kOne, kRest } kind = kLiteral;
};

std::vector<Segment> ParsePattern(std::string_view pattern) {
  VARVE_CHECK_MSG(pattern.starts_with('/'), pattern);
  std::vector<Segment> segments;
  for (const std::string_view part : base::StrSplit(pattern.substr(1), '/')) {
    if (part.size() > 2 && part.starts_with('{') && part.ends_with('}')) {
      std::string_view name = part.substr(1, part.size() - 2);
      const bool rest = name.ends_with("...");
      if (rest) name.remove_suffix(3);
      segments.push_back({std::string(name), rest ? Segment::kRest : Segment::kOne});
    } else {
      segments.push_back({std::string(part), Segment::kLiteral});
    }
  }
  for (size_t i = 0; i + 1 < segments.size(); ++i) VARVE_CHECK_MSG(segments[i].kind != Segment::kRest, pattern);
  return segments;
}

bool HasParameters(const std::vector<Segment>& segments) {
  return std::any_of(segments.begin(), segments.end(), [](const Segment& s) { return s.kind != Segment::kLiteral; });
}

}  // namespace

struct Router::Impl {
  struct Path {  // all routes of one pattern
    std::string pattern;
    std::vector<Segment> segments;
    std::vector<const Route*> routes;

    const Route* ForMethod(std::string_view method) const {
      for (const Route* route : routes) {
        if (route->method == method) return route;
      }
      return method == "HEAD" ? ForMethod("GET") : nullptr;
    }
    std::string Allow() const {
      std::vector<std::string> methods;
      for (const Route* route : routes) methods.push_back(route->method);
      if (ForMethod("GET") != nullptr && ForMethod("HEAD") == ForMethod("GET")) methods.emplace_back("HEAD");
      std::sort(methods.begin(), methods.end());
      return base::StrJoin(methods, ", ");
    }
  };

  // Literals before parameters, segment by segment, so that the first fit is the best one.
  static bool Before(const Path& a, const Path& b) {
    for (size_t i = 0; i < a.segments.size() && i < b.segments.size(); ++i) {
      if (a.segments[i].kind != b.segments[i].kind) return a.segments[i].kind < b.segments[i].kind;
    }
    return a.segments.size() > b.segments.size();
  }

  static bool Fits(const Path& path, std::string_view raw, Match& match) {
    match.path_parameters.clear();
    std::string_view rest = raw.substr(1);
    for (size_t i = 0; i < path.segments.size(); ++i) {
      const Segment& segment = path.segments[i];
      const size_t slash = segment.kind == Segment::kRest ? std::string_view::npos : rest.find('/');
      const bool last = i + 1 == path.segments.size();
      if (last != (slash == std::string_view::npos)) return false;
      auto text = PercentDecode(rest.substr(0, slash), /*plus_is_space=*/false);
      if (!text.ok()) return false;
      if (segment.kind == Segment::kLiteral) {
        if (*text != segment.text) return false;
      } else {
        if (text->empty() && segment.kind == Segment::kOne) return false;
        match.path_parameters.emplace_back(segment.text, *std::move(text));
      }
      if (!last) rest.remove_prefix(slash + 1);
    }
    return true;
  }

  std::vector<std::unique_ptr<Route>> routes;
  base::StringMap<std::unique_ptr<Path>> literal;  // by pattern
  std::vector<std::unique_ptr<Path>> with_parameters;
};

Router::Router() : impl_(new Impl) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;

void Router::Add(std::string_view method, std::string_view pattern, Handler handler) {
  auto route = std::make_unique<Route>();
  *route = {std::string(method), std::string(pattern), std::move(handler), impl_->routes.size()};
  std::vector<Segment> segments = ParsePattern(pattern);
  Impl::Path* path = nullptr;
  if (!HasParameters(segments)) {
    std::unique_ptr<Impl::Path>& slot = impl_->literal[pattern];
    if (slot == nullptr) slot = std::make_unique<Impl::Path>();
    path = slot.get();
  } else {
    for (const auto& other : impl_->with_parameters) {
      if (other->pattern == pattern) path = other.get();
    }
    if (path == nullptr) path = impl_->with_parameters.emplace_back(std::make_unique<Impl::Path>()).get();
  }
  for (const Route* other : path->routes) VARVE_CHECK_MSG(other->method != method, pattern);
  path->pattern = pattern;
  path->segments = std::move(segments);
  path->routes.push_back(route.get());
  impl_->routes.push_back(std::move(route));
  std::stable_sort(impl_->with_parameters.begin(), impl_->with_parameters.end(),
                   [](const auto& a, const auto& b) { return Impl::Before(*a, *b); });
}

Router::Match Router::Find(std::string_view method, std::string_view raw_path) const {
  Match match;
  if (!raw_path.starts_with('/')) return match;
  const auto take = [&](const Impl::Path& path) {
    match.route = path.ForMethod(method);
    if (match.route == nullptr && match.allow.empty()) match.allow = path.Allow();
    return match.route != nullptr;
  };
  auto literal = impl_->literal.find(raw_path);
  if (literal == impl_->literal.end() && raw_path.find('%') != std::string_view::npos) {
    const auto decoded = PercentDecode(raw_path, /*plus_is_space=*/false);
    if (decoded.ok()) literal = impl_->literal.find(*decoded);
  }
  if (literal != impl_->literal.end() && take(*literal->second)) return match;
  for (const auto& path : impl_->with_parameters) {
    if (Impl::Fits(*path, raw_path, match) && take(*path)) return match;
  }
  match.path_parameters.clear();
  return match;
}

size_t Router::size() const { return impl_->routes.size(); }
const Router::Route& Router::at(size_t index) const { return *impl_->routes[index]; }

}  // namespace varve::http
