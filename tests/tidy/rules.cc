#include "tests/tidy/rules.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "storage/base/strings.h"

namespace varve::tidy {
namespace {

namespace fs = std::filesystem;
using base::StrCat;

// What a folder may include besides itself; what those may include, it may too. DESIGN.md's and STYLE.md's strata.
const std::map<std::string, std::vector<std::string>>& Layers() {
  static const std::map<std::string, std::vector<std::string>> layers = {
      {"proto", {}},
      {"storage/base", {}},
      {"storage/model", {"storage/base"}},
      {"storage/codec", {"storage/model"}},
      {"storage/summary", {"storage/model"}},
      {"storage/placement", {"storage/model"}},
      {"storage/fs", {"storage/base"}},
      {"storage/object", {"storage/fs"}},
      {"storage/rocks", {"storage/object"}},
      {"storage/wal", {"storage/codec", "storage/fs"}},
      {"storage/index", {"storage/model"}},
      {"storage/head", {"storage/wal", "storage/index"}},
      {"storage/block", {"storage/codec", "storage/index", "storage/rocks", "storage/fs"}},
      {"storage/rollup", {"storage/summary", "storage/block"}},
      {"storage/compact", {"storage/rollup"}},
      {"query/promql", {"storage/model"}},
      {"query/plan", {"query/promql"}},
      {"query/exec", {"query/plan", "storage/summary"}},
      {"query/engine", {"query/exec"}},
      {"query/api", {"query/engine"}},
      {"ingest/decode", {"storage/model", "proto"}},
      {"ingest/admit", {"storage/model", "ingest/decode"}},  // answers for what decoding refused
      {"ingest/distributor", {"ingest/admit", "storage/placement"}},
      {"server/kv", {"storage/rocks"}},
      {"server/cluster", {"server/kv", "storage/placement"}},
      {"server/admin", {"server/cluster"}},
      {"server/rpc", {"proto", "storage/model"}},
      {"server/http", {"storage/base"}},
      {"server/roles",
       {"storage/compact", "storage/head", "query/api", "ingest/decode", "ingest/distributor", "server/admin"}},
      {"server/app", {"server/roles", "server/rpc", "server/http"}},
      {"tools", {"server/app"}},
  };
  return layers;
}

// "storage/wal/writer.cc" -> "storage/wal"; "tools/x/y.cc" -> "tools"; "" for what is in no layer (tests, bench).
std::string FolderOf(std::string_view path) {
  const size_t first = path.find('/');
  if (first == std::string_view::npos) return "";
  const std::string top(path.substr(0, first));
  if (top == "tools" || top == "proto") return top;
  if (top == "tests" || top == "bench") return "";
  const size_t second = path.find('/', first + 1);
  return second == std::string_view::npos ? "" : std::string(path.substr(0, second));
}

std::set<std::string> Reachable(const std::string& folder) {
  std::set<std::string> seen = {folder};
  std::vector<std::string> open = {folder};
  while (!open.empty()) {
    const std::string next = open.back();
    open.pop_back();
    const auto entry = Layers().find(next);
    if (entry == Layers().end()) continue;
    for (const std::string& below : entry->second) {
      if (seen.insert(below).second) open.push_back(below);
    }
  }
  return seen;
}

bool IsHeader(std::string_view path) { return path.ends_with(".h"); }
bool IsSource(std::string_view path) { return path.ends_with(".cc"); }
bool IsCode(std::string_view path) { return IsHeader(path) || IsSource(path); }
std::string Parent(const std::string& path) { return fs::path(path).parent_path().string(); }

struct Include {
  size_t line;
  std::string_view target;  // without quotes or brackets
};
std::vector<Include> IncludesOf(std::string_view content) {
  std::vector<Include> includes;
  size_t number = 0;
  for (const std::string_view line : base::StrSplit(content, '\n')) {
    ++number;
    std::string_view rest = base::StrTrim(line);
    if (!rest.starts_with("#include")) continue;
    rest = base::StrTrim(rest.substr(8));
    const size_t end = rest.find_first_of(">\"", 1);
    if (rest.empty() || end == std::string_view::npos) continue;
    includes.push_back({number, rest.substr(1, end - 1)});
  }
  return includes;
}

struct Heavy {
  std::string_view prefix, name;
  std::string_view only_in;  // "" for any folder
};
constexpr Heavy kHeavy[] = {
    {"boost/", "Boost", "server/http/"},
    {"grpcpp/", "gRPC", "server/rpc/"},
    {"grpc/", "gRPC", "server/rpc/"},
    {"rocksdb/", "RocksDB", "storage/rocks/"},
    {"google/protobuf/", "protobuf", ""},
    {"re2/", "RE2", ""},
    {"CLI/", "CLI11", ""},
    {"spdlog/", "spdlog", ""},
    {"yaml-cpp/", "yaml-cpp", ""},
    {"curl/", "curl", ""},
    {"openssl/", "OpenSSL", ""},
};

}  // namespace

Tree ReadTree(const std::string& root) {
  Tree tree;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator(); ++it) {
    const std::string path = fs::relative(it->path(), root).string();
    if (it->is_directory()) {
      if (path == "build" || path == "data" || path == ".git" || path == "tests/fuzz/corpus")
        it.disable_recursion_pending();
      continue;
    }
    const std::string name = it->path().filename().string();
    const bool wanted = IsCode(path) || name.ends_with(".md") || name.ends_with(".cmake") || name == "CMakeLists.txt" ||
                        path == "tools/dev" || path == ".ci/run";
    if (!wanted) continue;
    std::ifstream in(it->path(), std::ios::binary);
    tree[path] = std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  }
  return tree;
}

std::vector<std::string> IncludesPointDown(const Tree& tree) {
  std::vector<std::string> complaints;
  for (const auto& [path, content] : tree) {
    const std::string from = FolderOf(path);
    if (!IsCode(path) || from.empty()) continue;
    if (Layers().find(from) == Layers().end()) {
      complaints.push_back(
          StrCat(path, ": the folder ", from, " is in no layer; put it into the table of tests/tidy/rules.cc"));
      continue;
    }
    const std::set<std::string> allowed = Reachable(from);
    for (const Include& include : IncludesOf(content)) {
      if (include.target.starts_with("tests/") || include.target.starts_with("bench/")) {
        complaints.push_back(StrCat(path, ":", include.line, ": includes ", include.target,
                                    "; what ships does not need tests: move what is shared into a library"));
        continue;
      }
      const std::string to = FolderOf(include.target);
      if (Layers().find(to) == Layers().end() || allowed.count(to) != 0) continue;
      if (include.target.ends_with(".pb.h")) continue;
      complaints.push_back(StrCat(path, ":", include.line, ": ", from, " includes ", include.target, ", but ", to,
                                  " does not lie below it; pass the thing in, or move what both want further down"));
    }
  }
  return complaints;
}

std::vector<std::string> HeavyHeadersStayInside(const Tree& tree) {
  std::vector<std::string> complaints;
  for (const auto& [path, content] : tree) {
    if (!IsCode(path)) continue;
    for (const Include& include : IncludesOf(content)) {
      const bool generated = include.target.ends_with(".pb.h");
      if (generated && IsHeader(path) && !path.starts_with("tests/")) {
        complaints.push_back(StrCat(path, ":", include.line,
                                    ": generated protobuf in a header; include it in the .cc and "
                                    "show plain structs"));
      }
      for (const Heavy& heavy : kHeavy) {
        if (!include.target.starts_with(heavy.prefix)) continue;
        if (IsHeader(path)) {
          complaints.push_back(
              StrCat(path, ":", include.line, ": ", heavy.name, " in a header; include it in the .cc behind an Impl"));
        } else if (!heavy.only_in.empty() && !path.starts_with(heavy.only_in)) {
          complaints.push_back(StrCat(path, ":", include.line, ": ", heavy.name, " belongs to ", heavy.only_in,
                                      "; use that folder's headers"));
        }
      }
    }
  }
  return complaints;
}

std::vector<std::string> FoldersIntroduceThemselves(const Tree& tree) {
  std::set<std::string> folders;
  for (const auto& [path, content] : tree) {
    if (IsCode(path) && !path.starts_with("tests/") && !path.starts_with("bench/")) folders.insert(Parent(path));
  }
  std::vector<std::string> complaints;
  for (const std::string& folder : folders) {
    if (tree.count(folder + "/README.md") == 0) {
      complaints.push_back(
          StrCat(folder, ": no README.md; write a page: what it is for, its main types, threads, formats"));
    }
  }
  return complaints;
}

std::vector<std::string> NothingIsLeftOver(const Tree& tree) {
  // Spelled so that this file does not complain about itself.
  const std::vector<std::string> marks = {std::string("TO") + "DO", std::string("FIX") + "ME",
                                          std::string("XX") + "X:"};
  const std::string machine = std::string("/wo") + "rk/";
  std::vector<std::string> complaints;
  for (const auto& [path, content] : tree) {
    size_t number = 0;
    for (const std::string_view line : base::StrSplit(content, '\n')) {
      ++number;
      for (const std::string& mark : marks) {
        if (line.find(mark) != std::string_view::npos) {
          complaints.push_back(
              StrCat(path, ":", number, ": ", mark, "; do it, or write it down as a known limit in the README"));
        }
      }
      if (line.find(machine) != std::string_view::npos) {
        complaints.push_back(
            StrCat(path, ":", number, ": a path of one machine; make it relative to the tree or a parameter"));
      }
    }
  }
  return complaints;
}

std::vector<std::string> HeadersAreGuarded(const Tree& tree) {
  std::vector<std::string> complaints;
  for (const auto& [path, content] : tree) {
    if (IsHeader(path) && !content.starts_with("#pragma once\n")) {
      complaints.push_back(StrCat(path, ": the first line is not #pragma once; put it there"));
    }
  }
  return complaints;
}

std::vector<std::string> EverySourceIsBuilt(const Tree& tree) {
  std::vector<std::string> complaints;
  for (const auto& [path, content] : tree) {
    if (!IsSource(path)) continue;
    // In the nearest CMakeLists.txt upwards, by its path from there.
    bool found = false;
    for (std::string folder = Parent(path); !found && !folder.empty(); folder = Parent(folder)) {
      const auto lists = tree.find(folder + "/CMakeLists.txt");
      if (lists == tree.end()) continue;
      const std::string relative = path.substr(folder.size() + 1);
      for (size_t at = 0; !found && (at = lists->second.find(relative, at)) != std::string::npos;
           at += relative.size()) {
        const auto separates = [](char c) {
          return c == ' ' || c == '\n' || c == '(' || c == ')' || c == '"' || c == '/';
        };
        const size_t end = at + relative.size();
        found = (at == 0 || separates(lists->second[at - 1])) &&
                (end == lists->second.size() || separates(lists->second[end]));
      }
    }
    // Sources that a verb adds by itself.
    for (const auto& [other, lists] : tree)
      found = found || (other.ends_with(".cmake") && lists.find(path) != std::string::npos);
    if (!found) complaints.push_back(StrCat(path, ": in no CMakeLists.txt; list it there, or delete it"));
  }
  return complaints;
}

std::vector<std::string> MetricsAreDocumented(const Tree& tree) {
  const auto page = tree.find("docs/metrics.md");
  std::vector<std::string> complaints;
  for (const auto& [path, content] : tree) {
    const bool ships = path.starts_with("storage/") || path.starts_with("query/") || path.starts_with("ingest/") ||
                       path.starts_with("server/");
    if (!IsSource(path) || !ships) continue;
    for (size_t at = 0; (at = content.find("\"varve_", at)) != std::string::npos; ++at) {
      const std::string name = content.substr(at + 1, content.find('"', at + 1) - at - 1);
      if (page != tree.end() && page->second.find(StrCat("`", name, "`")) != std::string::npos) continue;
      complaints.push_back(StrCat(path, ": ", name, " is not in docs/metrics.md; add a line there"));
    }
  }
  return complaints;
}

}  // namespace varve::tidy
