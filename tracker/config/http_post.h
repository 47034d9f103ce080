// One HTTP POST, through cpp-httplib where that was there at build time.
#ifndef REGATTA_TRACKER_CONFIG_HTTP_POST_H_
#define REGATTA_TRACKER_CONFIG_HTTP_POST_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace regatta {

// Whether this program can speak HTTP at all.
bool HttpAvailable();

// Blocks until the whole answer, for at most about `limit`; connecting to a
// name with many addresses may take longer. OK: the answer was 2xx.
// Unavailable: no answer, or another one; says which. DeadlineExceeded: none
// within `limit`. InvalidArgument: ParseHttpUrl's. A user and password in the
// URL are sent as basic authentication. Thread-safe.
absl::Status HttpPost(const std::string& url, const std::string& body,
                      const std::string& content_type, absl::Duration limit);

}  // namespace regatta

#endif  // REGATTA_TRACKER_CONFIG_HTTP_POST_H_
