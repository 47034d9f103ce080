#include "tests/server/support/simulated_fleet.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "base/digest.h"
#include "proto/outcome_names.h"

namespace regatta::testing {
namespace {

constexpr int kRounds = 12;
constexpr int kScreeningBlocks = 5;

}  // namespace

void SimulatedFleet::Connect(Listener* listener) {
  listener_ = listener;
  v1::Attached attached;
  for (const auto& [id, work] : held_) attached.add_held_work_ids(id);
  listener_->OnAttached(attached);
  SendFleet();
  std::vector<v1::TrialResult> results;
  for (const auto& [id, result] : spool_) results.push_back(result);
  if (!results.empty()) listener_->OnResults(std::move(results));
  delayed_.clear();
}

void SimulatedFleet::Disconnect(bool tell) {
  if (tell && listener_ != nullptr) listener_->OnDetached();
  listener_ = nullptr;
}

void SimulatedFleet::Reattach() {
  if (listener_ == nullptr) return;
  Listener* const listener = listener_;
  ++reattached_;
  Disconnect(/*tell=*/true);
  Connect(listener);
}

void SimulatedFleet::SendFleet() {
  v1::FleetChange change;
  change.set_snapshot(v1::SNAPSHOT_PART_WHOLE);
  for (const SimulatedBoard& board : boards_) {
    v1::DeviceStatus* status = change.add_devices();
    v1::DeviceInfo* info = status->mutable_info();
    info->set_device_id(board.id);
    info->set_device_class(board.device_class);
    info->set_target(board.target);
    info->set_cores(board.cores);
    info->set_simulated(board.simulated);
    info->set_credit(board.credit);
    info->set_health(board.health);
    info->set_peak_flops_per_s(1e11);
    info->set_bandwidth_bytes_per_s(2e10);
    info->set_has_noise_floor(true);
    info->set_noise_floor(board.noise_floor);
    info->set_memory_bytes(board.memory_bytes);
    status->set_presence(board.presence);
    status->set_state(board.presence != v1::PRESENCE_ONLINE        ? "lost"
                      : absl::StartsWith(board.health, "draining") ? "draining"
                                                                   : "idle");
    if (absl::StartsWith(board.health, "draining")) {
      status->set_obstacle(board.health);
    }
    status->set_compiler_version(board.compiler);
  }
  if (listener_ != nullptr) listener_->OnFleetChange(change);
}

v1::TrialResult SimulatedFleet::Measure(const v1::TrialSpec& spec,
                                        bool interleaved,
                                        const SimulatedBoard& board,
                                        uint64_t session) {
  v1::TrialResult result;
  *result.mutable_spec() = spec;
  const Measurement measured = options_.measure(spec);
  result.set_outcome(measured.outcome);
  result.set_detail(measured.detail);
  result.set_device_id(board.id);
  result.set_device_class(board.device_class);
  result.set_boot_id("boot");
  result.set_attempt(1);
  result.set_provenance("agent");
  result.mutable_environment()->set_compiler_version(board.compiler);
  result.mutable_environment()->set_measure_protocol("1");
  result.mutable_phases()->set_build_ns(20'000'000);
  result.mutable_phases()->set_wait_ns(1'000'000);
  result.mutable_phases()->set_verify_ns(2'000'000);
  result.set_binary_hash(measured.binary_hash.empty()
                             ? Sha256Hex(spec.schedule().text())
                             : measured.binary_hash);
  if (measured.outcome != v1::OUTCOME_OK) return result;
  result.mutable_phases()->set_time_ns(50'000'000);
  result.set_abandoned(!interleaved && spec.incumbent_ns() > 0 &&
                       measured.time_ns > 3 * spec.incumbent_ns());
  // Rounds of one session share a disturbance, which pairing takes out.
  Random shared(session);
  std::vector<int64_t> times;
  const int blocks = interleaved ? kRounds : kScreeningBlocks;
  for (int i = 0; i < blocks; ++i) {
    const double round = 1 + 0.05 * shared.Unit();
    const double own = 1 + options_.noise * (random_.Unit() - 0.5);
    v1::Block* block = result.add_blocks();
    block->set_calls(10);
    block->set_elapsed_ns(
        static_cast<int64_t>(measured.time_ns * 10 * round * own));
    times.push_back(block->elapsed_ns() / 10);
  }
  std::nth_element(times.begin(), times.begin() + blocks / 2, times.end());
  result.set_time_ns(times[blocks / 2]);
  return result;
}

bool SimulatedFleet::WorkOne() {
  if (held_.empty()) return false;
  auto chosen = held_.begin();
  std::advance(chosen, random_.Below(held_.size()));
  const v1::Work work = chosen->second;
  std::vector<const SimulatedBoard*> fit;
  for (const SimulatedBoard& board : boards_) {
    if (board.device_class == work.device_class() &&
        board.compiler == work.compiler_version() &&
        board.presence == v1::PRESENCE_ONLINE) {
      fit.push_back(&board);
    }
  }
  if (fit.empty()) return false;
  const SimulatedBoard& board = *fit[random_.Below(fit.size())];
  held_.erase(chosen);
  clock_->Advance(absl::Milliseconds(100));
  const bool lost = random_.Unit() < options_.lose;
  const uint64_t session = random_.Next();
  for (const v1::TrialSpec& spec : work.trials()) {
    v1::TrialResult result;
    if (lost) {
      *result.mutable_spec() = spec;
      result.set_outcome(v1::OUTCOME_AGENT_LOST);
      result.set_detail("the agent was lost three times");
    } else {
      result = Measure(spec, work.mode() == v1::ASSIGNMENT_MODE_INTERLEAVE,
                       board, session);
    }
    Spool(std::move(result), /*may_delay=*/true);
  }
  return true;
}

void SimulatedFleet::Spool(v1::TrialResult result, bool may_delay) {
  spool_[result.spec().trial_id()] = result;
  reported_.insert(result.spec().trial_id());
  if (listener_ == nullptr) return;
  if (may_delay && random_.Unit() < options_.delay) {
    delayed_.push_back(std::move(result));
    return;
  }
  listener_->OnResults({result});
  if (random_.Unit() < options_.repeat) listener_->OnResults({result});
}

void SimulatedFleet::Deliver(const v1::TrialResult& result) {
  spool_[result.spec().trial_id()] = result;
  listener_->OnResults({result});
}

void SimulatedFleet::Flush() {
  if (listener_ == nullptr) return;
  for (v1::TrialResult& result : delayed_) listener_->OnResults({result});
  delayed_.clear();
}

void SimulatedFleet::Submit(std::vector<v1::Work> work) {
  if (listener_ == nullptr) return;
  for (v1::Work& item : work) {
    const bool fresh = known_.insert(item.work_id()).second;
    // Work whose results are there, acknowledged or not, is not run again.
    const bool answered = reported_.count(item.work_id()) > 0;
    if (fresh) submitted_.push_back(item);
    if (fresh || !answered) held_.try_emplace(item.work_id(), item);
  }
}

void SimulatedFleet::CancelWork(const v1::CancelWork& cancel) {
  cancels_.push_back(cancel);
  const auto named = [&](const v1::Work& work) {
    const auto& ids = cancel.work_ids();
    return work.job_id() == cancel.job_id() &&
           (ids.empty() ||
            std::find(ids.begin(), ids.end(), work.work_id()) != ids.end());
  };
  for (auto it = held_.begin(); it != held_.end();) {
    if (!named(it->second)) {
      ++it;
      continue;
    }
    const v1::Work work = it->second;
    it = held_.erase(it);
    for (const v1::TrialSpec& spec : work.trials()) {
      v1::TrialResult result;
      *result.mutable_spec() = spec;
      result.set_outcome(v1::OUTCOME_CANCELLED);
      result.set_detail("cancelled");
      Spool(std::move(result), /*may_delay=*/false);
    }
  }
}

void SimulatedFleet::Acknowledge(const v1::CommitAck& ack) {
  if (listener_ == nullptr) return;
  for (const v1::TrialAck& one : ack.acks()) {
    acks_.push_back(one);
    spool_.erase(one.trial_id());
  }
}

}  // namespace regatta::testing
