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
#include "device_agent/loop/agent_runtime.h"
#include "device_agent/loop/agent_setup.h"
#include "device_agent/loop/spool.h"
#include "device_agent/measure/build_client.h"
#include "device_agent/measure/core_locks.h"
#include "device_agent/measure/trial_runner.h"
#include "device_agent/probe/background_probe.h"
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
                  "Name of this agent and its device, unique in the fleet")
      ->type_name("NAME")
      ->default_str("from host name, machine id and cores");
  app->add_option("--cores", flags->cores,
                  "Processors to own, as a list; the class counts them")
      ->type_name("LIST")
      ->default_str("all that this process may use");
  app->add_option("--device-class", flags->device_class,
                  "Class of the device: boards of one class share their times")
      ->type_name("NAME")
      ->default_str("from processor and cores");
  app->add_option("--worker-dir", flags->worker_dir,
                  "Folder of regatta-spawner and the workers")
      ->type_name("DIR")
      ->default_str("the folder of this program");
  app->add_option("--exec-prefix", flags->exec_prefix,
                  "Command put before each worker, words separated by spaces "
                  "(\"qemu-aarch64 -L /usr/aarch64-linux-gnu\")")
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

  absl::StatusOr<v1::Description> Describe(int cores) override {
    return client_.Describe(cores);
  }

 private:
  BuildClient client_;
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

absl::Status Serve(AgentFlags flags) {
  RETURN_IF_ERROR(CompleteFlags(&flags));
  ASSIGN_OR_RETURN(const std::vector<int> cpus,
                   ChooseCpus(flags.cores, AllowedCpus()));
  // Before any thread and any gRPC: nothing but the spawner forks.
  ASSIGN_OR_RETURN(const std::shared_ptr<SpawnerClient> spawner,
                   SpawnerClient::Start(flags.worker_dir + "/regatta-spawner"));
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  RunnerOptions runner_options;
  runner_options.worker_dir = flags.worker_dir;
  runner_options.exec_prefix =
      absl::StrSplit(flags.exec_prefix, ' ', absl::SkipEmpty());
  runner_options.state_dir = flags.state;
  runner_options.lock_folder = flags.lock_folder;
  runner_options.required_sandbox = flags.require_sandbox;

  const Machine machine = ReadMachine("");
  SpawnedBuildWorker build_worker(runner_options, spawner);
  ASSIGN_OR_RETURN(v1::Hello hello,
                   MakeHello(flags, machine, cpus, flags.state, build_worker));
  hello.set_sandbox(spawner->SandboxText());
  const v1::DeviceInfo device = hello.devices(0);
  runner_options.devices = {device};

  ASSIGN_OR_RETURN(std::unique_ptr<Spool> spool, OpenSpool(flags.state));
  TrackerClient connection(flags.tracker);
  AgentLoop::Options loop_options;
  loop_options.hello = hello;
  uint64_t seed = 0;
  const std::string random = RandomId();
  std::memcpy(&seed, random.data(), sizeof(seed));
  AgentRuntime runtime(loop_options, &RealClock(), Random(seed),
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

  BackgroundProbe::Options probe_options;
  probe_options.device = device;
  probe_options.cpus = cpus;
  probe_options.boot_id = machine.boot_id;
  probe_options.cache_path = flags.state + "/probe";
  probe_options.exclusively = [locks = CoreLocks(flags.lock_folder),
                               cpu = cpus.back()](
                                  const std::function<void()>& part,
                                  const std::function<bool()>& stopped) {
    ASSIGN_OR_RETURN(const CoreLocks::Held held,
                     locks.Take({cpu}, CoreLocks::Use::kTiming, stopped));
    part();
    return absl::OkStatus();
  };
  probe_options.on_change = [&runtime, &runner](v1::DeviceInfo now) {
    runner->UpdateDevice(now);
    runtime.SetDevices({std::move(now)});
  };
  auto probe = std::make_unique<BackgroundProbe>(std::move(probe_options));

  std::cout << "agent " << hello.agent_id() << ", device "
            << device.device_class() << " on processors " << device.cpu_list()
            << ", tracker " << flags.tracker << std::endl;
  const absl::Status ended = AwaitStop(*spawner);
  EndWithin(kStopLimit, ended.ok() ? 0 : 1);
  runtime.Stop();
  probe.reset();
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
