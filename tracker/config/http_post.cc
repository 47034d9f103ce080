#include "tracker/config/http_post.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tracker/config/http_url.h"

#ifdef REGATTA_HAVE_HTTPLIB
#include "httplib.h"
#endif

namespace regatta {

#ifdef REGATTA_HAVE_HTTPLIB

bool HttpAvailable() { return true; }

namespace {

// Ends what the client does at the deadline: its own limits are for each read
// and write, so that a receiver which sends a byte now and then could hold it
// for ever.
class Watchdog {
 public:
  Watchdog(httplib::Client* client, absl::Duration limit)
      : client_(client), thread_([this, limit] { Watch(limit); }) {}
  // True: the deadline came first.
  bool Stop() {
    {
      std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    thread_.join();
    return bitten_;
  }

 private:
  void Watch(absl::Duration limit) {
    std::unique_lock lock(mutex_);
    auto wait = absl::ToChronoMilliseconds(limit);
    // Again and again: there may be no connection yet.
    while (!changed_.wait_for(lock, wait, [this] { return done_; })) {
      bitten_ = true;
      client_->stop();
      wait = std::chrono::milliseconds(50);
    }
  }

  httplib::Client* const client_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  bool bitten_ = false;
  std::thread thread_;  // last: starts when the rest is ready
};

}  // namespace

absl::Status HttpPost(const std::string& url, const std::string& body,
                      const std::string& content_type, absl::Duration limit) {
  ASSIGN_OR_RETURN(const HttpUrl where, ParseHttpUrl(url));
  httplib::Client client(where.host, where.port);
  client.set_connection_timeout(absl::ToChronoMilliseconds(limit));
  // The watchdog comes first.
  const auto more = absl::ToChronoMilliseconds(limit + absl::Seconds(5));
  client.set_read_timeout(more);
  client.set_write_timeout(more);
  if (!where.user.empty()) client.set_basic_auth(where.user, where.password);
  httplib::Request request;
  request.method = "POST";
  request.path = where.target;
  request.set_header("Content-Type", content_type);
  request.body = body;
  // Nobody reads the answer's text.
  request.content_receiver = [](const char*, size_t, uint64_t, uint64_t) {
    return true;
  };
  Watchdog watchdog(&client, limit);
  const httplib::Result answer = client.send(request);
  if (watchdog.Stop()) {
    return absl::DeadlineExceededError(absl::StrCat(
        where.shown, " did not answer within ", absl::FormatDuration(limit)));
  }
  if (!answer) {
    return absl::UnavailableError(
        absl::StrCat(where.shown, ": ", httplib::to_string(answer.error())));
  }
  if (answer->status / 100 != 2) {
    return absl::UnavailableError(
        absl::StrCat(where.shown, " answered ", answer->status));
  }
  return absl::OkStatus();
}

#else

bool HttpAvailable() { return false; }

absl::Status HttpPost(const std::string& url, const std::string&,
                      const std::string&, absl::Duration) {
  ASSIGN_OR_RETURN(const HttpUrl where, ParseHttpUrl(url));
  return absl::UnavailableError(absl::StrCat(
      where.shown, ": this program was built without cpp-httplib"));
}

#endif

}  // namespace regatta
