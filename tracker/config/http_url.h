// The URLs that the fleet's file names: http://[USER[:PASSWORD]@]HOST[:PORT]
// [/PATH][?QUERY].
//
// Thread safety: free functions.
#ifndef REGATTA_TRACKER_CONFIG_HTTP_URL_H_
#define REGATTA_TRACKER_CONFIG_HTTP_URL_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace regatta {

struct HttpUrl {
  // Decoded; `user` is "" where the URL names none.
  std::string user;
  std::string password;
  std::string host;  // an IPv6 address without its brackets
  int port = 80;
  std::string target;  // path and query, "/" at least
  // For messages: without user, password and query, where secrets stand.
  std::string shown;
};

// InvalidArgument: what is wrong, quoting nothing of the URL that may be
// secret.
absl::StatusOr<HttpUrl> ParseHttpUrl(std::string_view url);

}  // namespace regatta

#endif  // REGATTA_TRACKER_CONFIG_HTTP_URL_H_
