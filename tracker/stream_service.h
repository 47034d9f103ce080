// One bidirectional stream of the server side, for gRPC's callback API: reads
// one message at a time, queues writes, closes after the queue is written.
//
// Reads are paced by their consumer: the next one starts when the consumer
// calls ReadNext, so a peer cannot fill the memory with unread messages.
//
// Thread safety: all public methods may be called from any thread. gRPC owns
// the pace; the object lives until gRPC is done with it and nobody else holds
// a reference.
#ifndef REGATTA_TRACKER_STREAM_SERVICE_H_
#define REGATTA_TRACKER_STREAM_SERVICE_H_

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "proto/grpc_status_service.h"

namespace regatta {

template <typename In, typename Out>
class StreamReactor : public grpc::ServerBidiReactor<In, Out> {
 public:
  struct Callbacks {
    // A message came; the next is read after ReadNext.
    std::function<void(In)> said;
    // The peer is gone or says no more. Called once.
    std::function<void()> ended;
  };

  static std::shared_ptr<StreamReactor> Make(int64_t max_queued_bytes) {
    auto reactor =
        std::shared_ptr<StreamReactor>(new StreamReactor(max_queued_bytes));
    reactor->self_ = reactor;
    return reactor;
  }

  void Begin(Callbacks callbacks) {
    callbacks_ = std::move(callbacks);
    this->StartRead(&in_);
  }

  void ReadNext() {
    std::lock_guard lock(mutex_);
    if (!finished_ && !read_ended_) this->StartRead(&in_);
  }

  // The same, no sooner than `wait` from now. No more than one of these calls
  // waits at a time.
  static void ReadNextAfter(const std::shared_ptr<StreamReactor>& reactor,
                            absl::Duration wait) {
    if (wait <= absl::ZeroDuration()) return reactor->ReadNext();
    reactor->alarm_.Set(absl::ToChronoTime(RealClock().Wall() + wait),
                        [reactor](bool) { reactor->ReadNext(); });
  }

  // A peer that does not read is closed when max_queued_bytes wait for it.
  void Send(Out message) {
    std::lock_guard lock(mutex_);
    if (finished_ || closing_) return;
    queued_bytes_ += static_cast<int64_t>(message.ByteSizeLong());
    queue_.push_back(std::move(message));
    if (queued_bytes_ > max_queued_bytes_) {
      // The message being written stays until gRPC is done with it.
      queue_.erase(queue_.begin() + (writing_ ? 1 : 0), queue_.end());
      closing_ = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                              "the peer does not read what it is sent");
      FinishWhenWritten();
      return;
    }
    if (!writing_) WriteFront();
  }

  // After what was sent so far.
  void Close(const absl::Status& status) {
    std::lock_guard lock(mutex_);
    if (finished_ || closing_) return;
    closing_ = ToGrpc(status);
    FinishWhenWritten();
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      callbacks_.said(std::exchange(in_, In()));
      return;
    }
    {
      std::lock_guard lock(mutex_);
      read_ended_ = true;
    }
    callbacks_.ended();
    std::lock_guard lock(mutex_);
    if (finished_) return;
    if (!closing_) closing_ = grpc::Status::OK;
    FinishWhenWritten();
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    writing_ = false;
    queued_bytes_ -= static_cast<int64_t>(queue_.front().ByteSizeLong());
    queue_.pop_front();
    if (!ok) queue_.clear();
    if (!queue_.empty()) {
      WriteFront();
    } else if (closing_) {
      FinishWhenWritten();
    }
  }

  void OnDone() override {
    if (!read_ended_) callbacks_.ended();
    // The last reference may be this one: let go after the last member is used.
    const std::shared_ptr<StreamReactor> self = std::move(self_);
    callbacks_ = {};
  }

 private:
  explicit StreamReactor(int64_t max_queued_bytes)
      : max_queued_bytes_(max_queued_bytes) {}

  void WriteFront() {
    writing_ = true;
    this->StartWrite(&queue_.front());
  }
  void FinishWhenWritten() {
    if (writing_ || finished_ || !queue_.empty()) return;
    finished_ = true;
    this->Finish(*closing_);
  }

  const int64_t max_queued_bytes_;
  grpc::Alarm alarm_;  // for the next read
  Callbacks callbacks_;
  In in_;
  std::mutex mutex_;
  std::deque<Out> queue_;
  int64_t queued_bytes_ = 0;
  bool writing_ = false;
  bool read_ended_ = false;
  bool finished_ = false;
  std::optional<grpc::Status> closing_;
  std::shared_ptr<StreamReactor> self_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_STREAM_SERVICE_H_
