// The model of a server: keeps jobs and the tuning log on disk, commits each
// trial once, acknowledges after that.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/outcome_names.h"
#include "tests/fleet_sim/core_simulation.h"
#include "tests/support/random_works.h"

namespace regatta::fleet_sim {
namespace {

constexpr char kServerId[] = "log";

}  // namespace

bool CoreSimulation::Committed(const v1::Work& work) const {
  return std::all_of(work.trials().begin(), work.trials().end(),
                     [this](const v1::TrialSpec& trial) {
                       return server_.log.contains(trial.trial_id());
                     });
}

void CoreSimulation::MakeWork(bool has_y) {
  for (v1::Work& work : RandomWorks(random_, /*spread=*/50, has_y)) {
    server_.works[work.work_id()] = std::move(work);
  }
}

void CoreSimulation::ConnectServer() {
  if (!server_.up || server_.connection != 0) return;
  if (core_ == nullptr) {
    After(Between(100, 2000), [this, instance = server_.instance] {
      if (server_.instance == instance) ConnectServer();
    });
    return;
  }
  server_.connection = static_cast<int64_t>(++last_connection_);
  server_.last_to_tracker = server_.last_to_server = clock_.Steady();
  const StreamId stream{static_cast<uint64_t>(server_.connection)};
  Input([stream](TrackerCore& core) { core.ServerOpened(stream); });
  v1::DispatchRequest request;
  request.mutable_attach()->set_server_id(kServerId);
  ToTracker(std::move(request));
}

void CoreSimulation::ToTracker(v1::DispatchRequest request) {
  if (server_.connection == 0) return;
  server_.last_to_tracker =
      std::max(server_.last_to_tracker, clock_.Steady() + Between(0, 20));
  After(server_.last_to_tracker - clock_.Steady(),
        [this, connection = server_.connection, run = tracker_run_,
         request = std::move(request)] {
          if (server_.connection != connection || run != tracker_run_) return;
          const StreamId stream{static_cast<uint64_t>(connection)};
          Input([stream, request](TrackerCore& core) {
            core.ServerSaid(stream, request);
          });
        });
}

void CoreSimulation::BreakServer() {
  if (server_.connection == 0) return;
  const StreamId stream{static_cast<uint64_t>(server_.connection)};
  server_.connection = 0;
  // Sometimes the tracker notices only when the next stream attaches.
  if (Chance(0.7)) {
    After(Between(0, 500), [this, stream, run = tracker_run_] {
      if (run != tracker_run_) return;
      Input([this, stream](TrackerCore& core) {
        core.ServerClosed(stream);
        fleet_watch_.Closed(stream);
      });
    });
  }
  After(Between(20, 5000), [this, instance = server_.instance] {
    if (server_.instance == instance) ConnectServer();
  });
}

void CoreSimulation::KillServer() {
  if (!server_.up) return;
  ++report_.counts["servers killed"];
  server_.up = false;
  ++server_.instance;
  BreakServer();
  After(Between(100, 20'000), [this, instance = server_.instance] {
    if (server_.instance != instance) return;
    server_.up = true;
    ConnectServer();
  });
}

void CoreSimulation::ServerHears(const v1::DispatchEvent& event) {
  if (event.has_attached()) {
    // What a cancelled job still has there is of no use.
    v1::DispatchRequest request;
    for (const auto& work_id : event.attached().held_work_ids()) {
      if (server_.cancelled.contains(server_.works.at(work_id).job_id())) {
        request.mutable_cancel()->add_work_ids(work_id);
      }
    }
    if (request.has_cancel()) ToTracker(std::move(request));
    SubmitWanted();
    SubmitSome();
    return;
  }
  if (!event.has_results()) return;
  // Durable after a while, if the server lives that long.
  After(Between(1, 30),
        [this, instance = server_.instance, results = event.results()] {
          if (server_.instance == instance) Commit(results);
        });
}

// Everything submitted before and not committed: the tracker may have forgotten
// it. What is cancelled ends here if the tracker has nothing to say of it.
void CoreSimulation::SubmitWanted() {
  v1::DispatchRequest request;
  for (const std::string& id : server_.submitted) {
    const v1::Work& work = server_.works.at(id);
    if (Committed(work)) continue;
    if (!server_.cancelled.contains(work.job_id())) {
      *request.mutable_submit()->add_work() = work;
      continue;
    }
    for (const v1::TrialSpec& trial : work.trials()) {
      v1::TrialResult result;
      *result.mutable_spec() = trial;
      result.set_outcome(v1::OUTCOME_CANCELLED);
      server_.log.emplace(trial.trial_id(), std::move(result));
    }
  }
  if (request.has_submit()) ToTracker(std::move(request));
}

// The search asks for more as time goes by, until all is submitted.
void CoreSimulation::SubmitSome() {
  const int64_t connection = server_.connection;
  if (connection == 0) return;
  v1::DispatchRequest request;
  int left = 1 + static_cast<int>(random_.Below(6));
  for (const auto& [id, work] : server_.works) {
    if (server_.submitted.contains(id)) continue;
    if (left-- == 0) break;
    server_.submitted.insert(id);
    *request.mutable_submit()->add_work() = work;
    if (server_.cancelled.contains(work.job_id())) {
      v1::DispatchRequest cancel;
      cancel.mutable_cancel()->add_work_ids(id);
      ToTracker(std::exchange(request, {}));
      ToTracker(std::move(cancel));
    }
  }
  if (request.has_submit()) ToTracker(std::move(request));
  if (server_.submitted.size() == server_.works.size()) return;
  After(Between(500, 6000), [this, connection] {
    if (server_.connection == connection) SubmitSome();
  });
}

void CoreSimulation::CancelJob(int64_t job) {
  ++report_.counts["jobs cancelled"];
  server_.cancelled.insert(job);
  v1::DispatchRequest request;
  request.mutable_cancel()->set_job_id(job);
  ToTracker(std::move(request));
}

void CoreSimulation::Commit(const v1::Results& results) {
  v1::DispatchRequest request;
  for (const v1::TrialResult& result : results.results()) {
    const std::string& trial_id = result.spec().trial_id();
    const bool stored = server_.log.emplace(trial_id, result).second;
    if (stored) CheckRecord(result);
    if (!stored) ++report_.counts["duplicates"];
    v1::TrialAck* ack = request.mutable_commit_ack()->add_acks();
    ack->set_trial_id(trial_id);
    ack->set_attempt(result.attempt());
    ack->set_status(stored ? v1::ACK_STATUS_STORED : v1::ACK_STATUS_DUPLICATE);
  }
  ToTracker(std::move(request));
}

void CoreSimulation::CheckRecord(const v1::TrialResult& result) {
  const std::string& trial_id = result.spec().trial_id();
  if (result.provenance() == "tracker") {
    ++report_.counts[OutcomeName(result.outcome())];
    if (IsCandidateOutcome(result.outcome())) {
      Violation(absl::StrCat("I5: the tracker says ",
                             OutcomeName(result.outcome()), " of ", trial_id));
    }
    if (result.outcome() == v1::OUTCOME_CANCELLED &&
        !server_.cancelled.contains(result.spec().job_id())) {
      Violation("I1: " + trial_id + " was reported cancelled but is not");
    }
    return;
  }
  if (!IsCandidateOutcome(result.outcome())) {
    Violation(absl::StrCat("I5: a board's ", OutcomeName(result.outcome()),
                           " of ", trial_id, " was stored"));
  }
  if (result.timed_end_boot_ns() == 0) return;
  auto& windows = windows_[result.device_id()];
  const int64_t start = result.timed_start_boot_ns();
  const int64_t end = result.timed_end_boot_ns();
  // Trials that are timed alternately share one window.
  if (const auto same = windows.find(start);
      same != windows.end() && same->second == end) {
    return;
  }
  const auto next = windows.lower_bound(start);
  const bool overlaps =
      (next != windows.end() && next->first < end) ||
      (next != windows.begin() && std::prev(next)->second > start);
  if (overlaps) {
    Violation("I3: timed runs overlap on " + result.device_id());
  }
  windows[start] = end;
}

}  // namespace regatta::fleet_sim
