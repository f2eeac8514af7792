#pragma once
// The rules of the tree, as functions from files to complaints. Every complaint says what to do.
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace varve::tidy {

using Tree = std::map<std::string, std::string>;  // path from the root -> content

// The files of the tree that the rules are about; build folders, data and version control are left out.
Tree ReadTree(const std::string& root);

std::vector<std::string> IncludesPointDown(const Tree& tree);
std::vector<std::string> HeavyHeadersStayInside(const Tree& tree);
std::vector<std::string> FoldersIntroduceThemselves(const Tree& tree);
std::vector<std::string> NothingIsLeftOver(const Tree& tree);
std::vector<std::string> HeadersAreGuarded(const Tree& tree);
std::vector<std::string> EverySourceIsBuilt(const Tree& tree);
std::vector<std::string> MetricsAreDocumented(const Tree& tree);

}  // namespace varve::tidy
