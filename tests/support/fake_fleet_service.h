// A tracker of a few lines, for tests of agents: welcomes everyone, hands out
// what the test assigns, acknowledges heartbeats and results, and keeps what
// came.
//
// Thread-safe. One session at a time gets assignments: the newest.
#ifndef REGATTA_TESTS_SUPPORT_FAKE_FLEET_SERVICE_H_
#define REGATTA_TESTS_SUPPORT_FAKE_FLEET_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "regatta/v1/fleet_service.grpc.pb.h"

namespace regatta {

class FakeFleetService : public v1::FleetService::Service {
 public:
  using Stream = grpc::ServerReaderWriter<v1::TrackerMessage, v1::AgentMessage>;
  static constexpr std::chrono::seconds kPatience{20};

  grpc::Status Session(grpc::ServerContext*, Stream* stream) override {
    const grpc::Status status = Serve(stream);
    std::lock_guard lock(mutex_);
    if (stream_ == stream) stream_ = nullptr;
    return status;
  }

  // Waits until a message of this kind came; false when none did.
  bool Await(bool (v1::AgentMessage::*has)() const, size_t count = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] {
      size_t found = 0;
      for (const v1::AgentMessage& m : received_) found += (m.*has)() ? 1 : 0;
      return found >= count;
    });
  }
  // The result of this trial, taken out; absent when none came within `limit`.
  std::optional<v1::TrialResult> TakeResult(const std::string& trial_id,
                                            absl::Duration limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoMilliseconds(limit),
                      [&] { return results_.contains(trial_id); });
    const auto it = results_.find(trial_id);
    if (it == results_.end()) return std::nullopt;
    v1::TrialResult result = std::move(it->second);
    results_.erase(it);
    return result;
  }
  // Trials with a result that nobody has taken.
  size_t ResultCount() {
    std::lock_guard lock(mutex_);
    return results_.size();
  }
  std::vector<v1::AgentMessage> Received() {
    std::lock_guard lock(mutex_);
    return received_;
  }
  // For the session that there is, else for the next one.
  void Assign(v1::Assignment assignment) {
    std::lock_guard lock(mutex_);
    assignments_.push_back(std::move(assignment));
    SendAssignments();
  }
  void AnswerWith(grpc::Status status) {
    std::lock_guard lock(mutex_);
    answer_ = std::move(status);
  }

 private:
  grpc::Status Serve(Stream* stream) {
    v1::AgentMessage in;
    while (stream->Read(&in)) {
      std::lock_guard lock(mutex_);
      Keep(in);
      changed_.notify_all();
      if (!answer_.ok()) return answer_;
      v1::TrackerMessage out;
      if (in.has_hello()) {
        out.mutable_welcome()->set_tracker_epoch(++epoch_);
        out.mutable_welcome()->set_heartbeat_ms(100);
        out.mutable_welcome()->set_lease_ms(60'000);
        stream->Write(out);
        stream_ = stream;
        SendAssignments();
      } else if (in.has_heartbeat()) {
        out.mutable_heartbeat_ack()->set_sequence(in.heartbeat().sequence());
        out.mutable_heartbeat_ack()->set_lease_ms(60'000);
        *out.mutable_heartbeat_ack()->mutable_renewed() =
            in.heartbeat().held_assignment_ids();
        stream->Write(out);
      } else if (in.has_result_batch()) {
        for (const v1::SpooledResult& one : in.result_batch().results()) {
          v1::TrialAck& ack = *out.mutable_result_ack()->add_acks();
          ack.set_trial_id(one.result().spec().trial_id());
          ack.set_attempt(one.result().attempt());
          ack.set_status(v1::ACK_STATUS_STORED);
        }
        stream->Write(out);
      }
    }
    return grpc::Status::OK;
  }
  // With mutex_ held, as what follows.
  void Keep(const v1::AgentMessage& message) {
    received_.push_back(message);
    for (const v1::SpooledResult& one : message.result_batch().results()) {
      results_[one.result().spec().trial_id()] = one.result();
    }
  }
  void SendAssignments() {
    while (stream_ != nullptr && !assignments_.empty()) {
      v1::TrackerMessage out;
      *out.mutable_assign()->mutable_assignment() =
          std::move(assignments_.front());
      assignments_.pop_front();
      stream_->Write(out);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<v1::AgentMessage> received_;
  std::map<std::string, v1::TrialResult> results_;  // by trial
  std::deque<v1::Assignment> assignments_;
  Stream* stream_ = nullptr;  // the newest session's
  grpc::Status answer_;
  int64_t epoch_ = 0;
};

}  // namespace regatta

#endif  // REGATTA_TESTS_SUPPORT_FAKE_FLEET_SERVICE_H_
