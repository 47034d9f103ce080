#include "tracker/webhook.h"

#include <utility>

#include "base/log.h"
#include "tracker/config/event_json.h"

namespace regatta {

Webhook::Webhook(Post post, absl::Duration first_wait)
    : post_(std::move(post)),
      first_wait_(first_wait),
      thread_([this] { Run(); }) {}

Webhook::~Webhook() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Webhook::Notify(const v1::DeviceEvent& event) {
  bool news = false;
  {
    std::lock_guard lock(mutex_);
    if (queue_.size() >= kMaxQueued) {
      queue_.pop_front();
      ++dropped_;
      news = !std::exchange(overflowing_, true);
    }
    queue_.push_back(EventJson(event));
  }
  changed_.notify_all();
  if (!news) return;
  LOG(kWarning) << "more than " << kMaxQueued
                << " events wait for the webhook; the oldest are dropped";
}

int64_t Webhook::dropped() const {
  std::lock_guard lock(mutex_);
  return dropped_;
}

void Webhook::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (ending_) return;
    const std::string body = std::move(queue_.front());
    queue_.pop_front();
    if (queue_.empty()) overflowing_ = false;
    absl::Duration wait = first_wait_;
    for (int left = kTries; left > 0; --left) {
      lock.unlock();
      const absl::Status status = post_(body);
      lock.lock();
      if (status.ok()) break;
      if (left == 1) {
        ++dropped_;
        LOG(kWarning) << "the webhook does not take an event: "
                      << status.message();
        break;
      }
      changed_.wait_for(lock, absl::ToChronoNanoseconds(wait),
                        [this] { return ending_; });
      if (ending_) return;
      wait *= 2;
    }
  }
}

}  // namespace regatta
