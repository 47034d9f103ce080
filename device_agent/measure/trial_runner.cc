#include "device_agent/measure/trial_runner.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "device_agent/measure/device_executor.h"
#include "device_agent/measure/host_reference.h"
#include "device_agent/probe/machine.h"
#include "device_agent/spawner/cpu_list.h"

namespace regatta {
namespace {

class LocalTrialRunner : public TrialRunner {
 public:
  LocalTrialRunner(ResultCallback on_result, ExecutorShared shared,
                   std::string references, CoreLocks cores)
      : on_result_(std::move(on_result)),
        cores_(std::move(cores)),
        references_(std::move(references)),
        shared_(std::move(shared)) {
    shared_.cores = &cores_;
    shared_.modules = &modules_;
    shared_.references = &references_;
    shared_.clock = &RealClock();
  }

  // Once per device, before the first Start.
  void AddDevice(const ServedDevice& device, CorePlan plan,
                 std::vector<BuilderPlan> builders, TrialTimerOptions timer,
                 BoardWatch watch, std::shared_ptr<SpawnerClient> spawner) {
    devices_[device.info.device_id()] = std::make_unique<DeviceExecutor>(
        device, std::move(plan), std::move(builders), std::move(timer),
        std::move(watch), shared_, std::move(spawner));
  }

  void Start(v1::Assignment assignment) override {
    const auto device = devices_.find(assignment.device_id());
    CHECK(device != devices_.end())
        << "assignment " << assignment.assignment_id() << " for device "
        << assignment.device_id();
    DeviceExecutor* executor = device->second.get();
    auto batch =
        std::make_shared<Batch>(std::move(assignment), on_result_, &ticks_);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      // What was finished is only looked for here and in Stop.
      std::erase_if(batches_, [](const auto& entry) {
        return entry.second.batch.expired();
      });
      batches_[batch->id()] = {batch, executor};
    }
    executor->Add(std::move(batch));
  }

  void Stop(const std::string& assignment_id) override {
    std::shared_ptr<Batch> batch;
    DeviceExecutor* executor = nullptr;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto found = batches_.find(assignment_id);
      if (found == batches_.end()) return;
      batch = found->second.batch.lock();
      executor = found->second.executor;
      batches_.erase(found);
    }
    if (batch == nullptr) return;
    batch->Stop();
    executor->Remove(batch);
  }

  void Finish(const std::string& assignment_id,
              std::function<void()> idle) override {
    std::shared_ptr<Batch> batch;
    DeviceExecutor* executor = nullptr;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto found = batches_.find(assignment_id);
      if (found != batches_.end()) {
        batch = found->second.batch.lock();
        executor = found->second.executor;
      }
    }
    if (batch == nullptr) return idle();
    executor->FinishTimed(batch, std::move(idle));
  }

  void UpdateDevice(const v1::DeviceInfo& device) override {
    const auto known = devices_.find(device.device_id());
    CHECK(known != devices_.end()) << "unknown device " << device.device_id();
    known->second->Update(device);
  }

  int64_t WorkTicks() const override { return ticks_.load(); }

 private:
  struct Running {
    std::weak_ptr<Batch> batch;
    DeviceExecutor* executor;
  };

  const ResultCallback on_result_;
  const CoreLocks cores_;
  ModuleCache modules_;
  ReferenceStore references_;
  ExecutorShared shared_;
  std::atomic<int64_t> ticks_ = 0;
  std::mutex mutex_;
  std::map<std::string, Running> batches_;
  // Last, so that its threads end before what they use.
  std::map<std::string, std::unique_ptr<DeviceExecutor>> devices_;
};

absl::StatusOr<std::string> WorkerProgram(const std::string& folder,
                                          const std::string& name) {
  const std::string path = absl::StrCat(folder, "/", name);
  if (access(path.c_str(), X_OK) != 0) {
    return absl::NotFoundError(
        absl::StrCat("worker program ", path, " is not there"));
  }
  return path;
}

absl::StatusOr<CorePlan> PlanOf(const v1::DeviceInfo& device) {
  absl::StatusOr<std::vector<int>> cpus = ParseCpuList(device.cpu_list());
  if (!cpus.ok()) {
    return Annotate(cpus.status(), "device " + device.device_id());
  }
  return CorePlan(cpus->empty() ? AllowedCpus() : *std::move(cpus));
}

// The spawner tried the change of user when it started. Said here, once, rather
// than by every trial.
absl::Status CheckUsers(const SpawnerClient& spawner) {
  const std::vector<std::string>& features = spawner.sandbox();
  if (geteuid() != 0 ||
      std::find(features.begin(), features.end(), "uid") != features.end()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "running as root, but candidates never run as root and users 65533 and "
      "65534 are not there to change to: start as another user (in a "
      "container: --user 1000), or give the container at least 65536 user ids "
      "and the capabilities SETUID and SETGID");
}

// What candidates on a device are run under is less where a driver runs them.
absl::Status CheckDriver(const ServedDevice& device,
                         const std::vector<std::string>& required) {
  if (!device.needs.driver || std::find(required.begin(), required.end(),
                                        kTightFeature) == required.end()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "device ", device.info.device_id(), " (", device.info.device_class(),
      ") cannot be served under the sandbox feature \"", kTightFeature,
      "\": its driver needs files and processes; do without the device or the "
      "feature"));
}

// A reference of the host's processors says nothing of a driver's device, nor
// of what an emulator plays.
BoardWatch WatchOf(const RunnerOptions& options, const ServedDevice& device,
                   const CorePlan& plan) {
  BoardWatch watch;
  watch.root = options.root;
  watch.clocks = options.clocks;
  watch.on_measuring = options.on_measuring;
  if (options.time_reference != nullptr) {
    watch.time_reference = options.time_reference;
  } else if (device.on_host() && !device.counted && !device.info.simulated() &&
             options.exec_prefix.empty()) {
    watch.time_reference =
        [reference = std::make_shared<HostReference>(plan.cpus.back())] {
          return reference->Time();
        };
  }
  return watch;
}

// What a worker gets of a machine with `machine` bytes; 0: not known.
int64_t MemoryLimit(int64_t wanted, int64_t machine) {
  return machine > 0 ? std::min(wanted, machine / 2) : wanted;
}

}  // namespace

absl::StatusOr<BuildWorkerOptions> BuildWorkerOf(const RunnerOptions& options) {
  BuildWorkerOptions build;
  ASSIGN_OR_RETURN(build.program,
                   WorkerProgram(options.worker_dir, options.build_worker));
  build.exec_prefix = options.exec_prefix;
  build.limit_ms = options.build_limit_ms;
  build.memory_bytes =
      MemoryLimit(build.memory_bytes, MachineMemoryBytes(options.root));
  return build;
}

absl::StatusOr<std::unique_ptr<TrialRunner>> CreateTrialRunner(
    RunnerOptions options, std::shared_ptr<SpawnerClient> spawner,
    TrialRunner::ResultCallback on_result) {
  RETURN_IF_ERROR(spawner->Require(options.required_sandbox));
  RETURN_IF_ERROR(CheckUsers(*spawner));
  BuildWorkerOptions build;
  RunWorkerOptions run;
  if (options.builders == nullptr) {
    ASSIGN_OR_RETURN(build, BuildWorkerOf(options));
  }
  ASSIGN_OR_RETURN(run.program,
                   WorkerProgram(options.worker_dir, "regatta-run-worker"));
  run.exec_prefix = options.exec_prefix;
  const int64_t machine_bytes = MachineMemoryBytes(options.root);
  run.memory_bytes = MemoryLimit(options.run_memory_bytes, machine_bytes);
  run.wall_limit_ms = options.run_limit_ms;

  std::vector<std::pair<ServedDevice, CorePlan>> devices;
  std::set<int> cpus;
  for (const ServedDevice& device : options.devices) {
    RETURN_IF_ERROR(CheckDriver(device, options.required_sandbox));
    ASSIGN_OR_RETURN(CorePlan plan, PlanOf(device.info));
    cpus.insert(plan.cpus.begin(), plan.cpus.end());
    devices.emplace_back(device, std::move(plan));
  }
  CoreLocks cores(options.lock_folder.empty() ? DefaultLockFolder()
                                              : options.lock_folder);
  RETURN_IF_ERROR(cores.Check(std::vector<int>(cpus.begin(), cpus.end())));
  ExecutorShared shared;
  shared.may_start = options.may_start != nullptr
                         ? options.may_start
                         : [](const std::string&) { return true; };
  auto runner = std::make_unique<LocalTrialRunner>(
      std::move(on_result), std::move(shared),
      options.state_dir.empty() ? "" : options.state_dir + "/references",
      std::move(cores));
  for (auto& [device, plan] : devices) {
    std::vector<BuilderPlan> builders;
    // Source for a driver's compiler is made in no time.
    const int count = device.on_host() ? plan.builders() : 1;
    for (int i = 0; i < count; ++i) {
      BuilderOptions builder;
      builder.host = options.host;
      builder.host.set_cores(static_cast<int>(plan.cpus.size()));
      builder.device = builder.host;
      if (!device.on_host()) *builder.device.mutable_device() = device.board;
      builder.cpu = plan.BuildCpu(i);
      builder.run_worker = run;
      builder.machine_bytes = machine_bytes;
      build.cpu_list = builder.run_worker.cpu_list =
          FormatCpuList({plan.BuildCpu(i)});
      std::unique_ptr<BuildWorker> worker =
          options.builders != nullptr
              ? options.builders()
              : std::make_unique<BuildClient>(build, spawner);
      builders.push_back({std::move(builder), std::move(worker)});
    }
    TrialTimerOptions timer;
    timer.device = device;
    timer.run_worker = run;
    timer.run_limit_ms = options.run_limit_ms;
    timer.root = options.root;
    timer.on_window = [tell = options.on_window,
                       id = device.info.device_id()](absl::Duration longest) {
      if (tell != nullptr) tell(id, longest);
    };
    runner->AddDevice(device, plan, std::move(builders), std::move(timer),
                      WatchOf(options, device, plan), spawner);
  }
  return runner;
}

}  // namespace regatta
