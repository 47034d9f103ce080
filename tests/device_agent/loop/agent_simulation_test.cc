// The loop and the spool in a small simulated world: a tracker that hands out
// work, a runner that does it, a network that delays and breaks, an agent that
// is killed and loses power. Every seed is one reproducible history.
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device_agent/loop/agent_loop.h"
#include "gtest/gtest.h"
#include "tests/device_agent/loop/fake_spool_storage.h"
#include "tests/support/seeds.h"

namespace regatta {
namespace {

constexpr int kTrials = 3;  // per assignment
constexpr absl::Duration kLease = absl::Seconds(60);

// The least of a tracker: leases, results, acknowledgements in random order.
class SimulatedTracker {
 public:
  SimulatedTracker(const Clock* clock, Random* random)
      : clock_(clock), random_(random) {}

  struct Lease {
    int64_t epoch = 0;
    SteadyTime deadline;
  };

  // What the tracker says to this message.
  std::vector<v1::TrackerMessage> Handle(const v1::AgentMessage& in) {
    std::vector<v1::TrackerMessage> out;
    const SteadyTime now = clock_->Steady();
    if (in.has_hello()) {
      v1::Welcome& welcome = *out.emplace_back().mutable_welcome();
      welcome.set_tracker_epoch(epoch_);
      welcome.set_heartbeat_ms(10'000);
      welcome.set_lease_ms(absl::ToInt64Milliseconds(kLease));
      std::set<std::string> reported;
      for (const v1::HeldAssignment& held : in.hello().held()) {
        reported.insert(held.assignment_id());
        v1::HeldVerdict& verdict = *welcome.add_verdicts();
        verdict.set_assignment_id(held.assignment_id());
        const auto it = leases_.find(held.assignment_id());
        const bool ours = it != leases_.end() &&
                          it->second.epoch == held.lease_epoch() &&
                          now < it->second.deadline;
        verdict.set_verdict(ours ? v1::VERDICT_CONTINUE : v1::VERDICT_ABANDON);
        verdict.set_lease_epoch(held.lease_epoch());
        verdict.set_lease_ms(absl::ToInt64Milliseconds(kLease));
        if (ours) it->second.deadline = now + kLease;
      }
      std::erase_if(leases_, [&](const auto& lease) {
        return !reported.contains(lease.first);
      });
    } else if (in.has_heartbeat()) {
      v1::HeartbeatAck& ack = *out.emplace_back().mutable_heartbeat_ack();
      ack.set_sequence(in.heartbeat().sequence());
      ack.set_lease_ms(absl::ToInt64Milliseconds(kLease));
      for (const std::string& id : in.heartbeat().held_assignment_ids()) {
        const auto it = leases_.find(id);
        if (it != leases_.end() && now < it->second.deadline) {
          it->second.deadline = now + kLease;
          ack.add_renewed(id);
        } else {
          ack.add_abandoned(id);
        }
      }
    } else if (in.has_result_batch()) {
      for (const v1::SpooledResult& result : in.result_batch().results()) {
        const std::string& trial = result.result().spec().trial_id();
        EXPECT_FALSE(trial.empty());
        waiting_.push_back({trial, result.result().attempt()});
        if (result.last()) leases_.erase(result.assignment_id());
      }
    } else if (in.has_release()) {
      leases_.erase(in.release().assignment_id());
    } else if (in.has_assignment_reply() && !in.assignment_reply().accepted()) {
      leases_.erase(in.assignment_reply().assignment_id());
    }
    return out;
  }

  v1::TrackerMessage NextAssign() {
    v1::TrackerMessage message;
    v1::Assignment& a = *message.mutable_assign()->mutable_assignment();
    a.set_assignment_id(absl::StrCat("w", ++made_));
    a.set_mode(v1::ASSIGNMENT_MODE_SCREEN);
    a.set_attempt(1);
    a.set_lease_epoch(++lease_epoch_);
    a.set_lease_ms(absl::ToInt64Milliseconds(kLease));
    a.set_device_id("d");
    for (int i = 0; i < kTrials; ++i) {
      v1::TrialSpec& trial = *a.add_trials();
      trial.set_trial_id(absl::StrCat(a.assignment_id(), "/", i));
      trial.set_workload("w");
      trial.set_device_class("c");
      trial.set_compiler_version("v");
    }
    leases_[a.assignment_id()] = {a.lease_epoch(), clock_->Steady() + kLease};
    return message;
  }

  // Commits some of what waits, in any order, and acknowledges it.
  v1::TrackerMessage Commit() {
    v1::TrackerMessage message;
    while (!waiting_.empty() && random_->Below(3) != 0) {
      const size_t at = random_->Below(waiting_.size());
      v1::TrialAck& ack = *message.mutable_result_ack()->add_acks();
      ack.set_trial_id(waiting_[at].first);
      ack.set_attempt(waiting_[at].second);
      ack.set_status(stored_.insert(waiting_[at].first).second
                         ? v1::ACK_STATUS_STORED
                         : v1::ACK_STATUS_DUPLICATE);
      waiting_.erase(waiting_.begin() + static_cast<long>(at));
    }
    return message;
  }

  void Restart() {
    ++epoch_;
    waiting_.clear();  // only the server's commits last
  }
  bool Leased(const std::string& id) const {
    const auto it = leases_.find(id);
    return it != leases_.end() && clock_->Steady() < it->second.deadline;
  }
  size_t leased() const { return leases_.size(); }
  const std::set<std::string>& stored() const { return stored_; }

 private:
  const Clock* const clock_;
  Random* const random_;
  int64_t epoch_ = 1;
  int64_t lease_epoch_ = 0;
  int made_ = 0;
  std::map<std::string, Lease> leases_;
  std::vector<std::pair<std::string, int32_t>> waiting_;
  std::set<std::string> stored_;
};

class World {
 public:
  explicit World(uint64_t seed)
      : random_(seed), tracker_(&clock_, &random_), seed_(seed) {
    StartAgent();
  }

  void Run(int steps, bool faults) {
    for (int i = 0; i < steps; ++i) {
      clock_.Advance(absl::Milliseconds(random_.Below(2000)));
      Deliver();
      RunnerWorks();
      if (open_ && loop_->welcomed() && tracker_.leased() < 3 && faults) {
        ToAgent(tracker_.NextAssign());
      }
      if (open_ && random_.Below(2) == 0) ToAgent(tracker_.Commit());
      if (faults) Fault();
      loop_->OnTick(i);
      Settle();
    }
  }

  void Check() const {
    for (const std::string& trial : safe_) {
      EXPECT_TRUE(tracker_.stored().contains(trial))
          << trial << " was finished and is lost";
    }
    EXPECT_EQ(spool_->count(), 0);
    EXPECT_EQ(spool_->recovery().damaged, 0);
  }
  size_t finished() const { return safe_.size(); }
  int faults() const { return faults_; }

 private:
  struct Running {
    v1::Assignment assignment;
    int next = 0;
    bool in_trial = false;
  };
  template <typename T>
  struct Late {
    SteadyTime at;
    T message;
  };

  void StartAgent() {
    loop_.reset();
    spool_.reset();
    running_.clear();
    Disconnect();
    SpoolLimits limits;
    limits.slack_bytes = 2000;
    auto spool =
        Spool::Open(std::make_unique<FakeSpoolStorage>(&disk_), limits);
    ASSERT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
    AgentLoop::Options options;
    v1::Hello& hello = options.hello;
    hello.set_agent_id("a");
    hello.set_compiler_version("v");
    v1::DeviceInfo& device = *hello.add_devices();
    device.set_device_id("d");
    device.set_device_class("c");
    device.set_credit(3);
    loop_ = std::make_unique<AgentLoop>(options, &clock_,
                                        Random(random_.Next()), spool_.get());
  }

  void Disconnect() {
    open_ = false;
    to_agent_.clear();
    to_tracker_.clear();
  }

  void ToAgent(v1::TrackerMessage message) {
    if (message.message_case() == v1::TrackerMessage::MESSAGE_NOT_SET) return;
    to_agent_.push_back({Later(to_agent_), std::move(message)});
  }
  // In order, up to two seconds late.
  template <typename T>
  SteadyTime Later(const std::deque<Late<T>>& queue) {
    const SteadyTime at =
        clock_.Steady() + absl::Milliseconds(random_.Below(2000));
    return queue.empty() ? at : std::max(at, queue.back().at);
  }

  void Deliver() {
    while (!to_tracker_.empty() && to_tracker_.front().at <= clock_.Steady()) {
      for (v1::TrackerMessage& out :
           tracker_.Handle(to_tracker_.front().message)) {
        ToAgent(std::move(out));
      }
      to_tracker_.pop_front();
    }
    while (!to_agent_.empty() && to_agent_.front().at <= clock_.Steady()) {
      const v1::TrackerMessage message = to_agent_.front().message;
      to_agent_.pop_front();
      loop_->OnMessage(message);
      Settle();
    }
  }

  void RunnerWorks() {
    std::vector<std::string> ids;
    for (const auto& [id, work] : running_) ids.push_back(id);
    for (const std::string& id : ids) {
      Running& work = running_.at(id);
      if (work.in_trial) {
        v1::TrialResult result;
        *result.mutable_spec() = work.assignment.trials(work.next);
        result.set_outcome(v1::OUTCOME_OK);
        result.set_attempt(work.assignment.attempt());
        result.set_lease_epoch(work.assignment.lease_epoch());
        work.in_trial = false;
        const bool last = ++work.next == kTrials;
        unsettled_.push_back(result.spec().trial_id());
        if (last) running_.erase(id);
        loop_->OnResult(id, result, last);
        if (random_.Below(2) == 0) Settle();
      } else if (random_.Below(4) == 0 && loop_->gate().MayStart(id)) {
        EXPECT_TRUE(tracker_.Leased(id))
            << id << " starts a trial without a lease, seed " << seed_;
        work.in_trial = true;
      }
    }
  }

  void Fault() {
    const uint64_t dice = random_.Below(400);
    if (dice >= 14) return;
    ++faults_;
    if (dice < 5) {  // the connection breaks
      if (open_) {
        Disconnect();
        loop_->OnDisconnected(absl::UnavailableError("broken"));
      }
    } else if (dice < 7) {  // the agent is killed, the machine goes on
      unsettled_.clear();
      StartAgent();
    } else if (dice < 8) {  // the power goes
      unsettled_.clear();
      disk_.LosePower(random_.Below(200));
      StartAgent();
    } else if (dice < 10) {  // the tracker restarts
      tracker_.Restart();
      if (open_) {
        Disconnect();
        loop_->OnDisconnected(absl::UnavailableError("tracker died"));
      }
    } else if (dice < 12) {  // the board sleeps
      clock_.Advance(absl::Seconds(random_.Below(200)));
    } else {  // nothing gets through, and nobody is told
      to_agent_.clear();
      to_tracker_.clear();
    }
  }

  void Settle() {
    for (AgentAction& action : loop_->Settle()) {
      if (auto* send = std::get_if<SendAction>(&action)) {
        if (open_) {
          to_tracker_.push_back({Later(to_tracker_), std::move(send->message)});
        }
      } else if (auto* start = std::get_if<StartAction>(&action)) {
        const std::string id = start->assignment.assignment_id();
        EXPECT_FALSE(running_.contains(id));
        running_[id].assignment = std::move(start->assignment);
        EXPECT_LE(running_.size(), 6u);
      } else if (auto* stop = std::get_if<StopAction>(&action)) {
        running_.erase(stop->assignment_id);
      } else if (auto* finish = std::get_if<FinishAction>(&action)) {
        running_.erase(finish->assignment_id);
        loop_->OnFinished(finish->assignment_id);
      } else if (std::holds_alternative<CloseAction>(action)) {
        Disconnect();
      } else if (!std::holds_alternative<ConnectAction>(action)) {
        // About builds, which this agent has nothing to do with.
      } else if (random_.Below(4) == 0) {
        loop_->OnDisconnected(absl::UnavailableError("refused"));
      } else {
        open_ = true;
        loop_->OnConnected();
      }
    }
    // From here on they may not be lost.
    safe_.insert(unsettled_.begin(), unsettled_.end());
    unsettled_.clear();
  }

  FakeClock clock_;
  FakeDisk disk_;
  Random random_;
  SimulatedTracker tracker_;
  const uint64_t seed_;
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<AgentLoop> loop_;
  std::map<std::string, Running> running_;
  bool open_ = false;
  std::deque<Late<v1::TrackerMessage>> to_agent_;
  std::deque<Late<v1::AgentMessage>> to_tracker_;
  std::vector<std::string> unsettled_;
  std::set<std::string> safe_;
  int faults_ = 0;
};

TEST(AgentSimulationTest, NoFinishedResultIsEverLost) {
  size_t finished = 0;
  int faults = 0;
  const SeedRange seeds = SeedsToRun(200);
  for (uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    SCOPED_TRACE("again with: " + ReplayCommand(seed));
    World world(seed);
    world.Run(600, /*faults=*/true);
    world.Run(400, /*faults=*/false);  // heals
    world.Check();
    finished += world.finished();
    faults += world.faults();
    if (testing::Test::HasFailure()) break;
  }
  if (seeds.count() < 200) return;
  // The histories are worth something.
  EXPECT_GT(finished, 10'000u);
  EXPECT_GT(faults, 2'000);
}

}  // namespace
}  // namespace regatta
