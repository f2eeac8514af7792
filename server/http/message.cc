#include "server/http/message.h"

#include "storage/base/strings.h"

namespace varve::http {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string_view Find(const std::vector<std::pair<std::string, std::string>>& pairs, std::string_view key) {
  for (const auto& [name, value] : pairs) {
    if (name == key) return value;
  }
  return {};
}

absl::Status AddForm(std::string_view form, Parameters& parameters) {
  for (const std::string_view pair : base::StrSplit(form, '&')) {
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    ASSIGN_OR_RETURN(std::string key, PercentDecode(pair.substr(0, equals), /*plus_is_space=*/true));
    std::string value;
    if (equals != std::string_view::npos) {
      ASSIGN_OR_RETURN(value, PercentDecode(pair.substr(equals + 1), /*plus_is_space=*/true));
    }
    parameters.Add(std::move(key), std::move(value));
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view Request::Header(std::string_view lower_case_name) const { return Find(headers, lower_case_name); }
std::string_view Request::PathParameter(std::string_view name) const { return Find(path_parameters, name); }

Response Response::Text(int status, std::string_view text) {
  Response response;
  response.status = status;
  response.body = text;
  return response;
}

Response Response::Json(int status, std::string body) {
  Response response;
  response.status = status;
  response.content_type = "application/json";
  response.body = std::move(body);
  return response;
}

absl::StatusOr<Parameters> Parameters::FromRequest(const Request& request) {
  Parameters parameters;
  RETURN_IF_ERROR(AddForm(request.query, parameters));
  const std::string_view type = request.Header("content-type");
  const std::string media = base::AsciiLower(base::StrTrim(type.substr(0, type.find(';'))));
  if (request.method != "GET" && media == "application/x-www-form-urlencoded") {
    RETURN_IF_ERROR(AddForm(request.body, parameters));
  }
  return parameters;
}

std::string_view Parameters::Get(std::string_view key) const { return Find(pairs_, key); }

bool Parameters::Has(std::string_view key) const {
  for (const auto& pair : pairs_) {
    if (pair.first == key) return true;
  }
  return false;
}

std::vector<std::string> Parameters::All(std::string_view key) const {
  std::vector<std::string> all;
  for (const auto& [name, value] : pairs_) {
    if (name == key) all.push_back(value);
  }
  return all;
}

absl::StatusOr<std::string> PercentDecode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 1 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return absl::InvalidArgumentError(base::StrCat("invalid percent-encoding ", base::QuoteGo(text.substr(i, 3))));
      }
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

std::string PercentEncode(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
        c == '.' || c == '~') {
      out += c;
    } else {
      out += '%';
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 15];
    }
  }
  return out;
}

}  // namespace varve::http
