// The settings as people read them: --help, docs/configuration.md and the status pages.
#include <algorithm>

#include "server/app/config.h"
#include "server/app/settings.h"
#include "storage/base/strings.h"

namespace varve::app {
namespace {

// Words of `text` in lines of at most `width`, each after the first behind `indent` spaces.
std::string Wrap(std::string_view text, size_t indent, size_t width) {
  std::string out;
  size_t column = indent;
  for (const std::string_view word : base::StrSplit(text, ' ')) {
    if (column > indent && column + 1 + word.size() > width) {
      base::StrAppend(out, "\n", std::string(indent, ' '));
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string Default(const Setting& setting) {
  const std::string value = ShownValue(setting);
  return value.empty() ? "none" : value;
}

// YAML plain scalars that stay texts and need no quotes.
bool IsPlain(std::string_view value) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '/';
  };
  return !value.empty() && value[0] != '-' && value[0] != '.' && base::AsciiLower(value) != "null" &&
         std::all_of(value.begin(), value.end(), plain);
}

// YAML's escapes are not Go's: \xff would be a character and not a byte. Control characters were refused when it was
// set.
std::string YamlText(std::string_view value) {
  if (IsPlain(value)) return std::string(value);
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string YamlValue(const Setting& setting) {
  const std::string value = ShownValue(setting);
  if (const auto* list = std::get_if<std::vector<std::string>*>(&setting.target)) {
    std::vector<std::string> items;
    for (const std::string& item : **list) items.push_back(YamlText(item));
    return base::StrCat("[", base::StrJoin(items, ", "), "]");
  }
  return std::holds_alternative<std::string*>(setting.target) ? YamlText(value) : value;
}

}  // namespace

std::string HelpText() {
  Config config;
  std::string out =
      "varve: a time-series database for Prometheus data\n"
      "\n"
      "Prometheus writes to it (remote_write), Grafana and promtool query it (PromQL over HTTP).\n"
      "\n"
      "Usage:\n"
      "  varve [--data-dir DIR] [--http.listen HOST:PORT] [--name=value ...]\n"
      "\n"
      "Examples:\n"
      "  varve                                   keep data in ./data, serve 127.0.0.1:9201\n"
      "  varve --data-dir /var/lib/varve --http.listen 0.0.0.0:9201 --storage.retention 30d\n"
      "  varve --config /etc/varve/varve.yaml --config.check\n"
      "\n"
      "Let Prometheus write to it (prometheus.yml):\n"
      "  remote_write:\n"
      "    - url: http://127.0.0.1:9201/api/v1/write\n"
      "\n"
      "Every setting below can be given as a flag, as an environment variable (--wal.sync is\n"
      "VARVE_WAL_SYNC) or as a key of a YAML file (wal: {sync: always}). A flag beats the\n"
      "environment, which beats the file.\n"
      "\n"
      "General\n"
      "  --help                       This text.\n"
      "  --version                    Version and build.\n"
      "  --config FILE                YAML file with settings (VARVE_CONFIG).\n"
      "  --config.check               Read and check all settings, and stop.\n"
      "  --config.docs                Print docs/configuration.md, and stop.\n";
  std::string_view group;
  for (const Setting& setting : Settings(config)) {
    if (setting.group != group) {
      group = setting.group;
      base::StrAppend(out, "\n", group, "\n");
    }
    constexpr size_t kIndent = 31, kWidth = 100;
    std::string flag = base::StrCat("  --", setting.name);
    flag += flag.size() + 2 > kIndent ? "\n" + std::string(kIndent, ' ') : std::string(kIndent - flag.size(), ' ');
    base::StrAppend(out, flag, Wrap(base::StrCat(setting.help, " (", Default(setting), ")"), kIndent, kWidth), "\n");
  }
  out += "\nNumbers in brackets are defaults. Durations: 100ms, 30s, 1h30m, 15d. Sizes: 64KiB, 32MiB, 2GiB.\n";
  return out;
}

std::string DocsMarkdown() {
  Config config;
  std::string out =
      "# Configuration\n"
      "\n"
      "This page is made by `varve --config.docs`; a test compares the two.\n"
      "\n"
      "Every setting can be given in three ways. A flag beats the environment, which beats the file, which beats the\n"
      "default.\n"
      "\n"
      "| | example |\n"
      "|---|---|\n"
      "| flag | `--wal.sync=always` or `--wal.sync always` |\n"
      "| environment | `VARVE_WAL_SYNC=always` |\n"
      "| file (`--config varve.yaml`, or `VARVE_CONFIG`) | `wal: {sync: always}` |\n"
      "\n"
      "`varve --config.check` reads and checks everything, and stops. Unknown names and bad values are "
      "refused,\n"
      "with the place where they stand and the nearest known name. Environment variables that begin with `VARVE_` and\n"
      "belong to no setting are ignored, because Kubernetes makes such variables for a service named varve.\n"
      "\n"
      "Durations: `100ms`, `30s`, `1h30m`, `15d`. Sizes: `4096`, `64KiB`, `32MiB`, `2GiB`; also `KB`, `MB`, `GB` in\n"
      "thousands. Lists: `a,b` in flags and environment, `[a, b]` in the file.\n";
  std::string_view group;
  for (const Setting& setting : Settings(config)) {
    if (setting.group != group) {
      group = setting.group;
      base::StrAppend(out, "\n## ", group, "\n\n| setting | kind | default | |\n|---|---|---|---|\n");
    }
    base::StrAppend(out, "| `", setting.name, "` | ", KindName(setting), " | `", Default(setting), "` | ", setting.help,
                    " |\n");
  }
  return out;
}

std::string ToYaml(const Config& config) {
  Config copy = config;
  std::string out;
  std::string section;
  for (const Setting& setting : Settings(copy)) {
    const size_t dot = setting.name.find('.');
    const std::string here(dot == std::string_view::npos ? "" : setting.name.substr(0, dot));
    if (here != section && !here.empty()) base::StrAppend(out, here, ":\n");
    section = here;
    base::StrAppend(out, here.empty() ? "" : "  ", setting.name.substr(here.empty() ? 0 : dot + 1), ": ",
                    YamlValue(setting), "\n");
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> ToFlags(const Config& config) {
  Config copy = config;
  std::vector<std::pair<std::string, std::string>> flags;
  for (const Setting& setting : Settings(copy)) flags.emplace_back(setting.name, ShownValue(setting));
  return flags;
}

}  // namespace varve::app
