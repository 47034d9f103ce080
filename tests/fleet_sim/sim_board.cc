#include "tests/fleet_sim/sim_board.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/digest.h"

namespace regatta::fleet_sim {
namespace {

constexpr int kBlocks = 10;

// A number from the schedule's text, the same on every board.
uint64_t NumberOf(const std::string& text) {
  uint64_t sum = 14695981039346656037u;
  for (const char c : text) {
    sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  return Random(sum).Next();
}

// How a schedule fails that does. The verdict is the schedule's own.
v1::Outcome FailureOf(uint64_t number) {
  constexpr v1::Outcome kFailures[] = {
      v1::OUTCOME_COMPILE_ERROR, v1::OUTCOME_WRONG_RESULT, v1::OUTCOME_CRASHED,
      v1::OUTCOME_TIMED_OUT, v1::OUTCOME_OUT_OF_MEMORY};
  return kFailures[number % std::size(kFailures)];
}

}  // namespace

SimBoard::SimBoard(v1::Hello hello, const BoardHabits& habits, uint64_t seed,
                   const Clock* clock, BoardLink* link, Ledger* ledger)
    : hello_(std::move(hello)),
      habits_(habits),
      clock_(clock),
      link_(link),
      ledger_(ledger),
      random_(seed) {}

bool SimBoard::Boot() {
  CHECK(!up()) << hello_.agent_id() << " runs already";
  SpoolLimits limits;
  limits.slack_bytes = 16 << 10;  // the disk is memory
  auto spool = Spool::Open(std::make_unique<FakeSpoolStorage>(&disk_), limits);
  if (!spool.ok()) return false;
  spool_ = *std::move(spool);
  AgentLoop::Options options;
  options.hello = hello_;
  options.hello.set_instance_id(absl::StrCat("i", ++starts_));
  loop_ = std::make_unique<AgentLoop>(std::move(options), clock_,
                                      Random(random_.Next()), spool_.get());
  work_ticks_ = 0;
  return true;
}

void SimBoard::Kill() {
  if (!up()) return;
  link_->Close();
  loop_.reset();
  spool_.reset();
  running_.clear();
  in_trial_ = false;
  unsettled_.clear();
}

void SimBoard::OnConnected() {
  if (!up()) return;
  loop_->OnConnected();
  Settle();
}

void SimBoard::OnDisconnected(const absl::Status& why) {
  if (!up()) return;
  loop_->OnDisconnected(why);
  Settle();
}

void SimBoard::OnMessage(const v1::TrackerMessage& message) {
  if (!up()) return;
  for (const v1::TrialAck& ack : message.result_ack().acks()) {
    ledger_->Acknowledged(ack);
  }
  loop_->OnMessage(message);
  Settle();
}

void SimBoard::OnWake() {
  if (!up()) return;
  if (in_trial_ && clock_->Steady() >= trial_ends_) FinishTrial();
  loop_->OnTick(work_ticks_);
  Settle();
}

SteadyTime SimBoard::NextWake() const {
  if (!up()) return SteadyTime{INT64_MAX};
  const SteadyTime loop = loop_->NextWake();
  return in_trial_ ? std::min(loop, trial_ends_) : loop;
}

void SimBoard::StartTrial() {
  if (in_trial_) return;
  for (auto it = running_.begin(); it != running_.end(); ++it) {
    // One without a lease waits for the loop to stop it.
    if (!loop_->gate().MayStart(it->assignment.assignment_id())) continue;
    std::rotate(running_.begin(), it, it + 1);
    const Running& front = running_.front();
    const bool whole =
        front.assignment.mode() == v1::ASSIGNMENT_MODE_INTERLEAVE;
    in_trial_ = true;
    trial_began_ = clock_->Steady();
    trial_ends_ =
        trial_began_ + habits_.trial * (0.5 + random_.Unit()) *
                           (whole ? front.assignment.trials_size() : 1);
    ++work_ticks_;
    return;
  }
}

void SimBoard::FinishTrial() {
  in_trial_ = false;
  ++work_ticks_;
  Running& front = running_.front();
  const int count = front.assignment.trials_size();
  const int end = front.assignment.mode() == v1::ASSIGNMENT_MODE_INTERLEAVE
                      ? count
                      : front.next + 1;
  const Running done = front;
  front.next = end;
  if (end == count) running_.pop_front();
  for (int i = done.next; i < end; ++i) Report(done, i);
}

void SimBoard::Report(const Running& running, int trial) {
  v1::TrialResult result =
      ResultOf(running.assignment.trials(trial), running.assignment);
  unsettled_.push_back(result);
  loop_->OnResult(running.assignment.assignment_id(), std::move(result),
                  trial + 1 == running.assignment.trials_size());
}

v1::TrialResult SimBoard::ResultOf(const v1::TrialSpec& spec,
                                   const v1::Assignment& assignment) {
  const uint64_t number = NumberOf(spec.schedule().text());
  v1::TrialResult result;
  *result.mutable_spec() = spec;
  result.set_attempt(assignment.attempt());
  result.set_lease_epoch(assignment.lease_epoch());
  result.set_device_id(assignment.device_id());
  result.set_device_class(spec.device_class());
  result.set_provenance("agent");
  v1::Environment* environment = result.mutable_environment();
  environment->set_agent_version(hello_.agent_version());
  environment->set_compiler_version(spec.compiler_version());
  environment->set_measure_protocol("1");
  environment->set_kernel_release("6.1.0-simulated");
  environment->set_sandbox(hello_.sandbox());
  const int64_t spent_ns =
      absl::ToInt64Nanoseconds(clock_->Steady() - trial_began_);
  result.mutable_phases()->set_build_ns(spent_ns / 4);
  result.mutable_phases()->set_verify_ns(spent_ns / 4);
  result.mutable_phases()->set_time_ns(spent_ns / 2);
  // The default must work: a job without it is paused.
  const bool fails =
      spec.kind() != v1::TRIAL_KIND_DEFAULT &&
      static_cast<double>(number >> 11) * 0x1.0p-53 < habits_.failures;
  if (fails) {
    result.set_outcome(FailureOf(number));
    result.set_detail("as simulated");
    return result;
  }
  result.set_outcome(v1::OUTCOME_OK);
  result.set_binary_hash(Sha256Hex(spec.schedule().text()));
  const int64_t call_ns = 100'000 + static_cast<int64_t>(number % 900'000);
  std::vector<int64_t> times;
  for (int i = 0; i < kBlocks; ++i) {
    v1::Block* block = result.add_blocks();
    block->set_calls(10);
    const double scatter = 0.99 + 0.02 * random_.Unit();
    block->set_elapsed_ns(static_cast<int64_t>(10.0 * call_ns * scatter));
    times.push_back(block->elapsed_ns() / 10);
  }
  std::sort(times.begin(), times.end());
  result.set_time_ns((times[kBlocks / 2 - 1] + times[kBlocks / 2]) / 2);
  result.set_boot_id(hello_.boot_id());
  result.set_timed_start_boot_ns(trial_began_.ns);
  result.set_timed_end_boot_ns(clock_->Steady().ns);
  result.set_timed_cpu_list("0");
  return result;
}

void SimBoard::Settle() {
  for (AgentAction& action : loop_->Settle()) {
    if (auto* send = std::get_if<SendAction>(&action)) {
      link_->Send(std::move(send->message));
    } else if (auto* start = std::get_if<StartAction>(&action)) {
      ledger_->Assigned(start->assignment);
      running_.push_back({std::move(start->assignment), 0});
    } else if (auto* stop = std::get_if<StopAction>(&action)) {
      const auto it = std::find_if(
          running_.begin(), running_.end(), [&](const Running& running) {
            return running.assignment.assignment_id() == stop->assignment_id;
          });
      if (it == running_.end()) continue;
      if (it == running_.begin()) in_trial_ = false;
      running_.erase(it);
    } else if (std::holds_alternative<ConnectAction>(action)) {
      link_->Open();
    } else if (std::holds_alternative<CloseAction>(action)) {
      link_->Close();
    }  // else about builds, which this board has nothing to do with
  }
  // The loop has synced the spool: from here on they may not be lost.
  for (const v1::TrialResult& result : unsettled_) ledger_->Finished(result);
  unsettled_.clear();
  StartTrial();
}

}  // namespace regatta::fleet_sim
