// The model of a server: keeps jobs and the tuning log on disk, commits each
// trial once.
#include <algorithm>

#include "tests/support/random_works.h"
#include "tests/tracker/simulation.h"

namespace regatta {

void Simulation::MakeJobs(ServerModel& server) {
  const bool has_y =
      std::any_of(agents_.begin(), agents_.end(), [](const auto& agent) {
        return std::any_of(
            agent->devices.begin(), agent->devices.end(),
            [](const auto& d) { return d.device_class() == "y"; });
      });
  for (v1::Work& work : RandomWorks(random_, /*spread=*/60, has_y)) {
    if (Chance(0.2)) work.add_avoid_device_ids("d0-0");
    server.works[work.work_id()] = std::move(work);
  }
}

void Simulation::ConnectServer(ServerModel& server) {
  if (!server.up || server.connection != 0) return;
  if (core_ == nullptr) {
    const int64_t instance = server.instance;
    After(Between(100, 2000), [this, &server, instance] {
      if (server.instance == instance) ConnectServer(server);
    });
    return;
  }
  server.connection = static_cast<int64_t>(++last_connection_);
  server.last_to_tracker = server.last_to_server = clock_.Steady();
  const StreamId stream{static_cast<uint64_t>(server.connection)};
  Input([stream](TrackerCore& core) { core.ServerOpened(stream); });
  v1::DispatchRequest request;
  request.mutable_attach()->set_server_id(server.id);
  ToTracker(server, std::move(request));
}

void Simulation::ToTracker(ServerModel& server, v1::DispatchRequest request) {
  if (server.connection == 0) return;
  const int64_t connection = server.connection;
  const int64_t run = tracker_run_;
  const StreamId stream{static_cast<uint64_t>(connection)};
  server.last_to_tracker =
      std::max(server.last_to_tracker, clock_.Steady() + Between(0, 20));
  After(server.last_to_tracker - clock_.Steady(),
        [this, &server, connection, run, stream, request = std::move(request)] {
          if (server.connection != connection || run != tracker_run_) return;
          Input([stream, request](TrackerCore& core) {
            core.ServerSaid(stream, request);
          });
        });
}

void Simulation::BreakServer(ServerModel& server) {
  if (server.connection == 0) return;
  const StreamId stream{static_cast<uint64_t>(server.connection)};
  const int64_t run = tracker_run_;
  server.connection = 0;
  // Sometimes the tracker notices only when the next stream attaches.
  if (Chance(0.7)) {
    After(Between(0, 500), [this, stream, run] {
      if (run == tracker_run_) {
        Input([this, stream](TrackerCore& core) {
          core.ServerClosed(stream);
          fleet_watch_.Closed(stream);
        });
      }
    });
  }
  const int64_t instance = server.instance;
  After(Between(20, 5000), [this, &server, instance] {
    if (server.instance == instance) ConnectServer(server);
  });
}

void Simulation::KillServer(ServerModel& server) {
  if (!server.up) return;
  ++report_.counts["server kills"];
  server.up = false;
  ++server.instance;
  BreakServer(server);
  const int64_t instance = server.instance;
  After(Between(100, 20'000), [this, &server, instance] {
    if (server.instance != instance) return;
    server.up = true;
    ConnectServer(server);
  });
}

void Simulation::ServerHears(ServerModel& server,
                             const v1::DispatchEvent& event) {
  if (event.has_attached()) {
    if (canaries_) {
      v1::DispatchRequest offer;
      v1::Canary& canary = *offer.mutable_canaries()->add_canaries();
      canary.set_name("compute");
      v1::TrialSpec& trial = *canary.mutable_trial();
      trial.set_workload("canary");
      trial.set_device_class("x");
      trial.set_compiler_version("c1");
      trial.mutable_schedule()->set_space("cpu");
      trial.mutable_schedule()->set_space_version(1);
      ToTracker(server, std::move(offer));
    }
    // What a cancelled job still has there is of no use.
    v1::DispatchRequest request;
    for (const auto& work_id : event.attached().held_work_ids()) {
      if (server.cancelled_jobs.contains(server.works.at(work_id).job_id())) {
        request.mutable_cancel()->add_work_ids(work_id);
      }
    }
    if (request.has_cancel()) ToTracker(server, std::move(request));
    SubmitWanted(server);
    SubmitSome(server);
    return;
  }
  if (!event.has_results()) return;
  // Durable after a while, if the server lives that long.
  const int64_t instance = server.instance;
  After(Between(1, 30), [this, &server, instance, results = event.results()] {
    if (server.instance == instance) CommitResults(server, results);
  });
}

// Everything submitted before and not committed: the tracker may have forgotten
// it.
void Simulation::SubmitWanted(ServerModel& server) {
  v1::DispatchRequest request;
  for (const std::string& id : server.submitted) {
    const v1::Work& work = server.works.at(id);
    if (server.Committed(work)) continue;
    if (server.cancelled_jobs.contains(work.job_id())) {
      for (const auto& trial : work.trials()) {
        server.log.emplace(trial.trial_id(), v1::OUTCOME_CANCELLED);
      }
      continue;
    }
    *request.mutable_submit()->add_work() = work;
  }
  if (request.has_submit()) ToTracker(server, std::move(request));
}

// The search asks for more as time goes by, until all is submitted.
void Simulation::SubmitSome(ServerModel& server) {
  const int64_t connection = server.connection;
  if (connection == 0) return;
  v1::DispatchRequest request;
  int left = 1 + static_cast<int>(random_.Below(6));
  for (const auto& [id, work] : server.works) {
    if (server.submitted.contains(id)) continue;
    if (left-- == 0) break;
    server.submitted.insert(id);
    if (server.cancelled_jobs.contains(work.job_id())) {
      for (const auto& trial : work.trials()) {
        server.log.emplace(trial.trial_id(), v1::OUTCOME_CANCELLED);
      }
      continue;
    }
    *request.mutable_submit()->add_work() = work;
  }
  if (request.has_submit()) ToTracker(server, std::move(request));
  if (server.submitted.size() == server.works.size()) return;
  After(Between(500, 8000), [this, &server, connection] {
    if (server.connection == connection) SubmitSome(server);
  });
}

void Simulation::CancelJob(ServerModel& server, int64_t job) {
  ++report_.counts["jobs cancelled"];
  server.cancelled_jobs.insert(job);
  v1::DispatchRequest request;
  request.mutable_cancel()->set_job_id(job);
  ToTracker(server, std::move(request));
}

void Simulation::CommitResults(ServerModel& server,
                               const v1::Results& results) {
  v1::DispatchRequest request;
  for (const v1::TrialResult& result : results.results()) {
    const std::string& trial_id = result.spec().trial_id();
    if (result.outcome() == v1::OUTCOME_CANCELLED &&
        !server.cancelled_jobs.contains(result.spec().job_id())) {
      Violation(absl::StrCat("trial ", trial_id,
                             " was reported cancelled but is not"));
    }
    const bool stored = server.log.emplace(trial_id, result.outcome()).second;
    if (stored && result.outcome() == v1::OUTCOME_AGENT_LOST) {
      ++report_.counts["agent_lost"];
      if (trial_id != poison_trial_ && report_.counts["agent kills"] == 0 &&
          report_.counts["connections cut"] +
                  report_.counts["half-open connections"] ==
              0) {
        Violation(absl::StrCat("trial ", trial_id,
                               " ended as agent_lost in a healthy fleet"));
      }
    }
    if (!stored) ++report_.counts["duplicates"];
    if (stored && result.outcome() == v1::OUTCOME_CRASHED) {
      ++report_.counts["crashed"];
    }
    if (result.spec().kind() == v1::TRIAL_KIND_CANARY) {
      Violation("a server was told of a canary");
    }
    v1::TrialAck* ack = request.mutable_commit_ack()->add_acks();
    ack->set_trial_id(trial_id);
    ack->set_attempt(result.attempt());
    ack->set_status(stored ? v1::ACK_STATUS_STORED : v1::ACK_STATUS_DUPLICATE);
  }
  ToTracker(server, std::move(request));
}

}  // namespace regatta
