#include "tracker/fault_stats.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace regatta {
namespace {

constexpr absl::Duration kHour = absl::Hours(1);

void DropBefore(std::deque<SteadyTime>* times, absl::Duration age,
                SteadyTime now) {
  while (!times->empty() && now - times->front() >= age) times->pop_front();
}

}  // namespace

void FaultStats::Place(const std::string& device_id,
                       const std::string& device_class) {
  Board& board = boards_[device_id];
  if (board.device_class == device_class) return;
  Count(device_id, board, -1);
  board.device_class = device_class;
  Count(device_id, board, +1);
  if (device_class.empty() && board.trials.empty() && board.reboots.empty()) {
    boards_.erase(device_id);
  }
}

void FaultStats::Count(const std::string& device_id, const Board& board,
                       int64_t sign) {
  if (board.device_class.empty()) return;
  Class& c = classes_[board.device_class];
  c.boards += sign;
  c.judged += Judged(board) ? sign : 0;
  c.well += Judged(board) && Well(board) ? sign : 0;
  if (board.restless && sign > 0)
    c.restless.emplace(*board.restless, device_id);
  if (board.restless && sign < 0)
    c.restless.erase({*board.restless, device_id});
}

void FaultStats::Add(const std::string& device_id, bool fault) {
  Board& board = boards_[device_id];
  Count(device_id, board, -1);
  board.trials.push_back(fault);
  board.faults += fault ? 1 : 0;
  if (board.trials.size() > kWindow) {
    board.faults -= board.trials.front() ? 1 : 0;
    board.trials.pop_front();
  }
  board.in_a_row = fault ? board.in_a_row + 1 : 0;
  Count(device_id, board, +1);
}

void FaultStats::Rebooted(const std::string& device_id, SteadyTime now) {
  Board& board = boards_[device_id];
  Count(device_id, board, -1);
  DropBefore(&board.reboots, kHour, now);
  board.reboots.push_back(now);
  board.restless.reset();
  if (std::ssize(board.reboots) > kClassReboots) {
    board.restless = board.reboots[board.reboots.size() - 1 - kClassReboots];
  }
  Count(device_id, board, +1);
}

void FaultStats::Reset(const std::string& device_id) {
  const auto found = boards_.find(device_id);
  if (found == boards_.end()) return;
  if (found->second.device_class.empty()) {
    boards_.erase(found);
    return;
  }
  Count(device_id, found->second, -1);
  found->second = {.device_class = found->second.device_class};
  Count(device_id, found->second, +1);
}

double FaultStats::Rate(const Board& board) {
  return static_cast<double>(board.faults) /
         static_cast<double>(board.trials.size());
}

bool FaultStats::Judged(const Board& board) {
  return board.trials.size() >= kEnough;
}

bool FaultStats::Well(const Board& board) { return Rate(board) < kClassIsWell; }

// Of n rates in order, the one at n / 2 is low when more than n / 2 are.
bool FaultStats::ClassIsWell(const Board& board) const {
  const auto found = classes_.find(board.device_class);
  if (found == classes_.end()) return false;
  const Class& c = found->second;
  const int64_t others = c.judged - (Judged(board) ? 1 : 0);
  const int64_t well = c.well - (Judged(board) && Well(board) ? 1 : 0);
  return others > 0 && well > others / 2;
}

bool FaultStats::ClassBootsWell(const Board& board, SteadyTime now) {
  const auto found = classes_.find(board.device_class);
  if (found == classes_.end()) return true;
  Class& c = found->second;
  while (!c.restless.empty() && now - c.restless.begin()->first >= kHour) {
    boards_.find(c.restless.begin()->second)->second.restless.reset();
    c.restless.erase(c.restless.begin());
  }
  const int64_t others = c.boards - 1;
  const int64_t restless =
      std::ssize(c.restless) - (board.restless.has_value() ? 1 : 0);
  return others == 0 || others - restless > others / 2;
}

void FaultStats::CheckSums() const {
  FaultStats again;
  for (const auto& [id, board] : boards_) again.Count(id, board, +1);
  for (const auto& [name, c] : classes_) {
    const Class& other = again.classes_[name];
    CHECK(c.boards == other.boards && c.judged == other.judged &&
          c.well == other.well && c.restless == other.restless)
        << name << ": " << c.boards << " boards, " << c.judged << " judged, "
        << c.well << " well; counted again " << other.boards << ", "
        << other.judged << ", " << other.well;
  }
}

std::string FaultStats::WhyQuarantine(std::string_view device_id,
                                      SteadyTime now) {
  const auto found = boards_.find(device_id);
  if (found == boards_.end()) return "";
  const Board& board = found->second;
  const auto reboots =
      std::count_if(board.reboots.begin(), board.reboots.end(),
                    [now](SteadyTime at) { return now - at < kHour; });
  if (reboots > kRebootsInAnHour && ClassBootsWell(board, now)) {
    return absl::StrCat(reboots, " unannounced reboots in an hour");
  }
  if (board.trials.empty() || !ClassIsWell(board)) return "";
  if (board.in_a_row >= kInARow) {
    return absl::StrCat(board.in_a_row,
                        " device failures in a row, while the other boards of "
                        "its class are well");
  }
  if (board.trials.size() >= kEnough && Rate(board) > kTooMany) {
    return absl::StrCat(
        board.faults, " of ", board.trials.size(),
        " trials were device failures, while the other boards of its class are "
        "well");
  }
  return "";
}

void ClassBrake::DropOld(Class& c, SteadyTime now) {
  std::erase_if(c.taken_out,
                [now](const auto& one) { return now - one.second >= kWindow; });
}

bool ClassBrake::TakeOut(const std::string& device_class,
                         const std::string& agent_id, int agents,
                         SteadyTime now) {
  Class& c = classes_[device_class];
  DropOld(c, now);
  if (c.taken_out.contains(agent_id)) return true;
  if (std::ssize(c.taken_out) >= std::max(1, agents / 10)) return false;
  c.taken_out[agent_id] = now;
  return true;
}

void ClassBrake::Recall(const std::string& device_class,
                        const std::string& agent_id, SteadyTime at) {
  classes_[device_class].taken_out[agent_id] = at;
}

bool ClassBrake::Stop(const std::string& device_class, const std::string& why,
                      SteadyTime now) {
  Class& c = classes_[device_class];
  if (!c.why.empty()) return false;
  c.why = why;
  c.stopped = now;
  return true;
}

bool ClassBrake::Lift(const std::string& device_class) {
  const auto found = classes_.find(device_class);
  if (found == classes_.end() || found->second.why.empty()) return false;
  found->second.why.clear();
  return true;
}

std::string ClassBrake::Why(std::string_view device_class) const {
  const auto found = classes_.find(device_class);
  return found == classes_.end() ? "" : found->second.why;
}

void ClassBrake::ExtendBy(absl::Duration stall) {
  for (auto& [name, c] : classes_) {
    c.stopped = c.stopped + stall;
    for (auto& [agent, at] : c.taken_out) at = at + stall;
  }
}

std::vector<std::string> ClassBrake::Due(SteadyTime now) {
  std::vector<std::string> due;
  for (auto it = classes_.begin(); it != classes_.end();) {
    Class& c = it->second;
    DropOld(c, now);
    if (!c.why.empty() && now - c.stopped >= kWindow) due.push_back(it->first);
    it = c.why.empty() && c.taken_out.empty() ? classes_.erase(it)
                                              : std::next(it);
  }
  return due;
}

}  // namespace regatta
