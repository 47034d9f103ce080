// Tells a URL what happens to devices: one POST of JSON per event, in order.
//
// The queue is bounded: when the receiver is away for long, the oldest events
// are dropped and counted; `regatta device history` has them all.
//
// Thread-safe.
#ifndef REGATTA_TRACKER_WEBHOOK_H_
#define REGATTA_TRACKER_WEBHOOK_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "regatta/v1/device_control.pb.h"

namespace regatta {

class Webhook {
 public:
  static constexpr size_t kMaxQueued = 256;
  // Tries of one event: after the first at 1, 2, 4 and 8 s.
  static constexpr int kTries = 5;

  // Sends `body`; may block for seconds. Called from one thread.
  using Post = std::function<absl::Status(const std::string& body)>;
  // `first_wait` between two tries doubles each time.
  explicit Webhook(Post post, absl::Duration first_wait = absl::Seconds(1));
  // Drops what waits.
  ~Webhook();

  // Never blocks. The first event that is dropped since the queue was empty is
  // logged; dropped() counts all, also those that no try got through.
  void Notify(const v1::DeviceEvent& event);
  int64_t dropped() const;

 private:
  void Run();

  const Post post_;
  const absl::Duration first_wait_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> queue_;
  int64_t dropped_ = 0;
  bool overflowing_ = false;
  bool ending_ = false;
  std::thread thread_;  // last: starts when the rest is ready
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_WEBHOOK_H_
