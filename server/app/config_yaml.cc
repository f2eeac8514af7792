#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include "server/app/config.h"
#include "server/app/settings.h"
#include "storage/base/strings.h"

namespace varve::app {
namespace {

class Reader {
 public:
  Reader(std::string_view file, Config& config) : file_(file), settings_(Settings(config)) {
    for (const Setting& setting : settings_) known_.emplace_back(setting.name);
  }

  // `prefix` is "" or ends with a dot.
  absl::Status Map(const YAML::Node& map, const std::string& prefix) {
    for (const auto& entry : map) {
      if (!entry.first.IsScalar()) return At(entry.first.Mark(), "a key must be a name");
      const std::string name = prefix + entry.first.Scalar();
      const auto setting =
          std::find_if(settings_.begin(), settings_.end(), [&](const Setting& s) { return s.name == name; });
      if (setting != settings_.end()) {
        if (!seen_.insert(name).second) return At(entry.first.Mark(), base::StrCat(name, " is set twice"));
        RETURN_IF_ERROR(Value(*setting, entry.second, entry.first.Mark()));
        continue;
      }
      const bool is_section = std::any_of(settings_.begin(), settings_.end(),
                                          [&](const Setting& s) { return s.name.starts_with(name + "."); });
      if (!is_section) {
        const std::string nearest = Nearest(name, Known(prefix));
        return At(entry.first.Mark(),
                  base::StrCat("unknown key ", name,
                               nearest.empty() ? std::string() : base::StrCat("; did you mean ", nearest, "?")));
      }
      if (entry.second.IsNull()) continue;  // a heading whose lines are commented out
      if (!entry.second.IsMap()) {
        return At(entry.second.Mark(), base::StrCat(name, " is a section; want indented keys below it"));
      }
      RETURN_IF_ERROR(Map(entry.second, name + "."));
    }
    return absl::OkStatus();
  }

  absl::Status At(const YAML::Mark& mark, std::string_view message) const {
    return absl::InvalidArgumentError(base::StrCat(file_, ":", mark.line + 1, ":", mark.column + 1, ": ", message));
  }

 private:
  // Names to suggest: all of them, and sections at this level.
  std::vector<std::string> Known(const std::string& prefix) const {
    std::vector<std::string> names = known_;
    for (const std::string& name : known_) {
      const size_t dot = name.find('.', prefix.size());
      if (name.starts_with(prefix) && dot != std::string::npos) names.push_back(name.substr(0, dot));
    }
    return names;
  }

  absl::Status Value(const Setting& setting, const YAML::Node& node, const YAML::Mark& key) const {
    std::string text;
    if (node.IsNull()) return At(key, base::StrCat(setting.name, ": no value given"));
    if (node.IsScalar()) {
      text = node.Scalar();
    } else if (node.IsSequence() && std::holds_alternative<std::vector<std::string>*>(setting.target)) {
      for (const YAML::Node& item : node) {
        if (!item.IsScalar()) return At(item.Mark(), base::StrCat(setting.name, ": want a list of names"));
        base::StrAppend(text, text.empty() ? "" : ",", item.Scalar());
      }
    } else {
      return At(node.Mark(), base::StrCat(setting.name, ": want a single value of kind ", KindName(setting)));
    }
    const absl::Status status = SetValue(setting, text);
    return status.ok() ? status : At(node.Mark(), base::StrCat(setting.name, ": ", base::Message(status)));
  }

  std::string file_;
  std::vector<Setting> settings_;
  std::vector<std::string> known_;
  std::set<std::string> seen_;
};

}  // namespace

absl::Status ApplyYaml(std::string_view text, std::string_view name, Config& config) {
  Reader reader(name, config);
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    if (root.IsNull()) return absl::OkStatus();  // empty, or comments only
    if (!root.IsMap()) return reader.At(root.Mark(), "want keys and values, for example \"data-dir: ./data\"");
    return reader.Map(root, "");
  } catch (const YAML::Exception& error) {
    return reader.At(error.mark, error.msg);
  }
}

}  // namespace varve::app
