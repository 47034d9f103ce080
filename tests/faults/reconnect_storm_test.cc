// 33: a large fleet whose tracker comes back. The real tracker core and the
// real agent loops and spools, on a simulated clock, with a listener that lets
// in as many a second as the real one. What it costs real processes is measured
// by the program fleet_sim (docs/benchmarks.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/security/rate_limit.h"
#include "tests/fleet_sim/sim_board.h"
#include "tests/support/scale.h"
#include "tests/tracker/core_fixture.h"
#include "tests/tracker/silence.h"
#include "tracker/tracker_core.h"

namespace regatta::faults {
namespace {

using fleet_sim::BoardHabits;
using fleet_sim::BoardLink;
using fleet_sim::Ledger;
using fleet_sim::SimBoard;

// As the listener of a daemon (GuardedServer).
constexpr double kAdmittedPerSecond = 500;
constexpr size_t kBacklog = 4096;
// When TCP tries again that met a full backlog.
constexpr absl::Duration kSynAgain = absl::Seconds(1);
constexpr absl::Duration kBackWithin = absl::Seconds(90);
const char kStormClass[] = "storm-1c";

class Storm {
 public:
  explicit Storm(int boards)
      : pace_(kAdmittedPerSecond, kAdmittedPerSecond, {}) {
    options_.fleet.auto_approve.all = true;
    StartTracker();
    for (int i = 0; i < boards; ++i) {
      slots_.push_back(std::make_unique<Slot>(this, i));
      After(Upto(absl::Seconds(30)), [slot = slots_.back().get()] {
        ASSERT_TRUE(slot->board.Boot());
        slot->Wake();
      });
    }
    After(options_.tick, [this] { Tick(); });
    Serve();
  }

  void RunFor(absl::Duration d) {
    const SteadyTime end = clock_.Steady() + d;
    while (!events_.empty() && events_.begin()->first <= end.ns) {
      auto node = events_.extract(events_.begin());
      const int64_t ahead = node.key() - clock_.Steady().ns;
      if (ahead > 0) clock_.Advance(absl::Nanoseconds(ahead));
      node.mapped()();
    }
    if (clock_.Steady() < end) clock_.Advance(end - clock_.Steady());
  }
  // How long it took; false: not within `limit`.
  template <typename Condition>
  bool RunUntil(const Condition& condition, absl::Duration limit,
                absl::Duration* took) {
    const SteadyTime start = clock_.Steady();
    while (!condition()) {
      if (clock_.Steady() - start > limit) return false;
      RunFor(absl::Seconds(0.5));
    }
    *took = clock_.Steady() - start;
    return true;
  }

  void KillTracker() {
    core_.reset();
    ++tracker_run_;
    server_attached_ = false;
    backlog_.clear();
    for (auto& slot : slots_) slot->Break();
  }
  void StartTracker() {
    ++store_.epoch;
    core_ = std::make_unique<TrackerCore>(options_, clock_, tracker_random_,
                                          store_);
    admitted_.clear();
  }
  // A server comes with everything that is not stored yet.
  void AttachServer(int works) {
    server_attached_ = true;
    const StreamId stream{++last_id_};
    server_ = stream;
    v1::DispatchRequest attach, submit;
    attach.mutable_attach()->set_server_id("log1");
    for (int i = 0; i < works; ++i) {
      const std::string id = absl::StrCat("1/0/", i);
      if (log_.contains(id)) continue;
      v1::Work& work = *submit.mutable_submit()->add_work();
      work.set_work_id(id);
      work.set_job_id(1);
      work.set_device_class(kStormClass);
      work.set_compiler_version("c1");
      work.set_space("cpu");
      work.set_space_version(1);
      work.set_mode(v1::ASSIGNMENT_MODE_SCREEN);
      v1::TrialSpec& trial = *work.add_trials();
      trial.set_trial_id(id);
      trial.set_job_id(1);
      trial.set_workload("matmul(m=4,n=4,k=4)");
      trial.set_device_class(kStormClass);
      trial.set_target("cpu");
      trial.set_compiler_version("c1");
      trial.mutable_schedule()->set_space("cpu");
      trial.mutable_schedule()->set_space_version(1);
      trial.mutable_schedule()->set_text(id);
    }
    Input([stream](TrackerCore& core) { core.ServerOpened(stream); });
    Input([&](TrackerCore& core) { core.ServerSaid(stream, attach); });
    if (submit.has_submit()) {
      Input([&](TrackerCore& core) { core.ServerSaid(stream, submit); });
    }
  }

  size_t Welcomed() const {
    return static_cast<size_t>(
        std::count_if(slots_.begin(), slots_.end(),
                      [](const auto& slot) { return slot->board.welcomed(); }));
  }
  bool Idle() const {
    return std::all_of(slots_.begin(), slots_.end(), [](const auto& slot) {
      return slot->board.spooled() == 0 && slot->board.held() == 0;
    });
  }
  int Busiest()
      const {  // admissions within a second of the tracker's last life
    int busiest = 0;
    for (const auto& [second, count] : admitted_) {
      busiest = std::max(busiest, count);
    }
    return busiest;
  }
  int64_t tries() const { return tries_; }
  size_t longest_backlog() const { return longest_backlog_; }
  const std::map<std::string, v1::TrialResult>& log() const { return log_; }
  const Ledger& ledger() const { return ledger_; }
  const std::vector<std::string>& wrong() const { return wrong_; }

 private:
  using Event = std::function<void()>;

  struct Slot : BoardLink {
    Slot(Storm* storm_in, int index)
        : storm(storm_in),
          board(HelloOf(index), Habits(), static_cast<uint64_t>(index) + 1,
                &storm_in->clock_, this, &storm_in->ledger_) {}

    static BoardHabits Habits() {
      BoardHabits habits;
      habits.trial = absl::Seconds(20);
      return habits;
    }
    static v1::Hello HelloOf(int index) {
      v1::Hello hello;
      hello.set_agent_id(absl::StrCat("board", index));
      hello.set_boot_id("boot");
      hello.set_compiler_version("c1");
      hello.set_space("cpu");
      hello.set_space_version(1);
      v1::DeviceInfo& device = *hello.add_devices();
      device.set_device_id(hello.agent_id());
      device.set_device_class(kStormClass);
      device.set_target("cpu");
      device.set_health("ok");
      device.set_credit(1);
      return hello;
    }

    void Wake() {
      board.OnWake();
      Rearm();
    }
    void Rearm() {
      const SteadyTime wake = board.NextWake();
      if (wake.ns >= armed || wake.ns == INT64_MAX) return;
      armed = wake.ns;
      storm->At(wake, [this, at = wake.ns] {
        if (armed != at) return;
        armed = INT64_MAX;
        Wake();
      });
    }
    // The connection ends without the board's doing.
    void Break() {
      if (connection == 0) return;
      connection = 0;
      admitted = false;
      waiting.clear();
      board.OnDisconnected(absl::UnavailableError("the tracker died"));
      Rearm();
    }

    void Open() override {
      Close();
      ++storm->tries_;
      connection = ++storm->last_id_;
      storm->Dial(this, connection);
      // As with the real client, whether it works shows later.
      storm->After(absl::ZeroDuration(), [this, opened = connection] {
        if (opened != connection) return;
        board.OnConnected();
        Rearm();
      });
    }
    void Send(v1::AgentMessage message) override {
      if (!admitted) return waiting.push_back(std::move(message));
      storm->After(Latency(),
                   [this, opened = connection, message = std::move(message)] {
                     if (opened != connection) return;
                     storm->Input([&](TrackerCore& core) {
                       core.AgentSaid(SessionId{opened}, message);
                     });
                   });
    }
    void Close() override {
      if (connection != 0 && admitted) {
        storm->Input([opened = connection](TrackerCore& core) {
          core.SessionClosed(SessionId{opened});
        });
      }
      connection = 0;
      admitted = false;
      waiting.clear();
    }
    absl::Duration Latency() const { return absl::Milliseconds(5); }

    Storm* const storm;
    SimBoard board;
    uint64_t connection = 0;  // 0: none
    bool admitted = false;
    std::deque<v1::AgentMessage> waiting;  // for the listener
    int64_t armed = INT64_MAX;
  };

  void At(SteadyTime at, Event event) {
    events_.emplace(std::max(at.ns, clock_.Steady().ns), std::move(event));
  }
  void After(absl::Duration d, Event event) {
    At(clock_.Steady() + d, std::move(event));
  }
  absl::Duration Upto(absl::Duration d) { return d * random_.Unit(); }

  // --- the listener
  void Dial(Slot* slot, uint64_t connection) {
    if (core_ == nullptr) {  // refused at once
      After(absl::Milliseconds(1), [slot, connection] {
        if (slot->connection == connection) slot->Break();
      });
    } else if (backlog_.size() >= kBacklog) {
      After(kSynAgain, [this, slot, connection] {
        if (slot->connection == connection) Dial(slot, connection);
      });
    } else {
      backlog_.push_back({slot, connection});
      longest_backlog_ = std::max(longest_backlog_, backlog_.size());
    }
  }
  void Serve() {
    while (core_ != nullptr && !backlog_.empty() &&
           pace_.Take(1, clock_.Steady())) {
      const auto [slot, connection] = backlog_.front();
      backlog_.pop_front();
      ++admitted_[clock_.Steady().ns / 1'000'000'000];
      if (slot->connection != connection) continue;  // it gave up meanwhile
      slot->admitted = true;
      Input([opened = connection](TrackerCore& core) {
        core.SessionOpened(SessionId{opened});
      });
      by_session_[connection] = slot;
      for (v1::AgentMessage& message : std::exchange(slot->waiting, {})) {
        slot->Send(std::move(message));
      }
    }
    After(absl::Milliseconds(10), [this] { Serve(); });
  }

  // --- the tracker
  void Tick() {
    Input([](TrackerCore& core) { core.Tick(); });
    After(options_.tick, [this] { Tick(); });
  }
  template <typename What>
  void Input(const What& what) {
    if (core_ == nullptr) return;
    what(*core_);
    for (Action& action : core_->TakeActions()) Deliver(std::move(action));
  }
  void Deliver(Action action) {
    if (auto* send = std::get_if<SendToAgent>(&action)) {
      const auto found = by_session_.find(Number(send->session));
      if (found == by_session_.end()) return;
      After(found->second->Latency(),
            [slot = found->second, opened = found->first,
             message = std::move(send->message)] {
              if (slot->connection != opened) return;
              slot->board.OnMessage(message);
              slot->Rearm();
            });
    } else if (auto* close = std::get_if<CloseSession>(&action)) {
      const auto found = by_session_.find(Number(close->session));
      if (found == by_session_.end()) return;
      Slot* const slot = found->second;
      if (slot->connection == found->first) {
        wrong_.push_back(absl::StrCat("a session was closed: ",
                                      std::string(close->status.message())));
        slot->Break();
      }
    } else if (auto* event = std::get_if<SendToServer>(&action)) {
      if (server_attached_ && event->stream == server_) Hear(event->event);
    }
  }
  static uint64_t Number(SessionId id) { return static_cast<uint64_t>(id); }

  // --- the server
  void Hear(const v1::DispatchEvent& event) {
    if (!event.has_results()) return;
    v1::DispatchRequest request;
    for (const v1::TrialResult& result : event.results().results()) {
      const std::string& id = result.spec().trial_id();
      const bool stored = log_.emplace(id, result).second;
      if (result.attempt() > options_.max_attempts) {
        wrong_.push_back(absl::StrCat(id, " has attempt ", result.attempt()));
      }
      v1::TrialAck& ack = *request.mutable_commit_ack()->add_acks();
      ack.set_trial_id(id);
      ack.set_attempt(result.attempt());
      ack.set_status(stored ? v1::ACK_STATUS_STORED : v1::ACK_STATUS_DUPLICATE);
    }
    After(absl::Milliseconds(5), [this, run = tracker_run_,
                                  request = std::move(request)] {
      if (run != tracker_run_) return;
      Input([&](TrackerCore& core) { core.ServerSaid(server_, request); });
    });
  }

  FakeClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  Random random_{33}, tracker_random_{34};
  TrackerOptions options_;
  MemoryFleetStore store_;
  Ledger ledger_;
  std::multimap<int64_t, Event> events_;
  std::unique_ptr<TrackerCore> core_;  // null while it is down
  int64_t tracker_run_ = 0;
  uint64_t last_id_ = 0;
  RateLimit pace_;
  std::deque<std::pair<Slot*, uint64_t>> backlog_;
  size_t longest_backlog_ = 0;
  std::map<int64_t, int> admitted_;  // by second
  std::map<uint64_t, Slot*> by_session_;
  std::vector<std::unique_ptr<Slot>> slots_;
  int64_t tries_ = 0;
  StreamId server_{};
  bool server_attached_ = false;
  std::map<std::string, v1::TrialResult> log_;
  std::vector<std::string> wrong_;
};

TEST(ReconnectStorm, TenThousandBoardsAreBackWithinNinetySeconds) {
  Silence silence;
  constexpr int kBoards = 10'000;
  constexpr int kWorks = 12'000;
  Storm storm(kBoards);
  absl::Duration took;
  ASSERT_TRUE(storm.RunUntil([&] { return storm.Welcomed() == kBoards; },
                             absl::Minutes(2), &took))
      << storm.Welcomed();
  storm.AttachServer(kWorks);
  storm.RunFor(absl::Seconds(10));  // everybody holds work, some has ended
  const int64_t tries = storm.tries();
  storm.KillTracker();
  storm.RunFor(absl::Seconds(5));
  storm.StartTracker();
  ASSERT_TRUE(storm.RunUntil([&] { return storm.Welcomed() == kBoards; },
                             kBackWithin, &took))
      << storm.Welcomed() << " are back";
  std::cout << kBoards << " boards are back after "
            << absl::FormatDuration(took) << ", "
            << static_cast<double>(storm.tries() - tries) / kBoards
            << " tries each, at most " << storm.Busiest()
            << " a second let in, " << storm.longest_backlog()
            << " waiting at most\n";
  // What it may let in at once, and in a second.
  EXPECT_LE(storm.Busiest(), 2 * kAdmittedPerSecond);
  // Those that came while it was down, and a few more: nobody hammers.
  EXPECT_LE(storm.tries() - tries, 20 * kBoards);
  storm.AttachServer(kWorks);
  EXPECT_TRUE(storm.RunUntil(
      [&] { return storm.log().size() == kWorks && storm.Idle(); },
      absl::Minutes(5), &took))
      << storm.log().size();
  EXPECT_EQ(storm.log().size(), static_cast<size_t>(kWorks));
  for (const auto& [id, result] : storm.log()) {
    ASSERT_EQ(result.attempt(), 1) << id << " was taken from a board";
  }
  EXPECT_THAT(storm.ledger().broken(), ::testing::IsEmpty());
  EXPECT_THAT(storm.wrong(), ::testing::IsEmpty());
  for (const std::string& trial : storm.ledger().FinishedTrials()) {
    ASSERT_TRUE(storm.log().contains(trial)) << trial;
  }
}

}  // namespace
}  // namespace regatta::faults
