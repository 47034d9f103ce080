// How jobs share boards: by device time, whatever one of their trials costs.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tests/tracker/core_fixture.h"

namespace regatta {
namespace {

// Jobs that always have work queued, on boards that run one unit at a time.
class FairnessTest : public CoreTest {
 protected:
  struct Stream {
    int64_t job = 0;
    int task = 0;
    double seconds = 0.1;  // that a trial holds the device
    double job_weight = 0, task_weight = 0;
    int priority = 0;
    std::string device_class = kClass;
    std::string user = "";
    int64_t deadline_unix_ms = 0;
    int64_t next = 0;
    int out = 0;
  };
  struct Board {
    SessionId session;
    std::vector<v1::Assignment> held;
    absl::Duration left;
  };

  void AddBoard(const std::string& id, int credit,
                const std::string& device_class = kClass) {
    boards_.push_back({Connect(MakeHello("a" + id, {MakeDevice("d" + id, credit,
                                                               device_class)})),
                       {},
                       absl::ZeroDuration()});
  }
  // As a server does: some units more than boards hold.
  void Refill(Stream& stream) {
    std::vector<v1::Work> works;
    for (; stream.out < kOut; ++stream.out) {
      v1::Work work = MakeWork(stream.job, stream.next++, 1, stream.priority);
      work.set_work_id(
          absl::StrCat(stream.job, "/", stream.task, "/", stream.next));
      v1::TrialSpec& trial = *work.mutable_trials(0);
      trial.set_trial_id(work.work_id());
      trial.set_task(stream.task);
      work.set_device_class(stream.device_class);
      work.set_user(stream.user);
      work.set_deadline_unix_ms(stream.deadline_unix_ms);
      work.set_job_weight(stream.job_weight);
      work.set_task_weight(stream.task_weight);
      works.push_back(std::move(work));
    }
    if (!works.empty()) Submit(server_, works);
  }
  // Lets the boards work; what each stream had of them grows in served_.
  void Run(absl::Duration time) {
    constexpr absl::Duration kStep = absl::Milliseconds(10);
    for (; time > absl::ZeroDuration(); time -= kStep) {
      for (Stream& stream : streams_) Refill(stream);
      clock_.Advance(kStep);
      core_->Tick();
      Drain();
      for (Board& board : boards_) Work(board, kStep);
    }
  }
  void Work(Board& board, absl::Duration step) {
    for (v1::Assignment& assignment : Assigned(board.session)) {
      Accept(board.session, assignment);
      board.held.push_back(std::move(assignment));
    }
    Beat(board);
    while (!board.held.empty() && step > absl::ZeroDuration()) {
      Stream& stream = StreamOf(board.held.front());
      if (board.left == absl::ZeroDuration()) {
        board.left = absl::Seconds(stream.seconds);
      }
      const absl::Duration now = std::min(step, board.left);
      board.left -= now;
      step -= now;
      served_[{stream.job, stream.task}] += absl::ToDoubleSeconds(now);
      if (board.left > absl::ZeroDuration()) return;
      const v1::Assignment done = board.held.front();
      board.held.erase(board.held.begin());
      v1::SpooledResult result = MakeResult(done, 0, /*last=*/true);
      v1::PhaseTimes& phases = *result.mutable_result()->mutable_phases();
      // Builds take long, too, but beside the device.
      phases.set_build_ns(500'000'000);
      phases.set_verify_ns(static_cast<int64_t>(stream.seconds * 1e8));
      phases.set_time_ns(static_cast<int64_t>(stream.seconds * 9e8));
      SendResults(board.session, {result});
      Commit(server_, {result.result()});
      --stream.out;
    }
  }
  void Beat(Board& board) {
    std::vector<std::string> held;
    for (const auto& a : board.held) held.push_back(a.assignment_id());
    CoreTest::Beat(board.session, held, ++ticks_);
  }
  Stream& StreamOf(const v1::Assignment& assignment) {
    const v1::TrialSpec& trial = assignment.trials(0);
    for (Stream& stream : streams_) {
      if (stream.job == trial.job_id() && stream.task == trial.task()) {
        return stream;
      }
    }
    ADD_FAILURE() << "no stream of " << assignment.assignment_id();
    return streams_.front();
  }
  double Served(int64_t job) const {
    double seconds = 0;
    for (const auto& [who, s] : served_) seconds += who.first == job ? s : 0;
    return seconds;
  }

  static constexpr int kOut = 6;
  StreamId server_ = Attach();
  std::vector<Stream> streams_;
  std::vector<Board> boards_;
  std::map<std::pair<int64_t, int>, double> served_;
  int64_t ticks_ = 0;
};

TEST_F(FairnessTest, TenTimesSlowerKernelsGetTheSameDeviceTime) {
  AddBoard("1", 4);
  streams_ = {{.job = 1, .seconds = 0.1}, {.job = 2, .seconds = 1.0}};
  Run(absl::Seconds(200));
  EXPECT_NEAR(Served(1) + Served(2), 200, 1) << "the board was never idle";
  EXPECT_NEAR(Served(1) / Served(2), 1, 0.1);
}

TEST_F(FairnessTest, WeightsDivideTheDeviceTime) {
  AddBoard("1", 4);
  streams_ = {{.job = 1, .seconds = 0.1, .job_weight = 1},
              {.job = 2, .seconds = 1.0, .job_weight = 2}};
  Run(absl::Seconds(300));
  EXPECT_NEAR(Served(2) / Served(1), 2, 0.2);
}

TEST_F(FairnessTest, SeveralBoardsOfAClassAreSharedAsOne) {
  for (const char* id : {"1", "2", "3"}) AddBoard(id, 2);
  streams_ = {{.job = 1, .seconds = 0.05},
              {.job = 2, .seconds = 0.5},
              {.job = 3, .seconds = 2}};
  Run(absl::Seconds(200));
  for (const int64_t job : {1, 2, 3}) EXPECT_NEAR(Served(job), 200, 20) << job;
}

TEST_F(FairnessTest, TasksShareWhatTheirJobGets) {
  AddBoard("1", 4);
  streams_ = {{.job = 1, .task = 0, .seconds = 0.2, .task_weight = 3},
              {.job = 1, .task = 1, .seconds = 0.4, .task_weight = 1},
              {.job = 2, .task = 0, .seconds = 0.1}};
  Run(absl::Seconds(400));
  EXPECT_NEAR(Served(1) / Served(2), 1, 0.1)
      << "two tasks do not make a job twice as important";
  const double ratio = served_[{1, 0}] / served_[{1, 1}];
  EXPECT_NEAR(ratio, 3, 0.3);
}

TEST_F(FairnessTest, ANewcomerStartsLevelWithTheLeastServed) {
  AddBoard("1", 4);
  streams_ = {{.job = 1, .seconds = 0.1}};
  Run(absl::Seconds(100));
  served_.clear();
  streams_.push_back({.job = 2, .seconds = 0.1});
  Run(absl::Seconds(20));
  EXPECT_NEAR(Served(1), 10, 1) << "the old one is not held up by its past";
  EXPECT_NEAR(Served(2), 10, 1) << "nor the new one by its absence";
}

TEST_F(FairnessTest, WhoWasAwayHasNoCreditForThatTime) {
  AddBoard("1", 4);
  streams_ = {{.job = 1, .seconds = 0.1}, {.job = 2, .seconds = 0.1}};
  Run(absl::Seconds(20));
  const Stream away = streams_[1];
  CancelJob(server_, 2);
  for (Board& board : boards_) {
    for (v1::Assignment& late : Assigned(board.session)) {
      board.held.push_back(std::move(late));
    }
    std::erase_if(board.held, [](const v1::Assignment& a) {
      return a.trials(0).job_id() == 2;
    });
    board.left = absl::ZeroDuration();
  }
  Commit(server_, Results(server_));
  streams_.pop_back();
  Run(absl::Seconds(100));
  served_.clear();
  streams_.push_back(away);
  streams_.back().out = 0;
  streams_.back().next += 1000;
  Run(absl::Seconds(20));
  EXPECT_NEAR(Served(1), 10, 1);
  EXPECT_NEAR(Served(2), 10, 1);
}

TEST_F(FairnessTest, PrioritiesAreAboveFairness) {
  AddBoard("1", 4);
  streams_ = {{.job = 1, .seconds = 0.1, .job_weight = 100},
              {.job = 2, .seconds = 0.1, .priority = 1}};
  Run(absl::Seconds(20));
  EXPECT_LT(Served(1), 1);
}

TEST_F(FairnessTest, UsersShareBeforeTheirJobsDo) {
  AddBoard("1", 4);
  streams_ = {{.job = 1, .user = "ann"},
              {.job = 2, .user = "ann"},
              {.job = 3, .user = "ann"},
              {.job = 4, .user = "bob"}};
  Run(absl::Seconds(120));
  EXPECT_NEAR(Served(4), 60, 3) << "three jobs do not make three users";
  for (const int64_t job : {1, 2, 3}) EXPECT_NEAR(Served(job), 20, 2) << job;
}

TEST_F(FairnessTest, GrantsOfThreeToOneHoldWithinFivePercent) {
  options_.fleet.users["ann"].weight = 3;
  Reconfigure();
  server_ = Attach();
  AddBoard("1", 2);
  AddBoard("2", 2);
  streams_ = {{.job = 1, .seconds = 0.1, .user = "ann"},
              {.job = 2, .seconds = 0.7, .user = "bob"}};
  Run(absl::Seconds(600));
  EXPECT_NEAR(Served(1) / Served(2), 3, 0.15);
}

TEST_F(FairnessTest, AnInteractiveJobStartsAtOnceAndTheRestDoesNotStarve) {
  AddBoard("1", 1);
  streams_ = {{.job = 1, .seconds = 1}};
  Run(absl::Seconds(30));
  streams_.push_back({.job = 2, .seconds = 1, .priority = 10});
  served_.clear();
  Run(absl::Seconds(10));
  EXPECT_GT(Served(2), 7);
  // Saturated from above, the one below has its turn every ten minutes.
  served_.clear();
  Run(absl::Minutes(10));
  EXPECT_GT(Served(1), 0.9);
  EXPECT_LT(Served(1), 4);
}

TEST_F(FairnessTest, JobsOfAUserWithADeadlineGoFirstTheEarliestBefore) {
  AddBoard("1", 1);
  streams_ = {{.job = 1, .user = "ann"},
              {.job = 2, .user = "ann", .deadline_unix_ms = 2000},
              {.job = 3, .user = "ann", .deadline_unix_ms = 1000},
              {.job = 4, .user = "bob"}};
  Run(absl::Seconds(20));
  EXPECT_NEAR(Served(3), 10, 1.5);
  EXPECT_LT(Served(1) + Served(2), 1);
  EXPECT_NEAR(Served(4), 10, 1.5) << "a deadline is no reason to take more";
}

TEST_F(FairnessTest, ABoundHoldsOnlyWhileOthersWait) {
  options_.fleet.users["ci"].most_percent = 25;
  Reconfigure();
  server_ = Attach();
  for (const char* id : {"1", "2", "3", "4"}) AddBoard(id, 1);
  streams_ = {{.job = 1, .seconds = 1, .user = "ci"}};
  Run(absl::Seconds(20));
  EXPECT_NEAR(Served(1), 80, 4) << "the boards were idle otherwise";
  streams_.push_back({.job = 2, .seconds = 1, .user = "ann"});
  Run(absl::Seconds(2));
  served_.clear();
  Run(absl::Seconds(20));
  EXPECT_NEAR(Served(1), 20, 3) << "a quarter of four boards";
  EXPECT_NEAR(Served(2), 60, 3);
}

TEST_F(FairnessTest, ABoundIsOfTheBoardsThatAreThere) {
  options_.fleet.users["ci"].most_percent = 25;
  Reconfigure();
  server_ = Attach();
  for (int i = 0; i < 12; ++i) {
    const std::string id = absl::StrCat("gone", i);
    const SessionId board = Connect(MakeHello(id, {MakeDevice(id)}));
    if (i % 2 == 0) {
      Disconnect(board);
      continue;
    }
    v1::ControlDevicesRequest request;
    request.mutable_devices()->add_device_ids(id);
    request.set_command(v1::DEVICE_COMMAND_QUARANTINE);
    request.set_reason("odd");
    request.set_by("ann");
    ASSERT_TRUE(core_->ControlDevices(request).ok());
    Drain();
  }
  for (const char* id : {"1", "2", "3", "4"}) AddBoard(id, 1);
  streams_ = {{.job = 1, .seconds = 1, .user = "ci"},
              {.job = 2, .seconds = 1, .user = "ann"}};
  Run(absl::Seconds(2));
  served_.clear();
  Run(absl::Seconds(20));
  EXPECT_NEAR(Served(1), 20, 3) << "a quarter of four boards, not of 16";
  EXPECT_NEAR(Served(2), 60, 3);
}

TEST_F(FairnessTest, WhatRunsOverARestartOfTheTrackerCountsForItsUser) {
  options_.fleet.users["ci"].most_percent = 25;
  Reconfigure();
  server_ = Attach();
  const std::vector<std::string> ids = {"1", "2", "3", "4"};
  for (const std::string& id : ids) AddBoard(id, 1);
  v1::Work running = MakeWork(1, 0);
  running.set_user("ci");
  Submit(server_, {running});
  std::vector<v1::Hello> hellos;
  for (size_t i = 0; i < ids.size(); ++i) {
    hellos.push_back(MakeHello("a" + ids[i], {MakeDevice("d" + ids[i])}));
    for (const v1::Assignment& a : Assigned(boards_[i].session)) {
      Accept(boards_[i].session, a);
      *hellos.back().add_held() = Held(a);
    }
  }
  Restart();
  server_ = Attach();
  std::vector<SessionId> sessions;
  for (const v1::Hello& hello : hellos) sessions.push_back(Connect(hello));
  std::vector<v1::Work> works = {running};
  for (int i = 1; i <= 4; ++i) {
    for (const auto& [job, user] : {std::pair{1, "ci"}, std::pair{2, "ann"}}) {
      works.push_back(MakeWork(job, i));
      works.back().set_user(user);
    }
  }
  Submit(server_, works);
  std::map<int64_t, int> jobs;
  for (const SessionId session : sessions) {
    for (const auto& a : Assigned(session)) ++jobs[a.trials(0).job_id()];
  }
  EXPECT_EQ(jobs[1], 0) << "it has its quarter already";
  EXPECT_EQ(jobs[2], 3);
}

TEST_F(FairnessTest, ClassesAreSharedEachForItself) {
  AddBoard("1", 2);
  AddBoard("2", 2, "cortex-a72-4c");
  streams_ = {
      {.job = 1, .task = 0, .seconds = 0.1},
      {.job = 2, .task = 0, .seconds = 0.1},
      {.job = 2, .task = 1, .seconds = 0.1, .device_class = "cortex-a72-4c"}};
  Run(absl::Seconds(50));
  EXPECT_NEAR(served_[(std::pair<int64_t, int>(2, 1))], 50, 1);
  EXPECT_NEAR((served_[{1, 0}]), 25, 2.5);
  EXPECT_NEAR((served_[{2, 0}]), 25, 2.5);
}

// Failures without any phase are not free either.
TEST_F(FairnessTest, WorkThatEndsAtOnceDoesNotStarveTheRest) {
  AddBoard("1", 2);
  streams_ = {{.job = 1, .seconds = 1e-9}, {.job = 2, .seconds = 0.1}};
  Run(absl::Seconds(20));
  EXPECT_GT(Served(2), 15);
}

}  // namespace
}  // namespace regatta
