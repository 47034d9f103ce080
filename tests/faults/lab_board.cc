// A lab's boards: the agent's real loop and spool, and a runner that lets time
// pass instead of running anything.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/faults/lab.h"

namespace regatta::faults {

bool Board::Holds(const std::string& assignment_id) const {
  return std::any_of(held.begin(), held.end(), [&](const Held& one) {
    return one.assignment.assignment_id() == assignment_id;
  });
}

std::vector<std::string> Board::RanTrials() const {
  std::vector<std::string> trials;
  for (const TrialRun& run : runs) trials.push_back(run.trial_id);
  return trials;
}

Board& Lab::AddBoard(const std::string& id, int credit) {
  boards_.push_back(std::make_unique<Board>());
  Board& board = *boards_.back();
  board.id = id;
  board.credit = credit;
  StartAgent(board);
  return board;
}

void Lab::StartAgent(Board& board) {
  auto spool = Spool::Open(std::make_unique<FakeSpoolStorage>(&board.disk), {});
  if (!spool.ok()) return Violate(std::string(spool.status().message()));
  board.spool = *std::move(spool);
  AgentLoop::Options options;
  v1::Hello& hello = options.hello;
  hello.set_agent_id(board.id);
  hello.set_instance_id(absl::StrCat(board.id, " process ", ++board.instance));
  hello.set_boot_id(absl::StrCat(board.id, " boot ", board.boot));
  hello.set_compiler_version(kLabCompiler);
  hello.set_space("cpu");
  hello.set_space_version(1);
  v1::DeviceInfo& device = *hello.add_devices();
  device.set_device_id(board.id);
  device.set_device_class(kLabClass);
  device.set_target(kLabTarget);
  device.set_credit(board.credit);
  device.set_health("ok");
  board.loop = std::make_unique<AgentLoop>(
      options, &clock_, Random(random_.Next()), board.spool.get());
}

void Lab::KillAgent(Board& board) {
  board.loop.reset();
  board.spool.reset();
  board.held.clear();
  board.running.reset();
  board.paused = false;
  if (board.current != nullptr) board.current->agent_closed = true;
  board.current = nullptr;
}

void Lab::Suspend(Board& board, absl::Duration d) {
  PauseAgent(board);
  // What runs is stopped, too.
  if (board.running) board.run_ends = board.run_ends + d;
  Run(d);
  ResumeAgent(board);
}

void Lab::TickBoard(Board& board) {
  if (board.loop == nullptr || board.paused) return;
  FinishRun(board);
  // The runner's thread may wake before the loop's.
  StartRun(board);
  if (clock_.Steady() >= board.loop->NextWake() + board.late) {
    board.loop->OnTick(board.work_ticks);
  }
  Settle(board);
}

void Lab::Settle(Board& board) {
  while (true) {
    std::vector<AgentAction> actions = board.loop->Settle();
    if (actions.empty()) return;
    for (AgentAction& action : actions) Perform(board, action);
  }
}

void Lab::Perform(Board& board, AgentAction& action) {
  if (auto* send = std::get_if<SendAction>(&action)) {
    if (board.current == nullptr) return;
    board.current->up.Push(std::move(send->message), clock_.Steady(),
                           board.link, random_, &board.past_up);
  } else if (auto* start = std::get_if<StartAction>(&action)) {
    board.started.push_back(start->assignment);
    Board::Held held;
    held.assignment = std::move(start->assignment);
    held.given = clock_.Steady();
    board.held.push_back(std::move(held));
  } else if (auto* stop = std::get_if<StopAction>(&action)) {
    CutRun(board, stop->assignment_id);
    std::erase_if(board.held, [&](const Board::Held& held) {
      return held.assignment.assignment_id() == stop->assignment_id;
    });
  } else if (auto* finish = std::get_if<FinishAction>(&action)) {
    for (Board::Held& held : board.held) {
      if (held.assignment.assignment_id() == finish->assignment_id) {
        held.finishing = true;
      }
    }
  } else if (auto* close = std::get_if<CloseAction>(&action)) {
    board.agent_closed.push_back(close->reason);
    if (board.current != nullptr) board.current->agent_closed = true;
    board.current = nullptr;
  } else if (std::holds_alternative<ConnectAction>(action)) {
    ++board.connects;
    board.connections.push_back(std::make_unique<Connection>());
    board.current = board.connections.back().get();
    board.current->session = SessionId{++last_id_};
    // As with the real client, whether it works shows later.
    board.loop->OnConnected();
  }
}

void Lab::Hear(Board& board, const v1::TrackerMessage& message) {
  if (message.has_welcome()) {
    const int64_t epoch = message.welcome().tracker_epoch();
    if (epoch < board.highest_epoch) {
      Violate(absl::StrCat(board.id, " is welcomed by epoch ", epoch, " after ",
                           board.highest_epoch));
    }
    board.highest_epoch = epoch;
  }
  for (const v1::TrialAck& ack : message.result_ack().acks()) {
    board.acks.push_back(ack);
    if (ack.status() != v1::ACK_STATUS_REJECTED &&
        !server_.log.contains(ack.trial_id())) {
      Violate(absl::StrCat(board.id, " was told that ", ack.trial_id(),
                           " is stored, which it is not"));
    }
  }
  board.loop->OnMessage(message);
  Settle(board);
}

// --- the runner

void Lab::FinishRun(Board& board) {
  if (board.running && clock_.Steady() >= board.run_ends) {
    TrialRun& run = board.runs[*board.running];
    run.end = board.run_ends;
    board.running.reset();
    ++board.work_ticks;
    const auto held = std::find_if(
        board.held.begin(), board.held.end(), [&](const Board::Held& one) {
          return one.assignment.assignment_id() == run.assignment_id;
        });
    const v1::Assignment assignment = held->assignment;
    const int trial = held->next++;
    const bool last = held->next == assignment.trials_size();
    if (last) board.held.erase(held);
    board.loop->OnResult(assignment.assignment_id(),
                         ResultOf(board, run, assignment.trials(trial)), last);
    Settle(board);
  }
  std::vector<std::string> idle;
  std::erase_if(board.held, [&](const Board::Held& held) {
    const std::string& id = held.assignment.assignment_id();
    const bool runs =
        board.running && board.runs[*board.running].assignment_id == id;
    if (!held.finishing || runs) return false;
    idle.push_back(id);
    return true;
  });
  for (const std::string& id : idle) board.loop->OnFinished(id);
}

void Lab::StartRun(Board& board) {
  if (board.running) return;
  for (const Board::Held& held : board.held) {
    const v1::Assignment& assignment = held.assignment;
    if (held.finishing ||
        !board.loop->gate().MayStart(assignment.assignment_id())) {
      continue;
    }
    TrialRun run;
    run.trial_id = assignment.trials(held.next).trial_id();
    run.assignment_id = assignment.assignment_id();
    run.attempt = assignment.attempt();
    run.lease_epoch = assignment.lease_epoch();
    run.start = clock_.Steady();
    if (!board.runs.empty() && board.runs.back().end &&
        run.start < *board.runs.back().end) {
      Violate(absl::StrCat(board.id, " runs two trials at once"));
    }
    board.running = board.runs.size();
    board.runs.push_back(std::move(run));
    board.run_ends = clock_.Steady() + trial_time;
    return;
  }
}

void Lab::CutRun(Board& board, const std::string& assignment_id) {
  if (!board.running ||
      board.runs[*board.running].assignment_id != assignment_id) {
    return;
  }
  // The worker dies with it.
  board.runs[*board.running].end = clock_.Steady();
  board.running.reset();
}

v1::TrialResult Lab::ResultOf(const Board& board, const TrialRun& run,
                              const v1::TrialSpec& spec) const {
  v1::TrialResult result;
  *result.mutable_spec() = spec;
  result.set_outcome(outcome ? outcome(board, spec) : v1::OUTCOME_OK);
  result.set_attempt(run.attempt);
  result.set_lease_epoch(run.lease_epoch);
  result.set_device_id(board.id);
  result.set_device_class(kLabClass);
  if (result.outcome() == v1::OUTCOME_OK) result.set_time_ns(1000);
  return result;
}

}  // namespace regatta::faults
