#include "tools/varvectl/run.h"

#include <CLI/CLI.hpp>
#include <fstream>
#include <iterator>
#include <optional>

#include "server/app/settings.h"
#include "server/app/version.h"
#include "server/http/client.h"
#include "server/http/message.h"
#include "storage/base/strings.h"
#include "tools/varvectl/json.h"
#include "tools/varvectl/render.h"

namespace varve::ctl {
namespace {

constexpr size_t kImportPieceBytes = 8u << 20;

using Form = std::vector<std::pair<std::string, std::string>>;
std::string Encode(const Form& form) {
  std::string out;
  for (const auto& [key, value] : form) {
    base::StrAppend(out, out.empty() ? "" : "&", http::PercentEncode(key), "=", http::PercentEncode(value));
  }
  return out;
}

struct Options {
  std::string address = "http://127.0.0.1:9201";
  std::string tenant;
  std::string output = "table";
  std::string timeout = "2m";
  std::string expression, time, start = "now-1h", end = "now", step;
  std::string label, file;
  std::vector<std::string> matchers;
};

class Session {
 public:
  Session(const Options& options, int64_t timeout_ms, const base::Clock& clock, std::istream& in, std::ostream& out,
          std::ostream& err)
      : options_(options), timeout_ms_(timeout_ms), clock_(clock), in_(in), out_(out), err_(err) {}

  int Query() {
    Form form = {{"query", options_.expression}};
    if (!options_.time.empty()) {
      const auto time = Time(options_.time);
      if (!time) return BadTime(options_.time);
      form.emplace_back("time", *time);
    }
    return ShowResult(Post("/api/v1/query", form));
  }

  int QueryRange() {
    const auto start = Time(options_.start), end = Time(options_.end);
    if (!start) return BadTime(options_.start);
    if (!end) return BadTime(options_.end);
    std::string step = options_.step;
    if (step.empty()) {  // about sixty points
      const auto from = base::ParseDouble(*start), to = base::ParseDouble(*end);
      step = base::StrCat(from && to ? std::max<int64_t>(1, static_cast<int64_t>((*to - *from) / 60)) : 60);
    }
    return ShowResult(Post("/api/v1/query_range",
                           {{"query", options_.expression}, {"start", *start}, {"end", *end}, {"step", step}}));
  }

  int Labels() {
    Form form;
    for (const std::string& matcher : options_.matchers) form.emplace_back("match[]", matcher);
    if (options_.label.empty()) return ShowList(Post("/api/v1/labels", form));
    return ShowList(Get(base::StrCat("/api/v1/label/", http::PercentEncode(options_.label), "/values"), form));
  }

  int Series() {
    Form form;
    for (const std::string& matcher : options_.matchers) form.emplace_back("match[]", matcher);
    const auto answer = Post("/api/v1/series", form);
    if (!answer) return code_;
    if (options_.output != "table") return ShowRaw(*answer);
    for (const Json& series : (*answer)["data"].items) out_ << MetricText(series) << "\n";
    return kOk;
  }

  int Status() {
    Json all;
    all.kind = Json::Kind::kObject;
    for (const char* part : {"buildinfo", "runtimeinfo", "tsdb"}) {
      const auto answer = Get(base::StrCat("/api/v1/status/", part), {});
      if (!answer) return code_;
      all.members.push_back({part, (*answer)["data"]});
    }
    if (options_.output == "json") {
      out_ << last_body_ << "\n";
      return kOk;
    }
    if (options_.output == "yaml") {
      out_ << ToYaml(all);
      return kOk;
    }
    Table table({"WHAT", "VALUE"});
    table.Add({"address", options_.address});
    for (const auto& [part, data] : all.members) AddScalars(data, "", table);
    out_ << table.ToString();
    const Json& metrics = all["tsdb"]["seriesCountByMetricName"];
    if (!metrics.items.empty()) {
      Table top({"METRIC", "SERIES"});
      for (const Json& entry : metrics.items) top.Add({entry["name"].text, entry["value"].text});
      out_ << "\n" << top.ToString();
    }
    return kOk;
  }

  int ImportPrometheusText() {
    std::string text;
    if (options_.file == "-") {
      text.assign(std::istreambuf_iterator<char>(in_), std::istreambuf_iterator<char>());
    } else {
      std::ifstream file(options_.file, std::ios::binary);
      std::vector<char> piece(1 << 16);
      while (file.read(piece.data(), piece.size()) || file.gcount() > 0) text.append(piece.data(), file.gcount());
      if (!file.eof() || file.bad()) {  // absent, or a folder
        err_ << "varvectl: cannot read " << options_.file << "\n";
        return kUsage;
      }
    }
    // In pieces of whole lines, so that a long file does not meet the server's limit on bodies.
    std::string_view rest = text;
    size_t sent = 0;
    while (!rest.empty()) {
      std::string_view piece = rest;
      if (piece.size() > kImportPieceBytes) {
        const size_t line_end = piece.rfind('\n', kImportPieceBytes);
        if (line_end == std::string_view::npos) {
          err_ << "varvectl: " << options_.file << ": a line of more than " << kImportPieceBytes << " bytes\n";
          return kUsage;
        }
        piece = piece.substr(0, line_end + 1);
      }
      const auto response = http::Post(options_.address + "/api/v1/import/prometheus",
                                       Headers("text/plain; version=0.0.4"), piece, timeout_ms_);
      if (!response.ok()) return Unreachable(response.status());
      if (response->status / 100 != 2) {
        if (sent > 0) err_ << "varvectl: the first " << sent << " bytes were taken\n";
        return Refused(*response);
      }
      if (!base::StrTrim(response->body).empty()) out_ << base::StrTrim(response->body) << "\n";
      sent += piece.size();
      rest.remove_prefix(piece.size());
    }
    out_ << "imported " << sent << " bytes\n";
    return kOk;
  }

 private:
  http::Headers Headers(std::string_view content_type) const {
    http::Headers headers;
    if (!content_type.empty()) headers.emplace_back("Content-Type", content_type);
    if (!options_.tenant.empty()) headers.emplace_back("X-Scope-OrgID", options_.tenant);
    headers.emplace_back("User-Agent", base::StrCat("varvectl/", app::Version()));
    return headers;
  }

  // "now", "now-1h", "now+5m" as seconds; everything else is the server's to understand.
  std::optional<std::string> Time(std::string_view text) const {
    if (!text.starts_with("now")) return std::string(text);
    int64_t ms = clock_.NowMs();
    text.remove_prefix(3);
    if (!text.empty()) {
      const auto shift = app::ParseDurationMs(text.substr(1));
      if ((text[0] != '-' && text[0] != '+') || !shift.ok()) return std::nullopt;
      ms += text[0] == '-' ? -*shift : *shift;
    }
    const std::string fraction = base::StrCat(ms % 1000);
    return base::StrCat(ms / 1000, ".", std::string(3 - fraction.size(), '0'), fraction);
  }
  int BadTime(std::string_view text) {
    err_ << "varvectl: " << base::QuoteGo(text)
         << " is not a time; want now, now-1h, Unix seconds or 2026-01-02T03:04:05Z\n";
    return kUsage;
  }

  std::optional<Json> Get(const std::string& path, const Form& form) {
    const std::string query = Encode(form);
    return Read(
        http::Get(base::StrCat(options_.address, path, query.empty() ? "" : "?", query), Headers(""), timeout_ms_));
  }
  std::optional<Json> Post(const std::string& path, const Form& form) {
    return Read(
        http::Post(options_.address + path, Headers("application/x-www-form-urlencoded"), Encode(form), timeout_ms_));
  }

  // The answer when it is a good one; otherwise says why not and sets code_.
  std::optional<Json> Read(const absl::StatusOr<http::ClientResponse>& response) {
    if (!response.ok()) {
      code_ = Unreachable(response.status());
      return std::nullopt;
    }
    auto json = Json::Parse(response->body);
    if (response->status / 100 != 2 || !json.ok() || (*json)["status"].text != "success") {
      code_ = Refused(*response);
      return std::nullopt;
    }
    for (const char* kind : {"warnings", "infos"}) {
      for (const Json& note : (*json)[kind].items)
        err_ << std::string_view(kind, std::string_view(kind).size() - 1) << ": " << note.text << "\n";
    }
    base::StrAppend(last_body_, last_body_.empty() ? "" : "\n", base::StrTrim(response->body));
    return *std::move(json);
  }

  int Unreachable(const absl::Status& status) {
    err_ << "varvectl: " << options_.address << ": " << base::Message(status) << "\n";
    return absl::IsInvalidArgument(status) ? kUsage : kUnreachable;
  }
  int Refused(const http::ClientResponse& response) {
    std::string why(base::StrTrim(response.body));
    const auto json = Json::Parse(response.body);
    if (json.ok() && json->Has("error")) {
      why =
          base::StrCat((*json)["errorType"].text, (*json)["errorType"].text.empty() ? "" : ": ", (*json)["error"].text);
    }
    err_ << "varvectl: the server said " << response.status << ": " << why << "\n";
    return kRefused;
  }

  int ShowRaw(const Json& json) {
    out_ << (options_.output == "json" ? last_body_ + "\n" : ToYaml(json["data"]));
    return kOk;
  }
  int ShowResult(const std::optional<Json>& answer) {
    if (!answer) return code_;
    if (options_.output != "table") return ShowRaw(*answer);
    out_ << ResultTable((*answer)["data"]);
    return kOk;
  }
  int ShowList(const std::optional<Json>& answer) {
    if (!answer) return code_;
    if (options_.output != "table") return ShowRaw(*answer);
    for (const Json& item : (*answer)["data"].items) out_ << item.text << "\n";
    return kOk;
  }
  // What Prometheus' clients expect to find and what says nothing here.
  static bool IsOfGo(std::string_view key) { return key == "goroutineCount" || key.starts_with("GO"); }
  static std::string Seconds(std::string_view ms) {
    return base::StrCat(ms.substr(0, ms.size() - 3), ".", ms.substr(ms.size() - 3));
  }
  static void AddScalars(const Json& json, const std::string& prefix, Table& table) {
    for (const auto& [key, value] : json.members) {
      if (value.kind == Json::Kind::kObject) {
        AddScalars(value, base::StrCat(prefix, key, "."), table);
      } else if (value.kind != Json::Kind::kArray && !value.text.empty() && !IsOfGo(key)) {
        const bool is_time = key == "minTime" || key == "maxTime";  // milliseconds
        table.Add({prefix + key, is_time && value.text.size() > 3 ? TimeText(Seconds(value.text)) : value.text});
      }
    }
  }

  const Options& options_;
  const int64_t timeout_ms_;
  const base::Clock& clock_;
  std::istream& in_;
  std::ostream& out_;
  std::ostream& err_;
  std::string last_body_;
  int code_ = kOk;
};

constexpr std::string_view kFooter =
    "Examples:\n"
    "  varvectl query up\n"
    "  varvectl query 'sum by (mode) (rate(node_cpu_seconds_total[2m]))' --time now-1h\n"
    "  varvectl query-range up --start now-15m --step 15s -o json\n"
    "  varvectl labels                      names of all labels\n"
    "  varvectl labels job --match up       values of one label\n"
    "  varvectl series '{job=\"node\"}'\n"
    "  varvectl import prometheus-text metrics.prom\n"
    "\n"
    "Exit code: 0 done, 1 the server refused, 2 wrong usage, 3 no server there.\n";

}  // namespace

int Run(const std::vector<std::string>& arguments, const base::Clock& clock, std::istream& in, std::ostream& out,
        std::ostream& err) {
  Options o;
  CLI::App app("varvectl: ask a Varve server, and feed it", "varvectl");
  app.footer("Options for every command: --address, --tenant, --output, --timeout; see varvectl --help.");
  app.set_version_flag("--version", base::StrCat("varvectl ", app::Version(), " (", app::Revision(), ")"));
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--address", o.address, "Where the server is (VARVE_ADDRESS)")
      ->envname("VARVE_ADDRESS")
      ->capture_default_str();
  app.add_option("--tenant", o.tenant, "Tenant to act for (VARVE_TENANT)")->envname("VARVE_TENANT");
  app.add_option("-o,--output", o.output, "table, json or yaml")
      ->check(CLI::IsMember({"table", "json", "yaml"}))
      ->capture_default_str();
  app.add_option("--timeout", o.timeout, "How long to wait for an answer")->capture_default_str();

  CLI::App* query = app.add_subcommand("query", "Evaluate a PromQL expression at one time");
  query->add_option("expression", o.expression, "PromQL")->required();
  query->add_option("--time", o.time, "now, now-1h, Unix seconds or RFC 3339; default: the server's now");
  CLI::App* range = app.add_subcommand("query-range", "Evaluate a PromQL expression over a range of time");
  range->add_option("expression", o.expression, "PromQL")->required();
  range->add_option("--start", o.start, "Begin of the range")->capture_default_str();
  range->add_option("--end", o.end, "End of the range")->capture_default_str();
  range->add_option("--step", o.step, "Distance of points; default: about sixty points");
  CLI::App* labels = app.add_subcommand("labels", "List label names, or the values of one label");
  labels->add_option("name", o.label, "Label whose values are wanted");
  labels->add_option("--match", o.matchers, "Only of series that match this selector")->allow_extra_args(false);
  CLI::App* series = app.add_subcommand("series", "List series that match selectors");
  series->add_option("selectors", o.matchers, "For example 'up{job=\"node\"}'")->required();
  CLI::App* status = app.add_subcommand("status", "Build, state and size of the server");
  CLI::App* import = app.add_subcommand("import", "Write samples from a file");
  import->require_subcommand(1);
  CLI::App* text = import->add_subcommand("prometheus-text", "A page in Prometheus' text format; - for standard input");
  text->add_option("file", o.file, "The page")->required();
  CLI::App* version = app.add_subcommand("version", "Version of varvectl");
  app.footer(std::string(kFooter));  // the commands above keep the short one

  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> rest = app.remaining();
    if (app.get_subcommands().empty() && !rest.empty()) {
      err << "varvectl: unknown command " << rest.front()
          << "; there are query, query-range, labels, series, status, import, version\n";
      return kUsage;
    }
    return app.exit(error, out, err) == 0 ? kOk : kUsage;
  }
  const auto timeout_ms = app::ParseDurationMs(o.timeout);
  if (!timeout_ms.ok() || *timeout_ms == 0) {
    err << "varvectl: --timeout: " << base::QuoteGo(o.timeout) << " is not a duration; want for example 30s\n";
    return kUsage;
  }
  while (o.address.ends_with('/')) o.address.pop_back();
  if (version->parsed()) {
    out << "varvectl " << app::Version() << " (" << app::Revision() << ")\n";
    return kOk;
  }
  Session session(o, *timeout_ms, clock, in, out, err);
  if (query->parsed()) return session.Query();
  if (range->parsed()) return session.QueryRange();
  if (labels->parsed()) return session.Labels();
  if (series->parsed()) return session.Series();
  if (status->parsed()) return session.Status();
  return session.ImportPrometheusText();
}

}  // namespace varve::ctl
