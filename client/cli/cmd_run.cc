#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/robust_stats.h"
#include "base/status_macros.h"
#include "client/cli/commands.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/host_class.h"
#include "client/cli/own_directory.h"
#include "client/cli/stop_signal.h"
#include "compiler/compile.h"
#include "compiler/ops/op.h"
#include "device_agent/measure/trial_runner.h"
#include "device_agent/spawner/spawner_client.h"
#include "proto/block_time.h"
#include "proto/outcome_names.h"

namespace regatta::cli {
namespace {

// Build, reference, verification and timing together.
constexpr absl::Duration kLimit = absl::Minutes(5);
constexpr auto kPoll = std::chrono::milliseconds(50);
constexpr uint64_t kInputSeed = 1;

struct Flags {
  PolicyFlags policy;
  std::string workload;
  std::string schedule;
  std::string device_class;
  bool json = false;
};

// A folder that goes with the object.
class ScratchDir {
 public:
  static absl::StatusOr<std::unique_ptr<ScratchDir>> Create() {
    std::error_code error;
    std::string path =
        (std::filesystem::temp_directory_path(error) / "regatta-run-XXXXXX")
            .string();
    if (error || mkdtemp(path.data()) == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot make a temporary folder ", path));
    }
    return std::unique_ptr<ScratchDir>(new ScratchDir(path));
  }
  ~ScratchDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit ScratchDir(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

v1::DeviceInfo LocalDevice(const Host& host) {
  v1::DeviceInfo device;
  device.set_device_id("local");
  device.set_device_class(host.device_class);
  device.set_target(host.target.ToString());
  device.set_cores(host.cores);
  device.set_cpu_list(host.cpu_list);
  device.set_credit(1);
  return device;
}

v1::Assignment OneTrial(const Flags& flags, const Workload& workload,
                        const Host& host, const Space& space,
                        const Schedule& schedule) {
  v1::Assignment assignment;
  assignment.set_assignment_id("local/1");
  assignment.set_mode(v1::ASSIGNMENT_MODE_SCREEN);
  assignment.set_device_id("local");
  assignment.set_attempt(1);
  v1::TrialSpec* trial = assignment.add_trials();
  trial->set_trial_id("local/1");
  trial->set_kind(v1::TRIAL_KIND_CANDIDATE);
  trial->set_workload(workload.text);
  trial->set_workload_key(workload.key);
  trial->set_device_class(host.device_class);
  trial->set_target(host.target.ToString());
  *trial->mutable_policy() = flags.policy.ToProto();
  trial->mutable_schedule()->set_space(std::string(space.name()));
  trial->mutable_schedule()->set_space_version(kSpaceVersion);
  trial->mutable_schedule()->set_text(space.Print(schedule));
  trial->set_input_seed(kInputSeed);
  trial->set_compiler_version(CompilerVersion(host.target));
  return assignment;
}

absl::StatusOr<v1::TrialResult> RunHere(const Host& host,
                                        const v1::Assignment& assignment) {
  const std::string programs = OwnDirectory();
  ASSIGN_OR_RETURN(auto scratch, ScratchDir::Create());
  ASSIGN_OR_RETURN(std::shared_ptr<SpawnerClient> spawner,
                   SpawnerClient::Start(programs + "/regatta-spawner"));
  RunnerOptions options;
  options.worker_dir = programs;
  options.state_dir = scratch->path();
  options.devices.emplace_back().info = LocalDevice(host);
  std::promise<v1::TrialResult> promise;
  std::future<v1::TrialResult> result = promise.get_future();
  ASSIGN_OR_RETURN(
      auto runner,
      CreateTrialRunner(options, spawner,
                        [&promise](const std::string&, v1::TrialResult done,
                                   bool) { promise.set_value(done); }));
  runner->Start(assignment);
  // Ctrl-C must not leave workers or the folder behind.
  const std::atomic<bool>& stop = StopRequested();
  const SteadyTime deadline = RealClock().Steady() + kLimit;
  while (result.wait_for(kPoll) != std::future_status::ready) {
    const bool late = RealClock().Steady() > deadline;
    if (!stop && !late) continue;
    runner->Stop(assignment.assignment_id());
    if (stop) return absl::CancelledError("stopped; nothing was measured");
    return absl::DeadlineExceededError(
        absl::StrCat("no result after ", absl::FormatDuration(kLimit)));
  }
  return result.get();
}

void PrintResult(const v1::TrialResult& result, const Workload& workload) {
  const v1::TrialSpec& spec = result.spec();
  std::cout << spec.workload() << " on " << spec.device_class() << " (here)\n"
            << "  schedule  " << spec.schedule().text() << "\n"
            << "  outcome   " << OutcomeName(result.outcome());
  if (!result.detail().empty()) std::cout << ": " << result.detail();
  std::cout << "\n";
  if (result.time_ns() <= 0) return;
  std::vector<double> times;
  for (const v1::Block& block : result.blocks()) {
    if (!block.throttled() && block.calls() > 0) {
      times.push_back(NsPerCall(block));
    }
  }
  const Interval interval = MedianInterval95(times);
  std::cout << "  verified  whole output against the reference, largest error "
            << result.max_error() << " of the tolerance\n"
            << "  time      " << FormatNs(result.time_ns()) << " (median of "
            << times.size() << " blocks, "
            << (times.size() < 6 ? "range " : "95 % interval ")
            << FormatNs(interval.low) << " to " << FormatNs(interval.high)
            << ")\n"
            << "  speed     "
            << FormatFlopRate(workload.Flops() / (result.time_ns() * 1e-9))
            << ", "
            << FormatByteRate(workload.Bytes() / (result.time_ns() * 1e-9))
            << "\n";
}

Json ResultDocument(const v1::TrialResult& result, const Workload& workload) {
  const double seconds = result.time_ns() * 1e-9;
  const bool ok = result.outcome() == v1::OUTCOME_OK;
  return {
      {"workload", workload.text},
      {"workload_key", workload.key},
      {"device_class", result.spec().device_class()},
      {"threads", result.spec().policy().threads()},
      {"cache", CacheStateName(result.spec().policy().cache())},
      {"schedule", result.spec().schedule().text()},
      {"outcome", OutcomeName(result.outcome())},
      {"detail", TextOrNull(result.detail())},
      {"verified", ok},
      {"time_ns", PositiveOrNull(result.time_ns())},
      {"gflops", seconds > 0 ? PositiveOrNull(workload.Flops() / seconds / 1e9)
                             : Json(nullptr)},
      {"gbps", seconds > 0 ? PositiveOrNull(workload.Bytes() / seconds / 1e9)
                           : Json(nullptr)},
      {"build_ns", PositiveOrNull(result.phases().build_ns())},
      {"binary_hash", TextOrNull(result.binary_hash())},
  };
}

// Whoever asks for another device hears how to get there.
absl::Status CheckClass(const Flags& flags, const Host& host) {
  if (flags.device_class.empty() || flags.device_class == host.device_class) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--device-class ", flags.device_class,
      ": `run` times on this machine's processors (", host.device_class,
      ") only. Let an agent serve the device (here: `regatta up --devices "
      "cpu,KIND`), then `regatta tune '",
      flags.workload, "' --device-class ", flags.device_class,
      " --trials 1` builds, verifies and times the default schedule and "
      "another one there"));
}

absl::StatusOr<v1::TrialResult> Try(const Flags& flags,
                                    const Workload& workload) {
  ASSIGN_OR_RETURN(Host host, DescribeHost());
  RETURN_IF_ERROR(CheckClass(flags, host));
  if (flags.policy.threads > host.cores) {
    return absl::FailedPreconditionError(
        absl::StrCat("--threads ", flags.policy.threads, ": this machine has ",
                     host.cores, " cores"));
  }
  ASSIGN_OR_RETURN(Space space,
                   CreateSpace(workload, host.target, flags.policy.threads));
  Schedule schedule = space.Default();
  if (!flags.schedule.empty()) {
    auto parsed = space.Parse(flags.schedule);
    if (!parsed.ok()) {
      return Annotate(parsed.status(),
                      absl::StrCat("--schedule '", flags.schedule, "'"));
    }
    schedule = *parsed;
  }
  return RunHere(host, OneTrial(flags, workload, host, space, schedule));
}

int Run(const Flags& flags) {
  StopRequested();  // from here on, Ctrl-C cleans up
  auto workload = ParseWorkload(flags.workload);
  if (!workload.ok()) return Fail(workload.status());
  auto result = Try(flags, *workload);
  if (!result.ok()) return Fail(result.status());
  if (flags.json) {
    PrintJson(ResultDocument(*result, *workload));
  } else {
    PrintResult(*result, *workload);
  }
  return result->outcome() == v1::OUTCOME_OK ? kExitDone : kExitFailed;
}

}  // namespace

AddedCommand AddRun(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "run", "Build, verify and time one schedule here, without any daemon");
  AddWorkloadArgument(command, &flags->workload);
  command
      ->add_option("--schedule", flags->schedule,
                   "Schedule text. Default: the default schedule")
      ->check(NotEmpty())
      ->check(Utf8Text());
  command
      ->add_option("--device-class", flags->device_class,
                   "This machine's class; other devices are timed through "
                   "their agents, see `regatta tune`")
      ->check(NotEmpty())
      ->check(Utf8Text());
  AddPolicyFlags(command, &flags->policy);
  AddJsonFlag(command, &flags->json);
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace regatta::cli
