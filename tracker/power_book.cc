#include "tracker/power_book.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace regatta {

std::string PowerVerbName(PowerVerb verb) {
  switch (verb) {
    case PowerVerb::kOff:
      return "off";
    case PowerVerb::kOn:
      return "on";
    case PowerVerb::kCycle:
      break;
  }
  return "cycle";
}

absl::Status PowerBook::Check(const std::string& device_id, PowerVerb verb,
                              SteadyTime now) const {
  const auto hook = hooks_.find(device_id);
  if (hook == hooks_.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("device ", device_id,
                     " has no power hook; the tracker's fleet file sets one"));
  }
  const PowerCommand& command =
      verb == PowerVerb::kOff ? hook->second.off : hook->second.on;
  if (verb != PowerVerb::kCycle && command.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the power hook of device ", device_id, " has no '",
                     PowerVerbName(verb), "'; it can only be cycled"));
  }
  if (tasks_.contains(device_id)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the power of device ", device_id,
                     " is being switched already; wait for its end"));
  }
  const auto cycles = cycles_.find(device_id);
  if (verb != PowerVerb::kCycle || cycles == cycles_.end()) {
    return absl::OkStatus();
  }
  const auto within = [&](absl::Duration age) {
    return std::count_if(cycles->second.begin(), cycles->second.end(),
                         [&](SteadyTime at) { return now - at < age; });
  };
  if (within(absl::Hours(1)) >= kCyclesInAnHour ||
      within(absl::Hours(24)) >= kCyclesInADay) {
    return absl::ResourceExhaustedError(
        absl::StrCat("device ", device_id, " had ", within(absl::Hours(1)),
                     " power cycles in the last hour and ",
                     within(absl::Hours(24)), " in the last day; at most ",
                     kCyclesInAnHour, " and ", kCyclesInADay, " are allowed"));
  }
  return absl::OkStatus();
}

void PowerBook::Start(const std::string& device_id, PowerVerb verb,
                      SteadyTime now) {
  tasks_[device_id] = {verb, now, now};
  if (verb == PowerVerb::kCycle) Recall(device_id, now);
}

void PowerBook::Recall(const std::string& device_id, SteadyTime at) {
  std::deque<SteadyTime>& cycles = cycles_[device_id];
  cycles.push_back(at);
  while (cycles.size() > static_cast<size_t>(kCyclesInADay)) {
    cycles.pop_front();
  }
}

const PowerCommand& PowerBook::Next(const PowerHook& hook,
                                    const Task& task) const {
  if (task.verb == PowerVerb::kOff) return hook.off;
  if (task.verb == PowerVerb::kOn) return hook.on;
  if (!hook.cycle.empty()) return hook.cycle;
  return task.is_off ? hook.on : hook.off;
}

std::vector<PowerSend> PowerBook::Due(SteadyTime now) {
  std::vector<std::tuple<bool, SteadyTime, std::string>> turns;
  for (const auto& [id, task] : tasks_) {
    if (task.sending || now < task.send_at) continue;
    turns.emplace_back(!task.is_off, task.send_at, id);
  }
  std::sort(turns.begin(), turns.end());
  std::vector<PowerSend> due;
  for (const auto& [begins, send_at, id] : turns) {
    Task& task = tasks_.find(id)->second;
    const PowerHook& hook = hooks_.at(id);
    if (busy_units_.contains(hook.unit)) continue;
    task.sending = true;
    if (!task.sent) task.started = now;
    task.late = false;
    task.complete = task.verb == PowerVerb::kOn || task.is_off ||
                    (task.verb == PowerVerb::kCycle && !hook.cycle.empty());
    busy_units_.insert(hook.unit);
    due.push_back({id, hook.unit, Next(hook, task), std::nullopt});
    if (!task.sent && task.verb != PowerVerb::kOff) {
      due.back().back_by = now + kGiveUp;
    }
    task.sent = true;
  }
  return due;
}

bool PowerBook::Done(const std::string& device_id, SteadyTime now) {
  if (const auto hook = hooks_.find(device_id); hook != hooks_.end()) {
    busy_units_.erase(hook->second.unit);
  }
  const auto found = tasks_.find(device_id);
  if (found == tasks_.end()) return false;
  Task& task = found->second;
  // Of a task before this one, which nothing waits for any more.
  if (!task.sending) return false;
  task.sending = false;
  if (task.verb == PowerVerb::kOff) {
    // Nothing tells whether it is off: its silence is shown as such.
    tasks_.erase(found);
    return true;
  }
  const bool two_steps =
      task.verb == PowerVerb::kCycle && hooks_.at(device_id).cycle.empty();
  if (two_steps && !task.is_off) {
    task.is_off = true;
    task.send_at = now + kOffTime;
    return false;
  }
  // Not back in time: all of it again.
  task.is_off = false;
  task.send_at = now + kResend;
  return false;
}

bool PowerBook::Resume(const std::string& device_id, PowerVerb verb,
                       SteadyTime at, SteadyTime now) {
  const auto hook = hooks_.find(device_id);
  // The fleet's file may be another since.
  if (hook == hooks_.end() ||
      (verb == PowerVerb::kOn && hook->second.on.empty()) ||
      (verb == PowerVerb::kOff && hook->second.off.empty())) {
    return false;
  }
  Task& task = tasks_[device_id] = {verb, at, now};
  if (now - at < kGiveUp) return true;
  task.started = now;
  task.send_at = now + kResend;
  task.late = true;
  return true;
}

bool PowerBook::Halfway(const PowerHook& hook, const Task& task) const {
  return task.verb == PowerVerb::kCycle && hook.cycle.empty() &&
         (task.is_off || task.sending);
}

bool PowerBook::Booted(const std::string& device_id) {
  const auto found = tasks_.find(device_id);
  if (found == tasks_.end() ||
      !(found->second.complete || found->second.late)) {
    return false;
  }
  tasks_.erase(found);
  return true;
}

bool PowerBook::Seen(const std::string& device_id) {
  const auto found = tasks_.find(device_id);
  if (found == tasks_.end() ||
      !(found->second.verb == PowerVerb::kOn || found->second.late)) {
    return false;
  }
  tasks_.erase(found);
  return true;
}

void PowerBook::Forget(std::string_view device_id) {
  if (const auto found = tasks_.find(device_id); found != tasks_.end()) {
    tasks_.erase(found);
  }
}

void PowerBook::ExtendBy(absl::Duration stall) {
  for (auto& [id, task] : tasks_) {
    task.started = task.started + stall;
    task.send_at = task.send_at + stall;
  }
}

std::vector<std::string> PowerBook::GiveUps(SteadyTime now) {
  std::vector<std::string> given_up;
  for (const auto& [id, task] : tasks_) {
    if (task.sent && now - task.started >= kGiveUp &&
        !Halfway(hooks_.at(id), task)) {
      given_up.push_back(id);
    }
  }
  for (const std::string& id : given_up) tasks_.erase(id);
  return given_up;
}

}  // namespace regatta
