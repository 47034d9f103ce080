#include "device_agent/agent_process.h"

#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics/process_metrics.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/stop_signals.h"
#include "device_agent/agent_flags.h"
#include "device_agent/agent_metrics.h"
#include "device_agent/devices/device_probes.h"
#include "device_agent/devices/provider_list.h"
#include "device_agent/loop/agent_runtime.h"
#include "device_agent/loop/agent_stats.h"
#include "device_agent/loop/late_runner.h"
#include "device_agent/loop/spool.h"
#include "device_agent/measure/core_locks.h"
#include "device_agent/measure/trial_runner.h"
#include "device_agent/probe/machine.h"
#include "device_agent/remote/builder_key.h"
#include "device_agent/remote/description_watch.h"
#include "device_agent/remote/order_builder.h"
#include "device_agent/remote/order_desk.h"
#include "device_agent/remote/remote_build_worker.h"
#include "device_agent/spawned_workers.h"
#include "device_agent/spawner/cpu_list.h"
#include "device_agent/spawner/spawner_client.h"
#include "device_agent/tracker_client.h"

namespace regatta {
namespace {

// An agent that was told to stop is gone after this, whatever it waits for; its
// workers die with it.
constexpr absl::Duration kStopLimit = absl::Milliseconds(1800);
// The first signal lets what runs end; it may take so long.
constexpr absl::Duration kDrainLimit = absl::Seconds(60);

// After a failure to have the board described.
constexpr absl::Duration kDescribeAgain = absl::Seconds(5);

constexpr int kAgentNice = -5;

absl::StatusOr<std::unique_ptr<Spool>> OpenSpool(const std::string& state) {
  ASSIGN_OR_RETURN(std::unique_ptr<SpoolStorage> storage,
                   OpenSpoolFile(state + "/results.spool"));
  return Spool::Open(std::move(storage), SpoolLimits{});
}

// The process ends in time even if something below hangs.
void EndWithin(absl::Duration limit, int code) {
  std::thread([limit, code] {
    const timespec wait = absl::ToTimespec(limit);
    nanosleep(&wait, nullptr);
    _exit(code);
  }).detach();
}

uint64_t RandomSeed() {
  uint64_t seed = 0;
  const std::string random = RandomId();
  std::memcpy(&seed, random.data(), sizeof(seed));
  return seed;
}

class AgentProcess {
 public:
  AgentProcess(AgentFlags flags, const AgentSecurityFlags& security)
      : flags_(std::move(flags)), security_(security) {}

  absl::Status Serve();

 private:
  // Flags, spawner, signals; who builds.
  absl::Status Begin();
  // What the tracker is told first, but for devices.
  absl::Status MakeGreeting();
  // Session with the tracker.
  absl::Status StartRuntime();
  absl::Status OfferBuilds();
  absl::Status CheckRunWorkers();
  // Finds the devices and makes what measures on them.
  absl::Status FindBoardDevices();
  absl::Status ServeDevices();
  void Announce() const;
  // Waits for SIGTERM or Ctrl-C, then lets the runtime drain until it has
  // nothing left to wait for, a second signal or kDrainLimit. Unavailable when
  // the spawner died meanwhile, or builders describe a device as another one.
  absl::Status AwaitStop();
  bool Ending() const { return stopping_ || StopAsked() || !spawner_->alive(); }

  AgentFlags flags_;
  const AgentSecurityFlags security_;
  std::shared_ptr<TlsIdentity> tls_;  // nullptr: plain text
  std::unique_ptr<CredentialKeeper> keeper_;
  AgentRoles roles_;
  std::atomic<bool> stopping_ = false;
  bool measure_only_ = false;
  std::vector<std::string> trusted_;
  Providers providers_;
  std::vector<int> cpus_;
  std::shared_ptr<SpawnerClient> spawner_;
  RunnerOptions runner_options_;
  v1::Hello hello_;
  DeviceProbes::Options probes_;
  std::unique_ptr<BuildWorkerInfo> build_info_;
  std::unique_ptr<SpawnedRunWorkers> run_info_;
  std::unique_ptr<CoreLocks> build_locks_;
  std::unique_ptr<SigningKey> key_;
  AgentStats stats_{&RealClock()};
  std::unique_ptr<TrackerClient> connection_;
  std::unique_ptr<MeteredConnection> metered_;
  LateRunner late_runner_;
  // In the order in which they end: the last first, but see Serve.
  std::unique_ptr<AgentRuntime> runtime_;
  std::unique_ptr<OrderDesk> desk_;
  std::unique_ptr<OrderBuilder> order_builder_;
  std::unique_ptr<TrialRunner> runner_;
  // Timing threads tell it how measuring goes, from before it is there.
  std::mutex probing_mutex_;
  std::unique_ptr<DeviceProbes> probing_;
  std::unique_ptr<DescriptionWatch> watch_;
  std::unique_ptr<MetricsEndpoint> metrics_;
};

absl::Status AgentProcess::Begin() {
  RETURN_IF_ERROR(CheckMetrics(security_.metrics));
  RETURN_IF_ERROR(CompleteFlags(&flags_));
  RETURN_IF_ERROR(MakeStateDir(flags_.state));
  ASSIGN_OR_RETURN(AgentPlan plan, PlanAgent(flags_));
  roles_ = plan.roles;
  providers_ = std::move(plan.providers);
  cpus_ = std::move(plan.cpus);
  trusted_ = std::move(plan.trusted);
  runner_options_ = std::move(plan.runner);
  measure_only_ = plan.measure_only;
  probes_.board.emulator = std::move(plan.emulator);
  // Before any thread and any gRPC: nothing but the spawner forks. What needs
  // an emulator here needs one there.
  ASSIGN_OR_RETURN(
      spawner_, SpawnerClient::Start(flags_.worker_dir + "/regatta-spawner", {},
                                     probes_.board.emulator.empty()
                                         ? std::vector<std::string>()
                                         : runner_options_.exec_prefix));
  // Before any thread, which inherit it. Where control groups do not see to it
  // that heartbeats go on while a candidate uses all cores.
  if (spawner_->Require({"nice"}).ok()) {
    const bool raised = setpriority(PRIO_PROCESS, 0, kAgentNice) == 0;
    LOG(kInfo) << "no control group for a weight of this agent's own; its nice "
               << (raised ? absl::StrCat("is ", kAgentNice) : "stays");
  }
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  // With a token this is the first use of gRPC.
  ASSIGN_OR_RETURN(tls_,
                   OpenAgentIdentity(security_, flags_.tracker, &flags_.id));
  return absl::OkStatus();
}

absl::Status AgentProcess::OfferBuilds() {
  ASSIGN_OR_RETURN(SigningKey key, LoadOrMakeBuilderKey(flags_.state));
  key_ = std::make_unique<SigningKey>(std::move(key));
  build_locks_ = std::make_unique<CoreLocks>(flags_.lock_folder);
  RETURN_IF_ERROR(build_locks_->Check(cpus_));
  v1::BuilderOffer& offer = *hello_.mutable_builder();
  offer.set_public_key(key_->public_key());
  const int most = static_cast<int>(cpus_.size());
  const int usual = roles_.device ? 1 : CorePlan(cpus_).builders();
  offer.set_slots(flags_.builds == 0 ? usual : std::min(flags_.builds, most));
  const std::unique_ptr<BuildWorker> worker =
      SpawnedBuildWorker(runner_options_, spawner_);
  absl::StatusOr<v1::BuilderReach> reach = AskReach(*worker);
  if (!reach.ok()) return Annotate(reach.status(), "asking the build worker");
  *offer.mutable_reach() = *std::move(reach);
  return absl::OkStatus();
}

absl::Status AgentProcess::MakeGreeting() {
  Board& board = probes_.board;
  board.machine = ReadMachine("");
  board.cpus = cpus_;
  board.device_class = flags_.device_class;
  board.credit = flags_.credit;
  board.clocks.governor = flags_.governor;
  board.cuda_driver = flags_.cuda_driver;
  board.measure_only = measure_only_;
  runner_options_.host = HostRequest(
      flags_, measure_only_, /*emulated=*/!board.emulator.empty(), cpus_);
  if (!measure_only_) {
    build_info_ = std::make_unique<DescribingWorker>(
        SpawnedBuildWorker(runner_options_, spawner_), runner_options_.host,
        /*cancelled=*/nullptr);
    ASSIGN_OR_RETURN(
        board.host, DescribeHost(static_cast<int>(cpus_.size()), *build_info_));
    RETURN_IF_ERROR(
        CheckProcessorTarget("the build worker", board.host.target()));
  }
  ASSIGN_OR_RETURN(
      hello_, MakeHello(flags_, board.machine, cpus_, flags_.state, board.host,
                        /*simulated=*/!board.emulator.empty()));
  hello_.set_sandbox(spawner_->SandboxText());
  board.agent_id = hello_.agent_id();
  for (const std::string& key : trusted_) hello_.add_trusted_builders(key);
  hello_.set_devices_follow(measure_only_);
  if (roles_.builder) RETURN_IF_ERROR(OfferBuilds());
  return absl::OkStatus();
}

absl::Status AgentProcess::StartRuntime() {
  ASSIGN_OR_RETURN(std::unique_ptr<Spool> spool, OpenSpool(flags_.state));
  connection_ = std::make_unique<TrackerClient>(flags_.tracker, tls_);
  metered_ = std::make_unique<MeteredConnection>(connection_.get(), &stats_);
  keeper_ = KeepAgentIdentity(tls_, flags_.tracker);
  AgentLoop::Options options;
  options.hello = hello_;
  runtime_ = std::make_unique<AgentRuntime>(options, &RealClock(),
                                            Random(RandomSeed()),
                                            std::move(spool), metered_.get());
  const auto send = [this](v1::AgentMessage message) {
    runtime_->SendBuildMessage(std::move(message));
  };
  if (measure_only_) {
    OrderDesk::Options desk;
    desk.trusted = trusted_;
    desk.limit = absl::Seconds(flags_.builder_wait_s);
    desk_ = std::make_unique<OrderDesk>(std::move(desk), &RealClock(), send);
    runtime_->SetBuildPeer(desk_.get());
    build_info_ = std::make_unique<DescribingWorker>(
        std::make_unique<RemoteBuildWorker>(desk_.get()), runner_options_.host,
        [this] { return Ending(); });
    runner_options_.builders = [this] {
      return std::make_unique<RemoteBuildWorker>(desk_.get());
    };
  }
  if (roles_.builder) {
    ASSIGN_OR_RETURN(BuildWorkerOptions build, BuildWorkerOf(runner_options_));
    std::vector<OrderBuilder::Slot> slots;
    for (int i = 0; i < hello_.builder().slots(); ++i) {
      const int cpu = cpus_[static_cast<size_t>(i)];
      build.cpu_list = FormatCpuList({cpu});
      slots.push_back({cpu, std::make_unique<BuildClient>(build, spawner_)});
    }
    order_builder_ = std::make_unique<OrderBuilder>(
        *key_, hello_.agent_id(), std::move(slots), build_locks_.get(), send);
    runtime_->SetBuildPeer(order_builder_.get());
  }
  ASSIGN_OR_RETURN(
      metrics_, StartMetrics(security_.metrics, [this](MetricsPage& page) {
        CollectProcess("regatta-agent", REGATTA_VERSION,
                       {{"compiler", hello_.compiler_version()}}, page);
        CollectAgent(stats_, *runtime_, *spawner_, page);
      }));
  // Without a spawner every start would fail: what waits is given back instead,
  // when this process ends.
  runner_options_.may_start = [gate = runtime_->StartGate(),
                               spawner = spawner_](const std::string& id) {
    return spawner->alive() && gate(id);
  };
  return absl::OkStatus();
}

// A prefix before the workers may be an emulator, or no program at all.
absl::Status AgentProcess::CheckRunWorkers() {
  if (runner_options_.exec_prefix.empty()) return absl::OkStatus();
  v1::RunRequest request;
  request.add_list_kinds("cpu");
  return Annotate(
      run_info_->Ask(request, DriverNeeds(), FormatCpuList(cpus_)).status(),
      absl::StrCat("--exec-prefix '", flags_.exec_prefix, "'"));
}

absl::Status AgentProcess::FindBoardDevices() {
  Board& board = probes_.board;
  run_info_ = std::make_unique<SpawnedRunWorkers>(runner_options_, spawner_);
  board.run_worker = run_info_.get();
  board.build_worker = build_info_.get();
  RETURN_IF_ERROR(CheckRunWorkers());
  if (measure_only_) {
    std::cout
        << "agent " << hello_.agent_id()
        << " asks the builders that it trusts how to build for it, tracker "
        << flags_.tracker << std::endl;
    int64_t builders = 0;
    for (bool known = false; !known;) {
      absl::StatusOr<v1::Description> host = DescribeHost(
          static_cast<int>(cpus_.size()), *build_info_, "a builder");
      if (host.ok()) {
        RETURN_IF_ERROR(CheckProcessorTarget("the builder", host->target()));
      }
      if (Ending()) return absl::CancelledError("told to stop");
      known = host.ok();
      if (known) {
        board.host = *std::move(host);
      } else if (absl::IsUnavailable(host.status()) ||
                 absl::IsFailedPrecondition(host.status())) {
        return host.status();  // somebody has to change something here
      } else {
        LOG(kWarning) << host.status().message();
        builders = desk_->AwaitChange(builders, kDescribeAgain,
                                      [this] { return Ending(); });
      }
    }
  }
  ASSIGN_OR_RETURN(probes_.devices, FindDevices(providers_, board));
  for (FoundDevice& device : probes_.devices) {
    ServedDevice& served = device.served;
    if (served.needs.driver) {
      served.info.set_sandbox(SandboxOf(served.needs, *spawner_));
    }
    served.info.set_uncontrolled(UncontrolledClocks("", cpus_, board.clocks));
    stats_.AddDevice(served.info.device_id());
    *hello_.add_devices() = served.info;
    runner_options_.devices.push_back(served);
  }
  return absl::OkStatus();
}

absl::Status AgentProcess::ServeDevices() {
  runner_options_.on_measuring = [this](const std::string& device_id,
                                        const MeasuringState& state) {
    std::lock_guard lock(probing_mutex_);
    if (probing_ != nullptr) probing_->SetMeasuring(device_id, state);
  };
  runner_options_.on_window = [this](const std::string& device_id,
                                     absl::Duration longest) {
    runtime_->SetWindow(device_id, longest);
  };
  ASSIGN_OR_RETURN(runner_,
                   CreateTrialRunner(runner_options_, spawner_,
                                     stats_.Count(runtime_->ResultSink())));
  late_runner_.Set(runner_.get());
  probes_.state_dir = flags_.state;
  probes_.lock_folder = flags_.lock_folder;
  probes_.on_device = [this](const v1::DeviceInfo& now) {
    runner_->UpdateDevice(now);
  };
  probes_.on_devices = [this](const std::vector<v1::DeviceInfo>& now) {
    runtime_->SetDevices(now);
  };
  return absl::OkStatus();
}

void AgentProcess::Announce() const {
  std::cout << "agent " << hello_.agent_id();
  for (const v1::DeviceInfo& device : hello_.devices()) {
    std::cout << ", device " << device.device_class() << " on processors "
              << device.cpu_list();
  }
  if (roles_.builder) {
    std::cout << ", builder " << absl::BytesToHexString(key_->public_key());
  }
  std::cout << ", tracker " << flags_.tracker << std::endl;
}

absl::Status AgentProcess::AwaitStop() {
  const sigset_t signals = StopSignals();
  const timespec moment = {0, 50'000'000};
  bool draining = false;
  SteadyTime drain_ends;
  while (true) {
    const bool signalled = sigtimedwait(&signals, nullptr, &moment) > 0;
    if (!spawner_->alive()) {
      return absl::UnavailableError(
          "regatta-spawner died; without it nothing can be run");
    }
    if (draining && (signalled || runtime_->Drained() ||
                     RealClock().Steady() >= drain_ends)) {
      return absl::OkStatus();
    }
    if (signalled) {
      draining = true;
      drain_ends = RealClock().Steady() + kDrainLimit;
      runtime_->Drain("the agent was told to stop",
                      absl::Milliseconds(flags_.returns_within_ms));
      continue;
    }
    if (draining || watch_ == nullptr) continue;
    if (const std::string why = watch_->WhyRestart(); !why.empty()) {
      return absl::UnavailableError(why + "; start this agent again");
    }
  }
}

absl::Status AgentProcess::Serve() {
  RETURN_IF_ERROR(Begin());
  RETURN_IF_ERROR(MakeGreeting());
  // A board that knows its devices says so in its first word.
  if (roles_.device && !measure_only_) RETURN_IF_ERROR(FindBoardDevices());
  RETURN_IF_ERROR(StartRuntime());
  if (roles_.device && !measure_only_) RETURN_IF_ERROR(ServeDevices());
  runtime_->Start(&late_runner_);
  if (measure_only_) {
    if (absl::Status found = FindBoardDevices(); !found.ok()) {
      EndWithin(kStopLimit, 0);
      runtime_->Stop();
      return absl::IsCancelled(found) ? absl::OkStatus() : found;
    }
    RETURN_IF_ERROR(ServeDevices());
    runtime_->SetDevices({hello_.devices().begin(), hello_.devices().end()});
  }
  if (roles_.device) {
    std::lock_guard lock(probing_mutex_);
    probing_ = std::make_unique<DeviceProbes>(probes_);
  }
  if (measure_only_) {
    DescriptionWatch::Options watch;
    watch.desk = desk_.get();
    watch.builders = build_info_.get();
    watch.host = runner_options_.host;
    watch.host.set_cores(static_cast<int>(cpus_.size()));
    watch.devices = runner_options_.devices;
    watch.on_build = [this](const std::string& id, const DeviceBuild& build) {
      probing_->SetBuild(id, build);
    };
    watch_ = std::make_unique<DescriptionWatch>(std::move(watch));
  }
  Announce();
  const absl::Status ended = AwaitStop();
  stopping_ = true;
  EndWithin(kStopLimit, ended.ok() ? 0 : 1);
  runtime_->Stop();
  metrics_.reset();
  watch_.reset();
  {
    std::unique_ptr<DeviceProbes> ending;  // its threads call the runner
    std::lock_guard lock(probing_mutex_);
    ending = std::move(probing_);
  }
  runner_.reset();
  order_builder_.reset();
  return ended;
}

}  // namespace

absl::Status ServeAgent(AgentFlags flags, const AgentSecurityFlags& security) {
  return AgentProcess(std::move(flags), security).Serve();
}

absl::Status PrintBuilderKey(AgentFlags flags) {
  RETURN_IF_ERROR(CompleteFlags(&flags));
  RETURN_IF_ERROR(MakeStateDir(flags.state));
  ASSIGN_OR_RETURN(const SigningKey key, LoadOrMakeBuilderKey(flags.state));
  std::cout << absl::BytesToHexString(key.public_key()) << std::endl;
  return absl::OkStatus();
}

}  // namespace regatta
