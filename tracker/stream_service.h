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

  // A peer that lets max_queued_bytes wait, or a message for max_unread, does
  // not read: its stream is cut off. `context` is the call's.
  static std::shared_ptr<StreamReactor> Make(
      grpc::CallbackServerContext* context, int64_t max_queued_bytes,
      absl::Duration max_unread) {
    auto reactor = std::shared_ptr<StreamReactor>(
        new StreamReactor(context, max_queued_bytes, max_unread));
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

  void Send(Out message) {
    std::lock_guard lock(mutex_);
    if (finished_ || closing_) return;
    queued_bytes_ += static_cast<int64_t>(message.ByteSizeLong());
    queue_.push_back(std::move(message));
    if (queued_bytes_ > max_queued_bytes_ || Unread()) {
      // The message being written stays until gRPC is done with it.
      queue_.erase(queue_.begin() + (writing_ ? 1 : 0), queue_.end());
      closing_ = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                              "the peer does not read what it is sent");
      // Ends the write, which no end of the stream gets past. What that calls
      // comes on other threads.
      context_->TryCancel();
      FinishWhenWritten();
      return;
    }
    if (!writing_) WriteFront();
  }

  // After what was sent so far; at once where the peer does not read it.
  void Close(const absl::Status& status) {
    std::lock_guard lock(mutex_);
    if (finished_ || closing_) return;
    closing_ = ToGrpc(status);
    if (Unread()) context_->TryCancel();
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
  StreamReactor(grpc::CallbackServerContext* context, int64_t max_queued_bytes,
                absl::Duration max_unread)
      : context_(context),
        max_queued_bytes_(max_queued_bytes),
        max_unread_(max_unread) {}

  void WriteFront() {
    writing_ = true;
    write_began_ = RealClock().Steady();
    this->StartWrite(&queue_.front());
  }
  bool Unread() const {
    return writing_ && RealClock().Steady() - write_began_ > max_unread_;
  }
  void FinishWhenWritten() {
    if (writing_ || finished_ || !queue_.empty()) return;
    finished_ = true;
    this->Finish(*closing_);
  }

  grpc::CallbackServerContext* const context_;
  const int64_t max_queued_bytes_;
  const absl::Duration max_unread_;
  grpc::Alarm alarm_;  // for the next read
  Callbacks callbacks_;
  In in_;
  std::mutex mutex_;
  std::deque<Out> queue_;
  int64_t queued_bytes_ = 0;
  bool writing_ = false;
  SteadyTime write_began_;  // the present one's
  bool read_ended_ = false;
  bool finished_ = false;
  std::optional<grpc::Status> closing_;
  std::shared_ptr<StreamReactor> self_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_STREAM_SERVICE_H_
