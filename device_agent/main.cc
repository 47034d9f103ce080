// regatta-agent: serves one board's cores to a tracker. Links no compiler and
// runs no generated code; workers below regatta-spawner do.
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "device_agent/devices/device_probes.h"
#include "device_agent/devices/provider_list.h"
#include "device_agent/loop/agent_runtime.h"
#include "device_agent/loop/agent_setup.h"
#include "device_agent/loop/spool.h"
#include "device_agent/measure/build_client.h"
#include "device_agent/measure/core_locks.h"
#include "device_agent/measure/driver_question.h"
#include "device_agent/measure/trial_runner.h"
#include "device_agent/probe/emulator.h"
#include "device_agent/probe/machine.h"
#include "device_agent/spawner/cpu_list.h"
#include "device_agent/spawner/spawner_client.h"
#include "device_agent/tracker_client.h"

namespace regatta {
namespace {

// An agent that was told to stop is gone after this, whatever it waits for; its
// workers die with it.
constexpr absl::Duration kStopLimit = absl::Milliseconds(1800);
constexpr int64_t kDescribeLimitMs = 30'000;
constexpr int64_t kDriverLimitMs = 60'000;
constexpr int64_t kDriverMemoryBytes = int64_t{4} << 30;

void AddFlags(CLI::App* app, AgentFlags* flags) {
  app->add_option("--tracker", flags->tracker, "Address of the tracker")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app->add_option("--state", flags->state,
                  "Folder for results not yet acknowledged and caches; made "
                  "when missing")
      ->type_name("DIR")
      ->default_str(DefaultStateDir());
  app->add_option("--id", flags->id,
                  "Name of this agent and its processors, unique in the fleet; "
                  "names of its other devices begin with it")
      ->type_name("NAME")
      ->default_str("from host name, machine id and cores");
  app->add_option("--cores", flags->cores,
                  "Processors to own, as a list; the class counts them, and "
                  "other devices use no others")
      ->type_name("LIST")
      ->default_str("all that this process may use");
  app->add_option("--devices", flags->devices,
                  "Kinds of devices to serve, separated by commas: cpu (the "
                  "processors of --cores, as one device), opencl, cuda")
      ->type_name("KINDS")
      ->capture_default_str();
  app->add_option("--cuda-driver", flags->cuda_driver,
                  "Library to use as CUDA's driver, such as "
                  "libregatta-cuda-sim.so, which simulates GPUs")
      ->check(CLI::ExistingFile)
      ->type_name("FILE")
      ->default_str("libcuda.so.1 of the system");
  app->add_option("--device-class", flags->device_class,
                  "Class of the processors: boards of one class share their "
                  "times")
      ->type_name("NAME")
      ->default_str("from processor and cores");
  app->add_option("--worker-dir", flags->worker_dir,
                  "Folder of regatta-spawner and the workers")
      ->type_name("DIR")
      ->default_str("the folder of this program");
  app->add_option("--exec-prefix", flags->exec_prefix,
                  "Command put before each worker, words separated by spaces "
                  "(\"/usr/bin/qemu-aarch64 -L /\"); before regatta-spawner "
                  "too where an emulator runs the agent itself")
      ->type_name("COMMAND")
      ->default_str("none");
  app->add_option("--require-sandbox", flags->require_sandbox,
                  "Sandbox features that must be in force, separated by "
                  "commas; without one of them the agent does not start")
      ->type_name("FEATURES")
      ->delimiter(',')
      ->default_str("none");
  app->add_option("--credit", flags->credit,
                  "Assignments to hold at once: one is timed, the others are "
                  "built, count")
      ->check(CLI::Range(1, 64))
      ->type_name("COUNT")
      ->capture_default_str();
  app->add_option("--lock-folder", flags->lock_folder,
                  "Folder of the lock files of cores, shared by all programs "
                  "of this machine that time or build on them")
      ->type_name("DIR")
      ->default_str(DefaultLockFolder());
}

// Fills in the defaults that depend on the machine, and checks.
absl::Status CompleteFlags(AgentFlags* flags) {
  RETURN_IF_ERROR(CheckAddress(flags->tracker));
  if (flags->state.empty()) flags->state = DefaultStateDir();
  if (flags->lock_folder.empty()) flags->lock_folder = DefaultLockFolder();
  if (flags->worker_dir.empty()) {
    std::error_code error;
    flags->worker_dir =
        std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
    if (error) {
      return absl::InternalError(
          absl::StrCat("cannot find this program's folder: ", error.message(),
                       "; give --worker-dir"));
    }
  }
  if (!flags->cuda_driver.empty()) {
    std::error_code error;
    flags->cuda_driver = std::filesystem::absolute(flags->cuda_driver, error);
    if (error) {
      return absl::InvalidArgumentError(
          absl::StrCat("--cuda-driver: ", error.message()));
    }
  }
  return MakeStateDir(flags->state);
}

// Asks a build worker that is started for the question.
class SpawnedBuildWorker : public BuildWorkerInfo {
 public:
  SpawnedBuildWorker(const RunnerOptions& options,
                     std::shared_ptr<SpawnerClient> spawner)
      : client_({.program = absl::StrCat(options.worker_dir, "/",
                                         options.build_worker),
                 .exec_prefix = options.exec_prefix,
                 .limit_ms = kDescribeLimitMs},
                std::move(spawner)) {}

  absl::StatusOr<v1::Description> Describe(
      const v1::DescribeRequest& device) override {
    return client_.Describe(device);
  }

 private:
  BuildClient client_;
};

// Starts a run worker for every question.
class SpawnedRunWorkers : public RunWorkerInfo {
 public:
  SpawnedRunWorkers(const RunnerOptions& options,
                    std::shared_ptr<SpawnerClient> spawner)
      : spawner_(std::move(spawner)) {
    options_.program = options.worker_dir + "/regatta-run-worker";
    options_.exec_prefix = options.exec_prefix;
    options_.wall_limit_ms = kDriverLimitMs;
    options_.memory_bytes = kDriverMemoryBytes;
  }

  absl::StatusOr<v1::RunResponse> Ask(const v1::RunRequest& request,
                                      const DriverNeeds& needs,
                                      const std::string& cpu_list) override {
    RunWorkerOptions options = options_;
    options.needs = needs;
    options.cpu_list = cpu_list;
    return AskRunWorker(std::move(options), spawner_, request);
  }

 private:
  RunWorkerOptions options_;
  const std::shared_ptr<SpawnerClient> spawner_;
};

absl::StatusOr<std::unique_ptr<Spool>> OpenSpool(const std::string& state) {
  ASSIGN_OR_RETURN(std::unique_ptr<SpoolStorage> storage,
                   OpenSpoolFile(state + "/results.spool"));
  return Spool::Open(std::move(storage), SpoolLimits{});
}

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// Waits for SIGTERM or Ctrl-C. Unavailable when the spawner died meanwhile.
absl::Status AwaitStop(const SpawnerClient& spawner) {
  const sigset_t signals = StopSignals();
  const timespec moment = {0, 100'000'000};
  while (sigtimedwait(&signals, nullptr, &moment) < 0) {
    if (!spawner.alive()) {
      return absl::UnavailableError(
          "regatta-spawner died; without it nothing can be run");
    }
  }
  return absl::OkStatus();
}

// The process ends in time even if something below hangs.
void EndWithin(absl::Duration limit, int code) {
  std::thread([limit, code] {
    const timespec wait = absl::ToTimespec(limit);
    nanosleep(&wait, nullptr);
    _exit(code);
  }).detach();
}

RunnerOptions RunnerOptionsOf(const AgentFlags& flags) {
  RunnerOptions options;
  options.worker_dir = flags.worker_dir;
  options.exec_prefix =
      absl::StrSplit(flags.exec_prefix, ' ', absl::SkipEmpty());
  options.state_dir = flags.state;
  options.lock_folder = flags.lock_folder;
  options.required_sandbox = flags.require_sandbox;
  return options;
}

// Completes the devices and tells them to `hello` and to `runner`.
void AddDevices(std::vector<FoundDevice>* found, const SpawnerClient& spawner,
                v1::Hello* hello, RunnerOptions* runner) {
  for (FoundDevice& device : *found) {
    ServedDevice& served = device.served;
    if (served.needs.driver) {
      served.info.set_sandbox(SandboxOf(served.needs, spawner));
    }
    *hello->add_devices() = served.info;
    runner->devices.push_back(served);
  }
}

void Announce(const v1::Hello& hello, const std::string& tracker) {
  std::cout << "agent " << hello.agent_id();
  for (const v1::DeviceInfo& device : hello.devices()) {
    std::cout << ", device " << device.device_class() << " on processors "
              << device.cpu_list();
  }
  std::cout << ", tracker " << tracker << std::endl;
}

uint64_t RandomSeed() {
  uint64_t seed = 0;
  const std::string random = RandomId();
  std::memcpy(&seed, random.data(), sizeof(seed));
  return seed;
}

absl::Status Serve(AgentFlags flags) {
  RETURN_IF_ERROR(CompleteFlags(&flags));
  ASSIGN_OR_RETURN(const Providers providers, ChooseProviders(flags.devices));
  ASSIGN_OR_RETURN(const std::vector<int> cpus,
                   ChooseCpus(flags.cores, AllowedCpus()));
  ASSIGN_OR_RETURN(const std::string emulator, FindEmulator());
  RunnerOptions runner_options = RunnerOptionsOf(flags);
  // Before any thread and any gRPC: nothing but the spawner forks. What needs
  // an emulator here needs one there.
  ASSIGN_OR_RETURN(
      const std::shared_ptr<SpawnerClient> spawner,
      SpawnerClient::Start(flags.worker_dir + "/regatta-spawner", {},
                           emulator.empty() ? std::vector<std::string>()
                                            : runner_options.exec_prefix));
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  SpawnedBuildWorker build_worker(runner_options, spawner);
  SpawnedRunWorkers run_workers(runner_options, spawner);
  DeviceProbes::Options probes;
  Board& board = probes.board;
  board.machine = ReadMachine("");
  board.emulator = emulator;
  board.cpus = cpus;
  board.device_class = flags.device_class;
  board.credit = flags.credit;
  board.cuda_driver = flags.cuda_driver;
  board.build_worker = &build_worker;
  board.run_worker = &run_workers;
  ASSIGN_OR_RETURN(board.host,
                   DescribeHost(static_cast<int>(cpus.size()), build_worker));
  ASSIGN_OR_RETURN(v1::Hello hello,
                   MakeHello(flags, board.machine, cpus, flags.state,
                             board.host, /*simulated=*/!emulator.empty()));
  hello.set_sandbox(spawner->SandboxText());
  board.agent_id = hello.agent_id();
  ASSIGN_OR_RETURN(probes.devices, FindDevices(providers, board));
  AddDevices(&probes.devices, *spawner, &hello, &runner_options);

  ASSIGN_OR_RETURN(std::unique_ptr<Spool> spool, OpenSpool(flags.state));
  TrackerClient connection(flags.tracker);
  AgentLoop::Options loop_options;
  loop_options.hello = hello;
  AgentRuntime runtime(loop_options, &RealClock(), Random(RandomSeed()),
                       std::move(spool), &connection);
  // Without a spawner every start would fail: what waits is given back instead,
  // when this process ends.
  runner_options.may_start = [gate = runtime.StartGate(),
                              spawner](const std::string& assignment_id) {
    return spawner->alive() && gate(assignment_id);
  };
  ASSIGN_OR_RETURN(
      std::unique_ptr<TrialRunner> runner,
      CreateTrialRunner(runner_options, spawner, runtime.ResultSink()));
  runtime.Start(runner.get());

  probes.state_dir = flags.state;
  probes.lock_folder = flags.lock_folder;
  probes.on_device = [&runner](const v1::DeviceInfo& now) {
    runner->UpdateDevice(now);
  };
  probes.on_devices = [&runtime](const std::vector<v1::DeviceInfo>& now) {
    runtime.SetDevices(now);
  };
  auto probing = std::make_unique<DeviceProbes>(std::move(probes));

  Announce(hello, flags.tracker);
  const absl::Status ended = AwaitStop(*spawner);
  EndWithin(kStopLimit, ended.ok() ? 0 : 1);
  runtime.Stop();
  probing.reset();
  runner.reset();
  return ended;
}

}  // namespace
}  // namespace regatta

int main(int argc, char** argv) {
  regatta::SetLogProgram("regatta-agent");
  regatta::AgentFlags flags;
  CLI::App app(
      "regatta-agent: builds, verifies and times kernels on this machine's "
      "cores for a tracker. Ctrl-C or SIGTERM stops it within two seconds.");
  app.set_version_flag("--version",
                       std::string("regatta-agent ") + REGATTA_VERSION);
  regatta::AddFlags(&app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::cerr << "regatta-agent: " << error.what()
              << "\nRun with --help for usage." << std::endl;
    return 2;
  }
  const absl::Status status = regatta::Serve(std::move(flags));
  if (status.ok()) return 0;
  std::cerr << "regatta-agent: " << status.message() << std::endl;
  return absl::IsInvalidArgument(status) ? 2 : 1;
}
