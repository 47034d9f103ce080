// Sends the messages of a stream from a thread of its own, so that who makes
// them does not wait for a client that reads slowly or not at all.
//
// A client that takes nothing for `patience` is given up: the call is cancelled
// and everything that follows is refused.
//
// Thread safety: the methods belong to one thread.
#ifndef REGATTA_SERVER_STREAM_SENDER_H_
#define REGATTA_SERVER_STREAM_SENDER_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "base/clock.h"

namespace regatta {

template <typename Message>
class StreamSender {
 public:
  static constexpr absl::Duration kPatience = absl::Minutes(1);
  // Messages that Send lets wait.
  static constexpr size_t kRoom = 4;

  // `write` returns when the stream has taken the message; false: it is over.
  // `cancel` ends the call, so that a `write` that waits returns.
  StreamSender(std::function<bool(const Message&)> write,
               std::function<void()> cancel,
               absl::Duration patience = kPatience,
               const Clock& clock = RealClock())
      : write_(std::move(write)),
        cancel_(std::move(cancel)),
        patience_(patience),
        clock_(clock),
        moved_(clock.Steady()),
        thread_([this] { Loop(); }) {}

  // As Finish.
  ~StreamSender() {
    Finish();
    {
      std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  StreamSender(const StreamSender&) = delete;
  StreamSender& operator=(const StreamSender&) = delete;

  // Whether there is still somebody to send to.
  bool Open() {
    std::lock_guard lock(mutex_);
    if (!over_ && writing_ && clock_.Steady() - moved_ > patience_) GiveUp();
    return !over_;
  }

  // Never waits. Takes the place of the last report, unless that is sent; so
  // does whatever is sent after it.
  bool Report(Message report) {
    {
      std::lock_guard lock(mutex_);
      Given();
      report_ = std::move(report);
    }
    changed_.notify_all();
    return Open();
  }

  // Never waits: sends it in the order of these calls. The caller bounds their
  // number.
  bool Post(Message message) {
    {
      std::lock_guard lock(mutex_);
      Given();
      report_.reset();
      queue_.push_back(std::move(message));
    }
    changed_.notify_all();
    return Open();
  }

  // As Post, but waits while there is no room.
  bool Send(Message message) {
    return Wait([this] { return queue_.size() < kRoom; }) &&
           Post(std::move(message));
  }

  // Waits until everything is sent, but for a report, which is dropped.
  bool Finish() {
    {
      std::lock_guard lock(mutex_);
      report_.reset();
    }
    return Wait([this] { return queue_.empty() && !writing_; });
  }

 private:
  // The patience with the client begins with what it is given.
  // REQUIRES: mutex_.
  void Given() {
    if (!writing_ && queue_.empty() && !report_) moved_ = clock_.Steady();
  }

  // As long as something is taken now and then. False: the stream is over.
  template <typename Condition>
  bool Wait(const Condition& holds) {
    std::unique_lock lock(mutex_);
    while (!over_ && !holds()) {
      const absl::Duration left = patience_ - (clock_.Steady() - moved_);
      if (left <= absl::ZeroDuration()) {
        GiveUp();
      } else {
        changed_.wait_for(lock, absl::ToChronoNanoseconds(left));
      }
    }
    return !over_;
  }

  // REQUIRES: mutex_.
  void GiveUp() {
    over_ = true;
    cancel_();
    changed_.notify_all();
  }

  void Loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] {
        return over_ || !queue_.empty() || report_.has_value();
      });
      if (over_) return;
      Message next;
      if (!queue_.empty()) {
        next = std::move(queue_.front());
        queue_.pop_front();
      } else {
        next = *std::exchange(report_, std::nullopt);
      }
      writing_ = true;
      moved_ = clock_.Steady();
      lock.unlock();
      const bool taken = write_(next);
      lock.lock();
      writing_ = false;
      moved_ = clock_.Steady();
      over_ = over_ || !taken;
      changed_.notify_all();
    }
  }

  const std::function<bool(const Message&)> write_;
  const std::function<void()> cancel_;
  const absl::Duration patience_;
  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> queue_;
  std::optional<Message> report_;
  bool writing_ = false;
  SteadyTime moved_;  // when something was last given or taken
  bool over_ = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace regatta

#endif  // REGATTA_SERVER_STREAM_SENDER_H_
