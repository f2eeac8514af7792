#include "server/app/config.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>

#include "server/app/settings.h"
#include "storage/base/strings.h"

extern char** environ;

namespace varve::app {
namespace {

// What the command line knows besides the settings.
struct Command {
  std::string_view flag;
  Action action;
};
constexpr std::array<Command, 5> kCommands = {{{"help", Action::kHelp},
                                               {"h", Action::kHelp},
                                               {"version", Action::kVersion},
                                               {"config.check", Action::kConfigCheck},
                                               {"config.docs", Action::kConfigDocs}}};

// What QueryService can switch on (query_routes.cc).
constexpr std::array<std::string_view, 7> kFeatures = {
    "promql-experimental-functions", "promql-extended-range-selectors", "promql-binop-fill-modifiers",
    "promql-duration-expr",          "promql-delayed-name-removal",     "type-and-unit-labels",
    "use-start-timestamps"};
constexpr std::array<std::string_view, 1> kRoles = {"all"};  // a process has every part so far

absl::Status Unknown(std::string_view what, std::string_view name, const std::vector<std::string>& known,
                     std::string_view prefix = "") {
  const std::string nearest = Nearest(name, known);
  return absl::InvalidArgumentError(
      base::StrCat("unknown ", what, " ", prefix, name,
                   nearest.empty() ? std::string() : base::StrCat("; did you mean ", prefix, nearest, "?")));
}

const Setting* Find(const std::vector<Setting>& settings, std::string_view name) {
  const auto it = std::find_if(settings.begin(), settings.end(), [&](const Setting& s) { return s.name == name; });
  return it == settings.end() ? nullptr : &*it;
}

struct Flag {
  std::string name, value;
};
struct CommandLine {
  std::vector<Flag> flags;
  std::string config_file;
  Action action = Action::kRun;
};

absl::StatusOr<CommandLine> ParseArguments(const std::vector<std::string>& arguments,
                                           const std::vector<Setting>& settings) {
  std::vector<std::string> known = {"config"};
  for (const Command& command : kCommands) known.emplace_back(command.flag);
  for (const Setting& setting : settings) known.emplace_back(setting.name);

  CommandLine line;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!argument.starts_with('-') || argument == "-" || argument == "--") {
      return absl::InvalidArgumentError(
          base::StrCat("unexpected argument ", base::QuoteGo(argument), "; settings are given as --name=value"));
    }
    std::string_view body(argument);
    body.remove_prefix(body.starts_with("--") ? 2 : 1);
    const size_t equals = body.find('=');
    Flag flag{std::string(body.substr(0, equals)), ""};

    const auto command =
        std::find_if(kCommands.begin(), kCommands.end(), [&](const Command& c) { return c.flag == flag.name; });
    if (command != kCommands.end()) {
      if (equals != std::string_view::npos) {
        return absl::InvalidArgumentError(base::StrCat("--", flag.name, " takes no value"));
      }
      line.action = command->action;
      continue;
    }
    const Setting* setting = Find(settings, flag.name);
    if (setting == nullptr && flag.name != "config") return Unknown("flag", flag.name, known, "--");
    const bool is_bool = setting != nullptr && std::holds_alternative<bool*>(setting->target);
    if (equals != std::string_view::npos) {
      flag.value = body.substr(equals + 1);
    } else if (is_bool) {
      flag.value = "true";
    } else if (i + 1 < arguments.size() && !arguments[i + 1].starts_with("--")) {
      flag.value = arguments[++i];
    } else {
      return absl::InvalidArgumentError(base::StrCat("--", flag.name, ": no value given"));
    }
    if (flag.name == "config") {
      line.config_file = flag.value;
      continue;
    }
    // A list may be given in several flags.
    const auto before =
        std::find_if(line.flags.begin(), line.flags.end(), [&](const Flag& f) { return f.name == flag.name; });
    if (before != line.flags.end() && std::holds_alternative<std::vector<std::string>*>(setting->target)) {
      before->value += "," + flag.value;
    } else {
      line.flags.push_back(std::move(flag));
    }
  }
  return line;
}

absl::Status ValidateTenant(std::string_view tenant) {
  const auto bad = [&](std::string_view why) {
    return absl::InvalidArgumentError(base::StrCat("tenancy.default-tenant ", base::QuoteGo(tenant), ": ", why));
  };
  if (tenant.empty() || tenant.size() > 150) return bad("want 1 to 150 characters");
  if (tenant == "." || tenant == "..") return bad("not a name");
  for (const char c : tenant) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      std::string_view("!-_.*'()").find(c) != std::string_view::npos;
    if (!fine) return bad("only letters, digits and !-_.*'() may stand in a tenant's name");
  }
  return absl::OkStatus();
}

template <size_t N>
absl::Status AllKnown(std::string_view setting, std::string_view what, const std::vector<std::string>& given,
                      const std::array<std::string_view, N>& known) {
  const std::vector<std::string> names(known.begin(), known.end());
  for (const std::string& item : given) {
    if (std::find(names.begin(), names.end(), item) != names.end()) continue;
    absl::Status status = Unknown(what, item, names);
    return absl::InvalidArgumentError(
        base::StrCat(setting, ": ", base::Message(status), "; known are ", base::StrJoin(names, ", ")));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::InvalidArgumentError(base::StrCat("--config: cannot read ", path));
  std::string text;
  std::array<char, 4096> piece;
  while (in.read(piece.data(), piece.size()) || in.gcount() > 0) text.append(piece.data(), in.gcount());
  if (in.bad()) return absl::InvalidArgumentError(base::StrCat("--config: cannot read ", path, ": not a file"));
  return text;
}

}  // namespace

absl::Status Config::Validate() const {
  RETURN_IF_ERROR(http.Validate());
  if (data_dir.empty()) return absl::InvalidArgumentError("data-dir is empty");
  if (roles.empty()) return absl::InvalidArgumentError("roles is empty; want all");
  RETURN_IF_ERROR(AllKnown("roles", "role", roles, kRoles));
  RETURN_IF_ERROR(AllKnown("enable-feature", "feature", features, kFeatures));
  RETURN_IF_ERROR(ValidateTenant(tenancy.default_tenant));
  if (!grpc_listen.empty()) {
    const size_t colon = grpc_listen.rfind(':');
    const auto port =
        colon == std::string::npos ? std::nullopt : base::ParseUint64(std::string_view(grpc_listen).substr(colon + 1));
    if (!port || *port > 65535) {
      return absl::InvalidArgumentError(
          base::StrCat("grpc.listen ", base::QuoteGo(grpc_listen), ": want host:port, or empty for no listener"));
    }
    if (*port != 0 && grpc_listen == http.listen) {
      return absl::InvalidArgumentError(
          base::StrCat("http.listen and grpc.listen are both ", grpc_listen, "; each needs its own port"));
    }
  }
  if (storage.retention_ms != 0 && storage.retention_ms < head.cut_interval_ms) {
    return absl::InvalidArgumentError(base::StrCat(
        "storage.retention (", FormatDurationMs(storage.retention_ms), ") is shorter than head.cut-interval (",
        FormatDurationMs(head.cut_interval_ms), "): data would be gone before it is written out"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Loaded> Load(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  Loaded loaded;
  const std::vector<Setting> settings = Settings(loaded.config);
  ASSIGN_OR_RETURN(CommandLine line, ParseArguments(arguments, settings));
  loaded.action = line.action;
  // Who asks for help gets it, whatever else is wrong.
  if (line.action == Action::kHelp || line.action == Action::kVersion || line.action == Action::kConfigDocs) {
    return loaded;
  }

  const auto from_environment = [&](const std::string& name) -> std::optional<std::string_view> {
    for (const std::string& entry : environment) {
      if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
        return std::string_view(entry).substr(name.size() + 1);
      }
    }
    return std::nullopt;
  };
  if (line.config_file.empty()) line.config_file = from_environment("VARVE_CONFIG").value_or("");
  if (!line.config_file.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(line.config_file));
    RETURN_IF_ERROR(ApplyYaml(text, line.config_file, loaded.config));
  }
  for (const Setting& setting : settings) {
    const std::string name = EnvironmentName(setting.name);
    if (const auto value = from_environment(name)) RETURN_IF_ERROR(base::Annotate(SetValue(setting, *value), name));
  }
  for (const Flag& flag : line.flags) {
    RETURN_IF_ERROR(base::Annotate(SetValue(*Find(settings, flag.name), flag.value), base::StrCat("--", flag.name)));
  }
  RETURN_IF_ERROR(loaded.config.Validate());
  return loaded;
}

absl::StatusOr<Loaded> LoadFromProcess(int argc, char** argv) {
  std::vector<std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) environment.emplace_back(*entry);
  return Load(std::vector<std::string>(argv + std::min(argc, 1), argv + argc), environment);
}

}  // namespace varve::app
