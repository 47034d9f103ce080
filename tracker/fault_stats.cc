#include "tracker/fault_stats.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

constexpr absl::Duration kHour = absl::Hours(1);

void DropBefore(std::deque<SteadyTime>* times, absl::Duration age,
                SteadyTime now) {
  while (!times->empty() && now - times->front() >= age) times->pop_front();
}

}  // namespace

void FaultStats::Add(const std::string& device_id, bool fault) {
  Board& board = boards_[device_id];
  board.trials.push_back(fault);
  if (board.trials.size() > kWindow) board.trials.pop_front();
  board.in_a_row = fault ? board.in_a_row + 1 : 0;
}

void FaultStats::Rebooted(const std::string& device_id, SteadyTime now) {
  Board& board = boards_[device_id];
  DropBefore(&board.reboots, kHour, now);
  board.reboots.push_back(now);
}

void FaultStats::Reset(const std::string& device_id) {
  boards_.erase(device_id);
}

double FaultStats::Rate(const Board& board) {
  return static_cast<double>(
             std::count(board.trials.begin(), board.trials.end(), true)) /
         static_cast<double>(board.trials.size());
}

bool FaultStats::ClassIsWell(const std::vector<std::string>& peers) const {
  std::vector<double> rates;
  for (const std::string& id : peers) {
    const auto board = boards_.find(id);
    if (board == boards_.end() || board->second.trials.size() < kEnough) {
      continue;
    }
    rates.push_back(Rate(board->second));
  }
  if (rates.empty()) return false;
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2] < kClassIsWell;
}

std::string FaultStats::WhyQuarantine(std::string_view device_id,
                                      const std::vector<std::string>& peers,
                                      SteadyTime now) const {
  const auto found = boards_.find(device_id);
  if (found == boards_.end()) return "";
  const Board& board = found->second;
  const auto reboots =
      std::count_if(board.reboots.begin(), board.reboots.end(),
                    [now](SteadyTime at) { return now - at < kHour; });
  if (reboots > kRebootsInAnHour) {
    return absl::StrCat(reboots, " unannounced reboots in an hour");
  }
  if (board.trials.empty() || !ClassIsWell(peers)) return "";
  if (board.in_a_row >= kInARow) {
    return absl::StrCat(board.in_a_row,
                        " device failures in a row, while the other boards of "
                        "its class are well");
  }
  if (board.trials.size() >= kEnough && Rate(board) > kTooMany) {
    return absl::StrCat(
        std::count(board.trials.begin(), board.trials.end(), true), " of ",
        board.trials.size(),
        " trials were device failures, while the other boards of its class are "
        "well");
  }
  return "";
}

bool ClassBrake::TakeOut(const std::string& device_class,
                         const std::string& agent_id, int boards,
                         SteadyTime now) {
  Class& c = classes_[device_class];
  std::erase_if(c.taken_out,
                [now](const auto& one) { return now - one.second >= kWindow; });
  if (c.taken_out.contains(agent_id)) return true;
  if (std::ssize(c.taken_out) >= std::max(1, boards / 10)) return false;
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

std::vector<std::string> ClassBrake::Due(SteadyTime now) const {
  std::vector<std::string> due;
  for (const auto& [name, c] : classes_) {
    if (!c.why.empty() && now - c.stopped >= kWindow) due.push_back(name);
  }
  return due;
}

}  // namespace regatta
