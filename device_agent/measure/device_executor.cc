#include "device_agent/measure/device_executor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "device_agent/measure/board_facts.h"
#include "device_agent/probe/clock_control.h"
#include "device_agent/probe/machine.h"

namespace regatta {

std::string WhyTooManyThreads(int threads, int cores,
                              const std::string& device_id) {
  if (threads > cores) {
    return absl::StrCat("threads: ", threads, " of ", cores,
                        " cores of device ", device_id);
  }
  if (threads > TrialTimer::kMaxThreads) {
    return absl::StrCat("threads: ", threads, "; one run has at most ",
                        TrialTimer::kMaxThreads);
  }
  return "";
}

DeviceExecutor::DeviceExecutor(ServedDevice device, CorePlan plan,
                               std::vector<BuilderPlan> builders,
                               TrialTimerOptions timer, BoardWatch watch,
                               ExecutorShared shared,
                               std::shared_ptr<SpawnerClient> spawner)
    : device_(std::move(device.info)),
      plan_(plan),
      watch_(std::move(watch)),
      cores_(device.needs.all_cores ? 1 : static_cast<int>(plan.cpus.size())),
      shared_(std::move(shared)),
      boot_id_(ReadBootId("")),
      environment_(
          BoardEnvironment(SandboxOf(device.needs, *spawner), device_)),
      timer_(std::move(timer), plan, spawner, shared_.cores, shared_.clock) {
  if (watch_.time_reference != nullptr) {
    MeasuringSession::Parts parts;
    parts.board =
        absl::StrCat(device_.device_id(), "/", RandomId().substr(0, 8));
    parts.clock = shared_.clock;
    parts.time_reference = [this](bool alone) { return TimeReference(alone); };
    parts.pause = [this](absl::Duration wait) { Pause(wait); };
    session_ = std::make_unique<MeasuringSession>(std::move(parts));
  }
  for (const std::string& absent : timer_.absent_sensors()) {
    LOG(kInfo) << "device " << device_.device_id() << " has no sensor "
               << absent;
  }
  for (BuilderPlan& builder : builders) {
    builders_.push_back(std::make_unique<Builder>(
        std::move(builder.options), std::move(builder.worker), spawner,
        shared_.cores, shared_.modules, shared_.references, shared_.clock));
  }
  for (const std::unique_ptr<Builder>& builder : builders_) {
    threads_.emplace_back(&DeviceExecutor::BuildLoop, this, builder.get());
  }
  threads_.emplace_back(&DeviceExecutor::TimeLoop, this);
}

DeviceExecutor::~DeviceExecutor() {
  std::deque<std::shared_ptr<Batch>> batches;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
    batches.swap(batches_);
    changed_.notify_all();
  }
  for (const std::shared_ptr<Batch>& batch : batches) batch->Stop();
  for (const std::unique_ptr<Builder>& builder : builders_) builder->Abort();
  for (std::thread& thread : threads_) thread.join();
}

void DeviceExecutor::Update(const v1::DeviceInfo& device) {
  timer_.SetProbed(device);
  if (session_ == nullptr) return;
  session_->SetNoiseFloor(device.has_noise_floor()
                              ? std::optional<double>(device.noise_floor())
                              : std::nullopt);
}

void DeviceExecutor::Add(std::shared_ptr<Batch> batch) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::string uncontrolled =
      UncontrolledClocks(watch_.root, plan_.cpus, watch_.clocks);
  const std::string governor = ReadGovernor(watch_.root, plan_.cpus.back());
  for (size_t i = 0; i < batch->trials().size(); ++i) {
    v1::TrialResult& result = batch->trials()[i].result;
    result = NewResult(*batch, i);
    result.mutable_environment()->set_uncontrolled(uncontrolled);
    result.mutable_environment()->set_governor(governor);
  }
  batches_.push_back(std::move(batch));
  changed_.notify_all();
}

void DeviceExecutor::Remove(const std::shared_ptr<Batch>& batch) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find(batches_.begin(), batches_.end(), batch);
  if (found != batches_.end()) batches_.erase(found);
  changed_.notify_all();
}

v1::TrialResult DeviceExecutor::NewResult(const Batch& batch,
                                          size_t index) const {
  v1::TrialResult result;
  const v1::Assignment& assignment = batch.assignment();
  *result.mutable_spec() = assignment.trials(static_cast<int>(index));
  *result.mutable_environment() = environment_;
  result.set_device_id(device_.device_id());
  result.set_device_class(device_.device_class());
  result.set_boot_id(boot_id_);
  result.set_attempt(assignment.attempt());
  result.set_lease_epoch(assignment.lease_epoch());
  result.set_provenance("agent");
  return result;
}

bool DeviceExecutor::MayStart(const Batch& batch) const {
  return !batch.Stopped() && shared_.may_start(batch.id());
}

bool DeviceExecutor::FindToBuild(Place* place) {
  int ahead = 0;
  for (const std::shared_ptr<Batch>& batch : batches_) {
    // Interleaved trials wait for one another, so the bound may not split them.
    bool bounded = !batch->interleaved();
    for (size_t i = 0; i < batch->trials().size(); ++i) {
      const Batch::State state = batch->trials()[i].state;
      if (state == Batch::State::kBuilding || state == Batch::State::kBuilt) {
        ++ahead;
      } else if (state == Batch::State::kWaiting) {
        if (bounded && ahead >= kBuildAhead) return false;
        if (!MayStart(*batch)) break;
        *place = {batch, i};
        return true;
      }
    }
  }
  return false;
}

std::shared_ptr<Batch> DeviceExecutor::FindToTime(
    std::vector<size_t>* indices) {
  for (const std::shared_ptr<Batch>& batch : batches_) {
    std::vector<size_t> built;
    bool all_built = true;
    for (size_t i = 0; i < batch->trials().size(); ++i) {
      const Batch::State state = batch->trials()[i].state;
      if (state == Batch::State::kBuilt) built.push_back(i);
      all_built &=
          state == Batch::State::kBuilt || state == Batch::State::kDone;
    }
    if (built.empty() || (batch->interleaved() && !all_built)) continue;
    if (!MayStart(*batch)) continue;
    if (!batch->interleaved()) built.resize(1);
    *indices = std::move(built);
    return batch;
  }
  return nullptr;
}

DeviceExecutor::Place DeviceExecutor::TakeToBuild() {
  std::unique_lock<std::mutex> lock(mutex_);
  Place place;
  changed_.wait(lock, [&] { return ending_ || FindToBuild(&place); });
  if (ending_) return {};
  place.batch->trials()[place.index].state = Batch::State::kBuilding;
  return place;
}

bool DeviceExecutor::NothingToCome() const {
  for (const std::shared_ptr<Batch>& batch : batches_) {
    const bool done =
        std::all_of(batch->trials().begin(), batch->trials().end(),
                    [](const Batch::Trial& trial) {
                      return trial.state == Batch::State::kTiming ||
                             trial.state == Batch::State::kDone;
                    });
    if (!done && MayStart(*batch)) return false;
  }
  return true;
}

std::shared_ptr<Batch> DeviceExecutor::TakeToTime(
    std::vector<size_t>* indices) {
  std::unique_lock<std::mutex> lock(mutex_);
  std::shared_ptr<Batch> batch;
  const auto ready = [&] {
    if (ending_) return true;
    batch = FindToTime(indices);
    return batch != nullptr || (!waiting_.empty() && NothingToCome());
  };
  if (waiting_.empty()) {
    changed_.wait(lock, ready);
  } else {
    const SteadyTime due = session_->due().value_or(shared_.clock->Steady());
    changed_.wait_for(
        lock, absl::ToChronoNanoseconds(due - shared_.clock->Steady()), ready);
  }
  if (ending_ || batch == nullptr) return nullptr;
  for (size_t i : *indices) batch->trials()[i].state = Batch::State::kTiming;
  // There may be room to build ahead again.
  changed_.notify_all();
  return batch;
}

Built DeviceExecutor::Build(const Batch& batch, const v1::TrialSpec& spec,
                            Builder* builder) const {
  std::string why =
      WhyTooManyThreads(spec.policy().threads(), cores_, device_.device_id());
  if (why.empty()) {
    return builder->Build(spec, [&] { return ending_ || batch.Stopped(); });
  }
  Built refused;
  refused.failure = {v1::OUTCOME_REFUSED, std::move(why)};
  return refused;
}

void DeviceExecutor::BuildLoop(Builder* builder) {
  for (Place place = TakeToBuild(); place.batch != nullptr;
       place = TakeToBuild()) {
    Batch::Trial& trial = place.batch->trials()[place.index];
    const v1::TrialSpec& spec =
        place.batch->assignment().trials(static_cast<int>(place.index));
    trial.built = Build(*place.batch, spec, builder);
    place.batch->Tick();
    v1::TrialResult& result = trial.result;
    result.mutable_environment()->set_compiler_version(
        trial.built.compiler_version);
    result.mutable_phases()->set_build_ns(trial.built.build_ns);
    if (trial.built.code != nullptr) {
      result.set_binary_hash(trial.built.code->info.binary_hash());
      result.mutable_environment()->set_builder(trial.built.code->builder);
    }
    if (trial.built.failure.has_value()) {
      result.set_outcome(trial.built.failure->outcome);
      result.set_detail(trial.built.failure->detail);
      Finish(place.batch, place.index);
      continue;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    trial.built_at = shared_.clock->Steady();
    trial.state = Batch::State::kBuilt;
    changed_.notify_all();
  }
}

void DeviceExecutor::TimeLoop() {
  while (!ending_) {
    std::vector<size_t> indices;
    if (const std::shared_ptr<Batch> batch = TakeToTime(&indices)) {
      Time(batch, indices);
      if (session_ == nullptr || !session_->Due()) continue;
    }
    ProveWaiting();
  }
}

void DeviceExecutor::Time(const std::shared_ptr<Batch>& batch,
                          const std::vector<size_t>& indices) {
  if (session_ != nullptr) {
    session_->Begin();
    // It drifted while nothing was timed.
    if (session_->closed() != measuring_.sessions_closed) TellMeasuring();
  }
  std::vector<ReadyTrial> ready;
  for (size_t i : indices) {
    Batch::Trial& trial = batch->trials()[i];
    const absl::Duration waited = shared_.clock->Steady() - trial.built_at;
    trial.result.mutable_phases()->set_wait_ns(
        absl::ToInt64Nanoseconds(waited));
    ready.push_back({&batch->assignment().trials(static_cast<int>(i)),
                     &trial.built, &trial.result, batch->id()});
  }
  if (batch->interleaved()) {
    timer_.TimeInterleaved(ready, *batch);
  } else {
    timer_.TimeAlone(ready[0], *batch);
  }
  const int64_t discarded_before = measuring_.throttled_blocks;
  for (size_t i : indices) {
    for (const v1::Block& block : batch->trials()[i].result.blocks()) {
      measuring_.throttled_blocks += block.throttled() ? 1 : 0;
    }
  }
  if (measuring_.throttled_blocks > discarded_before) TellMeasuring();
  for (size_t i : indices) {
    v1::TrialResult& result = batch->trials()[i].result;
    if (!NeedsProof(result)) {
      Finish(batch, i);
      continue;
    }
    result.mutable_environment()->set_session(session_->id());
    result.mutable_environment()->set_session_reference_ns(
        session_->reference_ns());
    waiting_.push_back({batch, i});
    session_->Timed();
  }
}

bool DeviceExecutor::NeedsProof(const v1::TrialResult& result) const {
  if (session_ == nullptr || session_->id().empty()) return false;
  // What is a duplicate of a time that may not hold waits with it.
  return result.outcome() == v1::OUTCOME_OK ||
         result.outcome() == v1::OUTCOME_IMPLAUSIBLE ||
         (result.outcome() == v1::OUTCOME_DUPLICATE_BINARY &&
          !waiting_.empty());
}

void DeviceExecutor::ProveWaiting() {
  if (waiting_.empty()) return;
  const std::string drift = session_->Prove();
  for (const Place& place : waiting_) {
    if (drift.empty()) break;
    Batch::Trial& trial = place.batch->trials()[place.index];
    const int at = static_cast<int>(place.index);
    timer_.Forget({&place.batch->assignment().trials(at), &trial.built,
                   &trial.result, place.batch->id()});
    trial.result.set_outcome(v1::OUTCOME_THROTTLED);
    trial.result.set_detail(drift);
    trial.result.set_abandoned(false);
    trial.result.clear_time_ns();
    for (v1::Block& block : *trial.result.mutable_blocks()) {
      measuring_.throttled_blocks += block.throttled() ? 0 : 1;
      block.set_throttled(true);
    }
  }
  if (!drift.empty()) {
    LOG(kWarning) << "device " << device_.device_id() << ": " << drift << "; "
                  << waiting_.size() << " results do not hold";
    TellMeasuring();
  }
  for (const Place& place : std::exchange(waiting_, {})) {
    Finish(place.batch, place.index);
  }
}

void DeviceExecutor::TellMeasuring() {
  if (session_ != nullptr) {
    measuring_.sessions_closed = session_->closed();
    measuring_.last_drift = session_->last_drift();
  }
  if (watch_.on_measuring != nullptr) {
    watch_.on_measuring(device_.device_id(), measuring_);
  }
}

std::optional<double> DeviceExecutor::TimeReference(bool alone) {
  const absl::StatusOr<CoreLocks::Held> cores = shared_.cores->Take(
      alone ? plan_.cpus : plan_.TimingCpus(1), CoreLocks::Use::kTiming,
      [this] { return ending_.load(); });
  return cores.ok() ? watch_.time_reference() : std::nullopt;
}

void DeviceExecutor::Pause(absl::Duration wait) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoNanoseconds(wait),
                    [this] { return ending_.load(); });
}

void DeviceExecutor::Finish(const std::shared_ptr<Batch>& batch, size_t index) {
  // Before it counts as done: who ends the batch meanwhile (EndIfIdle) would
  // throw the result away.
  batch->Deliver(index);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Batch::Trial& trial = batch->trials()[index];
    trial.state = Batch::State::kDone;
    trial.built = Built();  // gives its memory files back
    const bool all_done = std::all_of(
        batch->trials().begin(), batch->trials().end(),
        [](const Batch::Trial& t) { return t.state == Batch::State::kDone; });
    const auto found = std::find(batches_.begin(), batches_.end(), batch);
    if (all_done && found != batches_.end()) batches_.erase(found);
    changed_.notify_all();
  }
  EndIfIdle(batch);
}

void DeviceExecutor::FinishTimed(const std::shared_ptr<Batch>& batch,
                                 std::function<void()> idle) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    batch->set_idle(std::move(idle));
    changed_.notify_all();  // what waits for proof need not wait for more
  }
  EndIfIdle(batch);
}

void DeviceExecutor::EndIfIdle(const std::shared_ptr<Batch>& batch) {
  std::function<void()> idle;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (std::any_of(batch->trials().begin(), batch->trials().end(),
                    [](const Batch::Trial& trial) {
                      return trial.state == Batch::State::kTiming;
                    })) {
      return;
    }
    idle = batch->take_idle();
  }
  if (idle == nullptr || batch->Stopped()) return;
  batch->Stop();  // ends its builds
  Remove(batch);
  idle();
}

}  // namespace regatta
