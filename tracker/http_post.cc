#include "tracker/http_post.h"

#include "absl/strings/str_cat.h"

#ifdef REGATTA_HAVE_HTTPLIB
#include "httplib.h"
#endif

namespace regatta {

#ifdef REGATTA_HAVE_HTTPLIB

bool HttpAvailable() { return true; }

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
        absl::StrCat(url, ": ", httplib::to_string(answer.error())));
  }
  if (answer->status / 100 != 2) {
    return absl::UnavailableError(
        absl::StrCat(url, " answered ", answer->status));
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
