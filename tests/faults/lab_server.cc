// A lab's server: wants its work done, stores each trial once, acknowledges
// what it stored.
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/faults/lab.h"

namespace regatta::faults {

void Lab::Submit(int works, int trials_each) {
  v1::DispatchRequest request;
  for (int i = 0; i < works; ++i) {
    v1::Work work;
    work.set_work_id(absl::StrCat("1/0/", next_work_));
    work.set_job_id(1);
    work.set_device_class(kLabClass);
    work.set_compiler_version(kLabCompiler);
    work.set_space("cpu");
    work.set_space_version(1);
    work.set_mode(v1::ASSIGNMENT_MODE_SCREEN);
    for (int t = 0; t < trials_each; ++t) {
      v1::TrialSpec& trial = *work.add_trials();
      trial.set_trial_id(absl::StrCat("1/0/", next_work_++));
      trial.set_job_id(1);
      trial.set_workload("matmul(m=4,n=4,k=4)");
      trial.set_device_class(kLabClass);
      trial.set_target(kLabTarget);
      trial.set_compiler_version(kLabCompiler);
      trial.mutable_schedule()->set_space("cpu");
      trial.mutable_schedule()->set_space_version(1);
    }
    server_.works[work.work_id()] = work;
    *request.mutable_submit()->add_work() = std::move(work);
  }
  Ask(std::move(request));
}

void Lab::Ask(v1::DispatchRequest request) {
  if (server_.stream) server_outbox_.push_back(std::move(request));
}

void Lab::AttachServer() {
  if (core_ == nullptr) return;
  server_.stream = StreamId{++last_id_};
  server_outbox_.clear();
  core_->ServerOpened(*server_.stream);
  v1::DispatchRequest attach;
  attach.mutable_attach()->set_server_id("log1");
  Ask(std::move(attach));
  // What it still wants; the tracker may have forgotten it.
  v1::DispatchRequest wanted;
  for (const auto& [id, work] : server_.works) {
    for (const auto& trial : work.trials()) {
      if (server_.log.contains(trial.trial_id())) continue;
      *wanted.mutable_submit()->add_work() = work;
      break;
    }
  }
  if (wanted.has_submit()) Ask(std::move(wanted));
}

void Lab::DetachServer() {
  if (!server_.stream) return;
  if (core_ != nullptr) {
    core_->ServerClosed(*server_.stream);
    Flush();
  }
  server_.stream.reset();
  server_.waiting.clear();
  server_outbox_.clear();
}

void Lab::ServerHears(const v1::DispatchEvent& event) {
  for (const auto& result : event.results().results()) {
    if (server_.disk_full && server_.waiting.size() >= server_.most_waiting) {
      server_.let_go = true;
    } else {
      server_.waiting.push_back(result);
    }
  }
}

void Lab::Commit() {
  // After a tracker's restart it comes back by itself.
  if (!server_.stream && core_ != nullptr && !tracker_paused_ &&
      !server_.disk_full) {
    AttachServer();
  }
  if (server_.disk_full) return;
  if (server_.let_go && server_.waiting.empty() && server_outbox_.empty()) {
    server_.let_go = false;
    DetachServer();
    AttachServer();
    return;
  }
  v1::DispatchRequest request;
  for (v1::TrialResult& result : std::exchange(server_.waiting, {})) {
    const std::string id = result.spec().trial_id();
    const bool stored = server_.log.emplace(id, result).second;
    server_.duplicates += stored ? 0 : 1;
    v1::TrialAck* ack = request.mutable_commit_ack()->add_acks();
    ack->set_trial_id(id);
    ack->set_attempt(result.attempt());
    ack->set_status(stored ? v1::ACK_STATUS_STORED : v1::ACK_STATUS_DUPLICATE);
  }
  if (request.has_commit_ack() && !server_.keeps_acks) Ask(std::move(request));
}

}  // namespace regatta::faults
