#include "tests/faults/lab.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace regatta::faults {
namespace {

constexpr absl::Duration kStep = absl::Milliseconds(50);

}  // namespace

TrackerOptions Lab::Approving() {
  TrackerOptions options;
  options.fleet.auto_approve.all = true;
  return options;
}

Lab::Lab(const TrackerOptions& options, uint64_t seed)
    : options_(options),
      clock_(absl::FromUnixSeconds(1'800'000'000)),
      random_(seed),
      tracker_random_(seed + 1) {
  StartTracker();
  AttachServer();
}

Lab::~Lab() = default;

void Lab::Violate(const std::string& what) {
  violations_.push_back(
      absl::StrCat("at ", clock_.Steady().ns / 1'000'000, " ms: ", what));
}

// --- time

void Lab::Run(absl::Duration d) {
  const SteadyTime end = clock_.Steady() + d;
  while (clock_.Steady() < end) Step();
}

bool Lab::RunUntil(const std::function<bool()>& condition,
                   absl::Duration limit) {
  const SteadyTime end = clock_.Steady() + limit;
  while (!condition()) {
    if (clock_.Steady() >= end) return false;
    Step();
  }
  return true;
}

void Lab::Step() {
  clock_.Advance(kStep);
  if (TrackerRuns() && clock_.Steady() >= next_tick_) {
    core_->Tick();
    next_tick_ = clock_.Steady() + options_.tick;
    Flush();
  }
  for (const auto& board : boards_) {
    PumpUp(*board);
    PumpDown(*board);
    TickBoard(*board);
  }
  if (TrackerRuns()) {
    for (const auto& request : std::exchange(server_outbox_, {})) {
      if (!server_.stream) break;
      core_->ServerSaid(*server_.stream, request);
      Flush();
    }
  }
  Commit();
}

// --- tracker

void Lab::StartTracker() {
  ++store_.epoch;
  tracker_started_ = clock_.Steady();
  next_tick_ = clock_.Steady() + options_.tick;
  core_ =
      std::make_unique<TrackerCore>(options_, clock_, tracker_random_, store_);
}

void Lab::KillTracker() {
  core_.reset();
  DetachServer();
  for (const auto& board : boards_) {
    for (const auto& connection : board->connections) {
      connection->tracker_closed = true;
      connection->tracker_status = absl::UnavailableError("the tracker died");
      connection->up.Clear();
      connection->down.Clear();
    }
  }
}

void Lab::Flush() {
  for (const Action& action : core_->TakeActions()) Deliver(action);
}

void Lab::Deliver(const Action& action) {
  if (const auto* send = std::get_if<SendToServer>(&action)) {
    if (server_.stream == send->stream) ServerHears(send->event);
    return;
  }
  for (const auto& board : boards_) {
    for (const auto& connection : board->connections) {
      if (const auto* send = std::get_if<SendToAgent>(&action);
          send != nullptr && send->session == connection->session) {
        if (send->message.has_assign()) {
          WatchAssign(*board, send->message.assign().assignment());
        }
        connection->down.Push(send->message, clock_.Steady(), board->link,
                              random_, &board->past_down);
      } else if (const auto* close = std::get_if<CloseSession>(&action);
                 close != nullptr && close->session == connection->session) {
        connection->tracker_closed = true;
        connection->tracker_status = close->status;
        connection->up.Clear();
      }
    }
  }
}

void Lab::WatchAssign(const Board& to, const v1::Assignment& assignment) {
  if (assignment.attempt() > options_.max_attempts) {
    Violate(absl::StrCat(assignment.assignment_id(), " goes out as attempt ",
                         assignment.attempt()));
  }
  if (Since(tracker_started_) >= options_.restart_window) return;
  for (const auto& other : boards_) {
    if (other.get() == &to) continue;
    for (const Board::Held& held : other->held) {
      if (held.assignment.assignment_id() == assignment.assignment_id() &&
          held.given < tracker_started_) {
        Violate(absl::StrCat(assignment.assignment_id(), " goes to ", to.id,
                             " while ", other->id, " holds it, ",
                             absl::FormatDuration(Since(tracker_started_)),
                             " after the tracker's restart"));
      }
    }
  }
}

// --- links

void Lab::PumpUp(Board& board) {
  if (board.link.to_tracker_blocked || !TrackerRuns()) return;
  for (const auto& owned : board.connections) {
    Connection& connection = *owned;
    if (!connection.established) {
      if (connection.agent_closed || connection.tracker_closed ||
          board.link.to_agent_blocked) {
        continue;
      }
      connection.established = true;
      core_->SessionOpened(connection.session);
      Flush();
    }
    v1::AgentMessage message;
    while (!connection.tracker_closed &&
           connection.up.Pop(clock_.Steady(), &message)) {
      core_->AgentSaid(connection.session, message);
      Flush();
    }
    if (connection.agent_closed && connection.up.empty() &&
        !connection.tracker_closed && !connection.tracker_told) {
      connection.tracker_told = true;
      core_->SessionClosed(connection.session);
      Flush();
    }
  }
}

void Lab::PumpDown(Board& board) {
  if (!board.link.to_agent_blocked && !board.paused && board.loop != nullptr &&
      board.current != nullptr) {
    Connection& connection = *board.current;
    v1::TrackerMessage message;
    while (board.current == &connection &&
           connection.down.Pop(clock_.Steady(), &message)) {
      Hear(board, message);
    }
    // A tracker that is not there refuses connections at once.
    const bool refused = !connection.established && core_ == nullptr &&
                         !board.link.to_tracker_blocked;
    if (board.current == &connection && connection.down.empty() &&
        (connection.tracker_closed || refused)) {
      connection.agent_told = true;
      const absl::Status why = refused ? absl::UnavailableError("refused")
                                       : connection.tracker_status;
      board.refused.push_back(why);
      board.current = nullptr;
      board.loop->OnDisconnected(why);
      Settle(board);
    }
  }
  std::erase_if(board.connections, [&](const auto& connection) {
    return connection.get() != board.current && connection->Over();
  });
}

// --- what came of it

v1::DeviceStatus Lab::Status(const std::string& board) const {
  if (core_ == nullptr) return {};
  const v1::ListDevicesResponse list = core_->ListDevices();
  for (const auto& status : list.devices()) {
    if (status.info().device_id() == board) return status;
  }
  return {};
}

bool Lab::Drained() const {
  for (const auto& [id, work] : server_.works) {
    for (const auto& trial : work.trials()) {
      if (!server_.log.contains(trial.trial_id())) return false;
    }
  }
  return std::all_of(boards_.begin(), boards_.end(), [](const auto& board) {
    return board->loop != nullptr && board->held.empty() &&
           board->loop->held() == 0 && board->spool->count() == 0;
  });
}

bool Lab::HealAndDrain(absl::Duration limit) {
  for (const auto& board : boards_) {
    board->link = {};
    board->paused = false;
    if (board->loop == nullptr) StartAgent(*board);
  }
  server_.disk_full = false;
  if (std::exchange(server_.keeps_acks, false)) DetachServer();
  ResumeTracker();
  if (core_ == nullptr) StartTracker();
  if (!server_.stream) AttachServer();
  const bool drained = RunUntil([this] { return Drained(); }, limit);
  if (!drained) {
    Violate(absl::StrCat("not drained ", absl::FormatDuration(limit),
                         " after healing: ", server_.log.size(),
                         " trials are stored"));
  }
  return drained;
}

}  // namespace regatta::faults
