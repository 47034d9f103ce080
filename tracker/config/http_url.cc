#include "tracker/config/http_url.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

constexpr std::string_view kScheme = "http://";

absl::Status Bad(const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("must be http://[USER:PASSWORD@]HOST[:PORT]/PATH; ", what));
}

// "%40" is "@".
absl::StatusOr<std::string> Decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    int byte = 0;
    const std::string digits(text.substr(i + 1, 2));
    if (digits.size() != 2 || !absl::ascii_isxdigit(digits[0]) ||
        !absl::ascii_isxdigit(digits[1]) ||
        !absl::SimpleHexAtoi(digits, &byte)) {
      return Bad("a % in user or password is not followed by two hex digits");
    }
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

absl::Status ReadUser(std::string_view info, HttpUrl* url) {
  const size_t colon = std::min(info.find(':'), info.size());
  if (colon == 0) return Bad("the user before '@' is empty");
  ASSIGN_OR_RETURN(url->user, Decoded(info.substr(0, colon)));
  if (colon == info.size()) return absl::OkStatus();
  ASSIGN_OR_RETURN(url->password, Decoded(info.substr(colon + 1)));
  return absl::OkStatus();
}

absl::Status ReadHost(std::string_view authority, HttpUrl* url) {
  const size_t bracket = authority.rfind(']');
  const bool has_port =
      authority.find(':', bracket == authority.npos ? 0 : bracket) !=
      authority.npos;
  const auto parts =
      SplitHostPort(has_port ? std::string(authority)
                             : absl::StrCat(std::string(authority), ":80"));
  if (!parts.ok()) return Bad("the host or its port is not one");
  if (parts->second == 0) return Bad("port 0 is none");
  url->port = parts->second;
  std::string host = parts->first;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  url->host = std::move(host);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HttpUrl> ParseHttpUrl(std::string_view text) {
  if (!text.starts_with(kScheme)) return Bad("it begins otherwise");
  if (std::any_of(text.begin(), text.end(), [](unsigned char c) {
        return absl::ascii_iscntrl(c) || absl::ascii_isspace(c);
      })) {
    return Bad("it has blanks or control characters");
  }
  text.remove_prefix(kScheme.size());
  text = text.substr(0, text.find('#'));
  const size_t end = std::min(text.find_first_of("/?"), text.size());
  std::string_view authority = text.substr(0, end);
  HttpUrl url;
  if (const size_t at = authority.rfind('@'); at != authority.npos) {
    RETURN_IF_ERROR(ReadUser(authority.substr(0, at), &url));
    authority.remove_prefix(at + 1);
  }
  RETURN_IF_ERROR(ReadHost(authority, &url));
  url.target = std::string(text.substr(end));
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  url.shown = absl::StrCat(std::string(kScheme), std::string(authority),
                           url.target.substr(0, url.target.find('?')));
  return url;
}

}  // namespace regatta
