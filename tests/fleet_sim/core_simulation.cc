#include "tests/fleet_sim/core_simulation.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace regatta::fleet_sim {
namespace {

constexpr absl::Duration kFaultsFor = absl::Seconds(150);
// Of one trial, at most: habits' mean is 800 ms, and it takes up to 1.5 of it.
constexpr absl::Duration kLongestTrial = absl::Milliseconds(1200);

v1::Hello HelloOf(int index, bool second_class, int credit) {
  v1::Hello hello;
  hello.set_agent_id(absl::StrCat("board", index));
  hello.set_boot_id("boot");
  hello.set_agent_version("simulated");
  hello.set_compiler_version("c1");
  hello.set_space("cpu");
  hello.set_space_version(1);
  v1::DeviceInfo* device = hello.add_devices();
  device->set_device_id(hello.agent_id());
  device->set_device_class(second_class ? "y" : "x");
  device->set_target("cpu");
  device->set_health("ok");
  device->set_credit(credit);
  return hello;
}

}  // namespace

// A board and its network.
class CoreSimulation::Board : public BoardLink {
 public:
  Board(CoreSimulation* world, v1::Hello hello, const BoardHabits& habits)
      : world_(world),
        board_(std::move(hello), habits, world->random_.Next(), &world->clock_,
               this, &world->ledger_) {}

  SimBoard& sim() { return board_; }
  const SimBoard& sim() const { return board_; }
  const std::string& device_class() const { return board_.device_class(); }
  uint64_t session() const { return connection_; }

  void Boot() {
    if (!board_.Boot()) {
      // Whoever looks after it starts it again.
      world_->After(absl::Seconds(1), [this] { Boot(); });
      return;
    }
    board_.OnWake();
    Rearm();
  }

  // The process is stopped, and goes on later as if nothing had been.
  void Suspend(absl::Duration time) {
    suspended_until_ = world_->clock_.Steady() + time;
  }
  void Kill() {
    board_.Kill();
    ++life_;
    suspended_until_ = SteadyTime{};
    armed_ = INT64_MAX;
  }

  // The connection ends without the board's doing.
  void Break(bool tracker_notices, const absl::Status& why) {
    if (connection_ == 0) return;
    Forget(tracker_notices);
    Do([this, why] { board_.OnDisconnected(why); });
  }

  // From the tracker, in order, each after a delay.
  void Hear(const v1::TrackerMessage& message) {
    last_in_ =
        std::max(last_in_, world_->clock_.Steady() + world_->Between(0, 40));
    world_->After(last_in_ - world_->clock_.Steady(),
                  [this, message, connection = connection_] {
                    Do([this, message, connection] {
                      if (connection != connection_) return;
                      Check(message);
                      board_.OnMessage(message);
                    });
                  });
  }
  void HearEnd(const absl::Status& why) {
    last_in_ =
        std::max(last_in_, world_->clock_.Steady() + world_->Between(0, 40));
    world_->After(last_in_ - world_->clock_.Steady(),
                  [this, why, connection = connection_] {
                    if (connection == connection_) Break(false, why);
                  });
  }

  void Open() override {
    Forget(/*tracker_notices=*/true);
    const int64_t opening = ++opening_;
    world_->After(world_->Between(0, 30), [this, opening, life = life_] {
      if (opening != opening_ || life != life_) return;
      if (world_->core_ == nullptr || world_->Chance(0.02)) {
        return Do([this] {
          board_.OnDisconnected(absl::UnavailableError("refused"));
        });
      }
      connection_ = ++world_->last_connection_;
      last_out_ = last_in_ = world_->clock_.Steady();
      const SessionId session{connection_};
      world_->Input(
          [session](TrackerCore& core) { core.SessionOpened(session); });
      Do([this] { board_.OnConnected(); });
    });
  }

  void Send(v1::AgentMessage message) override {
    if (connection_ == 0) return;
    last_out_ =
        std::max(last_out_, world_->clock_.Steady() + world_->Between(0, 40));
    world_->After(
        last_out_ - world_->clock_.Steady(),
        [this, message = std::move(message), connection = connection_,
         run = world_->tracker_run_] {
          // What was under way when the connection broke is lost.
          if (connection != connection_ || run != world_->tracker_run_) return;
          const SessionId session{connection};
          world_->Input([session, message](TrackerCore& core) {
            core.AgentSaid(session, message);
          });
        });
  }

  void Close() override {
    ++opening_;
    Forget(/*tracker_notices=*/true);
  }

 private:
  void Forget(bool tracker_notices) {
    if (connection_ == 0) return;
    const SessionId session{std::exchange(connection_, 0)};
    if (!tracker_notices) return;
    world_->After(
        world_->Between(0, 500), [this, session, run = world_->tracker_run_] {
          if (run != world_->tracker_run_) return;
          world_->Input(
              [session](TrackerCore& core) { core.SessionClosed(session); });
        });
  }

  // Now, or when the process goes on; not for a later process.
  void Do(Event event) {
    if (!board_.up()) return;
    const absl::Duration wait = suspended_until_ - world_->clock_.Steady();
    if (wait <= absl::ZeroDuration()) {
      event();
      return Rearm();
    }
    world_->After(wait, [this, event = std::move(event), life = life_] {
      if (life == life_) Do(event);
    });
  }

  void Rearm() {
    const SteadyTime wake = board_.NextWake();
    if (wake.ns >= armed_ || wake.ns == INT64_MAX) return;
    armed_ = wake.ns;
    world_->After(
        std::max(absl::ZeroDuration(), wake - world_->clock_.Steady()),
        [this, at = wake.ns, life = life_] {
          if (armed_ != at || life != life_) return;
          armed_ = INT64_MAX;
          Do([this] { board_.OnWake(); });
        });
  }

  void Check(const v1::TrackerMessage& message) {
    if (message.has_welcome()) {
      const int64_t epoch = message.welcome().tracker_epoch();
      if (epoch < epoch_) world_->Violation("I6: a tracker's epoch fell");
      epoch_ = epoch;
    }
    for (const v1::TrialAck& ack : message.result_ack().acks()) {
      if (!world_->server_.log.contains(ack.trial_id())) {
        world_->Violation(absl::StrCat("I2: trial ", ack.trial_id(),
                                       " was acknowledged but is not stored"));
      }
    }
  }

  CoreSimulation* const world_;
  SimBoard board_;
  uint64_t connection_ = 0;  // 0: none
  int64_t opening_ = 0;
  int64_t life_ = 0;
  SteadyTime last_out_, last_in_;
  SteadyTime suspended_until_;
  int64_t armed_ = INT64_MAX;
  int64_t epoch_ = 0;
};

CoreSimulation::CoreSimulation(uint64_t seed)
    : seed_(seed),
      random_(seed),
      clock_(absl::FromUnixSeconds(1'800'000'000)),
      tracker_random_(seed + 1) {
  options_.fleet.auto_approve.all = true;
  // In some seeds the buffer is so small that it runs over.
  if (Chance(0.25)) {
    options_.max_buffered_results = 3 + static_cast<int>(random_.Below(6));
  }
  BoardHabits habits;
  habits.trial = absl::Milliseconds(800);
  habits.failures = 0.1;
  const int boards = 1 + static_cast<int>(random_.Below(5));
  for (int i = 0; i < boards; ++i) {
    boards_.push_back(
        std::make_unique<Board>(this,
                                HelloOf(i, i > 0 && Chance(0.4),
                                        1 + static_cast<int>(random_.Below(3))),
                                habits));
  }
  MakeWork(std::any_of(boards_.begin(), boards_.end(), [](const auto& board) {
    return board->device_class() == "y";
  }));
}

CoreSimulation::~CoreSimulation() = default;

void CoreSimulation::After(absl::Duration delay, Event event) {
  events_.emplace((clock_.Steady() + delay).ns, std::move(event));
}

absl::Duration CoreSimulation::Between(int low_ms, int high_ms) {
  return absl::Milliseconds(
      low_ms + static_cast<int>(
                   random_.Below(static_cast<uint64_t>(high_ms - low_ms + 1))));
}

void CoreSimulation::RunFor(absl::Duration time) {
  const SteadyTime end = clock_.Steady() + time;
  while (!events_.empty() && events_.begin()->first <= end.ns) {
    auto node = events_.extract(events_.begin());
    const int64_t late = node.key() - clock_.Steady().ns;
    if (late > 0) clock_.Advance(absl::Nanoseconds(late));
    node.mapped()();
    if (report_.violations.size() > 5) {
      events_.clear();
      return;
    }
  }
  if (clock_.Steady() < end) clock_.Advance(end - clock_.Steady());
}

void CoreSimulation::Violation(const std::string& what) {
  report_.violations.push_back(absl::StrCat(
      "seed ", seed_, " at ", clock_.Steady().ns / 1'000'000, " ms: ", what));
}

bool CoreSimulation::AllDone() const {
  for (const auto& [id, work] : server_.works) {
    if (!Committed(work)) return false;
  }
  for (const auto& board : boards_) {
    if (board->sim().spooled() > 0 || board->sim().held() > 0) return false;
  }
  if (core_ == nullptr) return false;
  const v1::ListDevicesResponse list = core_->ListDevices();
  return std::all_of(list.devices().begin(), list.devices().end(),
                     [](const auto& d) { return d.running() == 0; });
}

CoreSimulation::Report CoreSimulation::Run() {
  StartTracker();
  for (auto& board : boards_) board->Boot();
  ConnectServer();
  After(options_.tick, [this] { Tick(); });
  After(Between(500, 5000), [this] { Fault(); });
  RunFor(kFaultsFor);

  faults_on_ = false;
  store_.error = absl::OkStatus();
  for (auto& board : boards_) board->sim().disk().broken = false;
  // I8. All of the work may be to do again, on a single board of its class; a
  // board that slept is back by then, and the server submits the last of it.
  int trials = 0;
  for (const auto& [id, work] : server_.works) trials += work.trials_size();
  const absl::Duration limit = options_.restart_window + 2 * options_.lease +
                               absl::Seconds(30) + absl::Seconds(200) +
                               trials * kLongestTrial;
  const SteadyTime end = clock_.Steady() + limit;
  while (!AllDone() && clock_.Steady() < end && report_.violations.empty()) {
    RunFor(absl::Seconds(5));
  }
  if (!report_.violations.empty()) return report_;
  for (const auto& [id, work] : server_.works) {
    if (!Committed(work)) Violation("I1, I8: work " + id + " never ended");
  }
  for (const auto& board : boards_) {
    if (board->sim().spooled() > 0) {
      Violation(absl::StrCat("I2, I9: ", board->sim().spooled(),
                             " results were never acknowledged"));
    }
    if (board->sim().held() > 0) Violation("I8: a board still holds work");
  }
  for (const std::string& what : ledger_.broken()) Violation("I2: " + what);
  for (const std::string& trial : ledger_.FinishedTrials()) {
    if (!server_.log.contains(trial)) {
      Violation("I2: trial " + trial + " was finished and is not in the log");
    }
  }
  report_.counts["results"] += static_cast<int>(ledger_.finished());
  report_.counts["acknowledged again"] +=
      static_cast<int>(ledger_.repeated_acks());
  return report_;
}

// --- tracker

void CoreSimulation::StartTracker() {
  ++store_.epoch;
  ++tracker_run_;
  fleet_watch_.Restart();
  core_ =
      std::make_unique<TrackerCore>(options_, clock_, tracker_random_, store_);
}

void CoreSimulation::KillTracker() {
  if (core_ == nullptr) return;
  ++report_.counts["trackers killed"];
  core_.reset();
  ++tracker_run_;
  for (auto& board : boards_) {
    board->Break(false, absl::UnavailableError("the tracker died"));
  }
  BreakServer();
  After(Between(10, 5000), [this] { StartTracker(); });
}

void CoreSimulation::Tick() {
  if (core_ != nullptr && clock_.Steady() >= stalled_until_) {
    const bool told =
        fleet_watch_.Due(clock_.Steady(), options_.fleet_change_interval);
    Input([](TrackerCore& core) { core.Tick(); });
    core_->CheckIndices();
    if (const std::string wrong =
            told ? fleet_watch_.Compare(core_->ListDevices()) : "";
        !wrong.empty()) {
      Violation(wrong);
    }
    if (told && fleet_watch_.servers() > 0) ++report_.counts["fleets compared"];
  }
  After(options_.tick, [this] { Tick(); });
}

void CoreSimulation::Input(const std::function<void(TrackerCore&)>& input) {
  if (core_ == nullptr) return;
  if (clock_.Steady() < stalled_until_) {
    // Waits in the socket, in order, until the process goes on.
    After(stalled_until_ - clock_.Steady(), [this, run = tracker_run_, input] {
      if (run == tracker_run_) Input(input);
    });
    return;
  }
  input(*core_);
  for (const Action& action : core_->TakeActions()) Deliver(action);
}

void CoreSimulation::CheckAssign(const v1::Assignment& assignment) {
  if (assignment.attempt() > options_.max_attempts) {
    Violation(absl::StrCat("I4: ", assignment.assignment_id(),
                           " is sent as attempt ", assignment.attempt()));
  }
  int64_t& latest = lease_epochs_[assignment.assignment_id()];
  if (assignment.lease_epoch() <= latest) {
    Violation("I6: a lease's epoch did not grow: " +
              assignment.assignment_id());
  }
  latest = assignment.lease_epoch();
}

void CoreSimulation::Deliver(const Action& action) {
  fleet_watch_.Take(action, clock_.Steady());
  if (auto* send = std::get_if<SendToAgent>(&action)) {
    if (send->message.has_assign()) {
      CheckAssign(send->message.assign().assignment());
    }
    for (auto& board : boards_) {
      if (SessionId{board->session()} == send->session) {
        board->Hear(send->message);
      }
    }
  } else if (auto* close = std::get_if<CloseSession>(&action)) {
    // A board that was suspended between connecting and its Hello is not told
    // apart from one that has nothing to say.
    if (close->status.code() == absl::StatusCode::kInvalidArgument &&
        !absl::StartsWith(close->status.message(), "no Hello")) {
      Violation(absl::StrCat("an honest board was refused: ",
                             std::string(close->status.message())));
    }
    for (auto& board : boards_) {
      if (SessionId{board->session()} == close->session) {
        board->HearEnd(close->status);
      }
    }
  } else if (auto* event = std::get_if<SendToServer>(&action)) {
    if (StreamId{static_cast<uint64_t>(server_.connection)} != event->stream) {
      return;
    }
    server_.last_to_server =
        std::max(server_.last_to_server, clock_.Steady() + Between(0, 40));
    After(server_.last_to_server - clock_.Steady(),
          [this, connection = server_.connection, event = event->event] {
            if (server_.connection == connection) ServerHears(event);
          });
  } else if (auto* end = std::get_if<CloseServer>(&action)) {
    if (end->status.code() != absl::StatusCode::kAborted) {
      Violation(absl::StrCat("an honest server was refused: ",
                             std::string(end->status.message())));
    }
    if (StreamId{static_cast<uint64_t>(server_.connection)} == end->stream) {
      BreakServer();
    }
  }
}

void CoreSimulation::Fault() {
  if (!faults_on_) return;
  Board& board = *boards_[random_.Below(boards_.size())];
  switch (random_.Below(12)) {
    case 0:
    case 1:
      ++report_.counts["connections cut"];
      board.Break(/*tracker_notices=*/true, absl::UnavailableError("cut"));
      break;
    case 2:
      ++report_.counts["half-open connections"];
      board.Break(/*tracker_notices=*/false, absl::UnavailableError("cut"));
      break;
    case 3:
    case 4:
    case 5: {
      if (!board.sim().up()) break;
      ++report_.counts["boards killed"];
      board.Kill();
      if (Chance(0.3)) {
        ++report_.counts["power lost"];
        board.sim().disk().LosePower(random_.Below(300));
      }
      After(Between(100, 4000), [&board] { board.Boot(); });
      break;
    }
    case 6:
      // To sleep, to be stopped by somebody; short or past its lease.
      ++report_.counts["boards suspended"];
      board.Suspend(Chance(0.5) ? Between(1000, 40'000)
                                : Between(50'000, 150'000));
      break;
    case 7:
      ++report_.counts["disks of boards broken"];
      board.sim().disk().broken = true;
      After(Between(1000, 20'000),
            [&board] { board.sim().disk().broken = false; });
      break;
    case 8:
      KillTracker();
      break;
    case 9:
      KillServer();
      break;
    case 10:
      ++report_.counts["tracker stalls"];
      stalled_until_ = clock_.Steady() + Between(100, 8000);
      if (Chance(0.5)) {
        store_.error = absl::ResourceExhaustedError("disk full");
        After(Between(100, 4000), [this] { store_.error = absl::OkStatus(); });
      }
      break;
    default:
      if (server_.connection != 0 && Chance(0.4)) {
        CancelJob(1 + static_cast<int64_t>(random_.Below(3)));
      } else {
        ++report_.counts["server streams cut"];
        BreakServer();
      }
      break;
  }
  After(Between(200, 10'000), [this] { Fault(); });
}

}  // namespace regatta::fleet_sim
