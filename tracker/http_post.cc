#include "tracker/http_post.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#ifdef REGATTA_HAVE_HTTPLIB
#include "httplib.h"
#endif

namespace regatta {

#ifdef REGATTA_HAVE_HTTPLIB

bool HttpAvailable() { return true; }

namespace {

// For messages: passwords and keys stand in the user part or the query.
std::string Shown(const std::string& url) {
  const size_t host = url.find("://") + 3;
  const size_t path = std::min(url.find_first_of("/?#", host), url.size());
  const size_t at = url.rfind('@', path);
  const size_t from = at == std::string::npos || at < host ? host : at + 1;
  const size_t end = std::min(url.find_first_of("?#", path), url.size());
  return url.substr(0, host) + url.substr(from, end - from);
}

}  // namespace

absl::Status HttpPost(const std::string& url, const std::string& body,
                      const std::string& content_type, absl::Duration limit) {
  const size_t path = url.find('/', sizeof("http://") - 1);
  httplib::Client client(url.substr(0, path));
  const auto ms = absl::ToChronoMilliseconds(limit / 3);
  client.set_connection_timeout(ms);
  client.set_read_timeout(ms);
  client.set_write_timeout(ms);
  const auto answer = client.Post(
      path == std::string::npos ? "/" : url.substr(path), body, content_type);
  if (!answer) {
    return absl::UnavailableError(
        absl::StrCat(Shown(url), ": ", httplib::to_string(answer.error())));
  }
  if (answer->status / 100 != 2) {
    return absl::UnavailableError(
        absl::StrCat(Shown(url), " answered ", answer->status));
  }
  return absl::OkStatus();
}

#else

bool HttpAvailable() { return false; }

absl::Status HttpPost(const std::string& url, const std::string&,
                      const std::string&, absl::Duration) {
  return absl::UnavailableError(
      absl::StrCat(url, ": this program was built without cpp-httplib"));
}

#endif

}  // namespace regatta
