// Hostile candidates in a row on a real agent: it stays up, says of each what
// it did, is ready again in time, keeps nothing, and times the next honest
// candidate as if nothing had been.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/robust_stats.h"
#include "compiler/compile.h"
#include "compiler/ops/op.h"
#include "device_agent/spawner/process_tree.h"
#include "device_agent/spawner/run_delay.h"
#include "gtest/gtest.h"
#include "proto/block_time.h"
#include "tests/device_agent/drifted.h"
#include "tests/device_agent/planted_list.h"
#include "tests/support/fake_fleet_service.h"
#include "tests/support/process.h"
#include "tests/support/scale.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;

// At REGATTA_TEST_SCALE=25: 1,000.
constexpr int kHostile = 40;
// Hostile candidates between two comparisons of honest ones.
constexpr int kComparedEvery = 3;
// Candidates are given up at about twice the incumbent's and 2 s.
constexpr int64_t kIncumbentNs = 1'000'000;
// Of those that take as long as filling the memory takes: ten seconds and more
// where a virtual machine's host has yet to find it.
constexpr int64_t kSlowIncumbentNs = 300'000'000;
constexpr absl::Duration kLimit = absl::Milliseconds(2080);
constexpr absl::Duration kPatience = absl::Seconds(60);
// Of the agent and its spawner, from after the first candidates to the end.
constexpr int64_t kGrowthBytes = int64_t{16} << 20;

uint64_t Seed() {
  const char* seed = std::getenv("REGATTA_TEST_SEED");
  return seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10);
}

int OpenFiles(pid_t pid) {
  std::error_code error;
  const fs::directory_iterator files(absl::StrCat("/proc/", pid, "/fd"), error);
  return error ? -1 : static_cast<int>(std::distance(begin(files), end(files)));
}

int64_t ResidentBytes(pid_t pid) {
  const ProcessTree tree = ProcessTree::Read();
  const ProcessInfo* process = tree.Find(pid);
  return process == nullptr ? -1 : process->resident_bytes;
}

// But for what the agent writes whenever it has probed its board.
std::vector<std::string> FilesBelow(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename() != "probe") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// A weight for a draw: those that cost seconds come less often.
int WeightOf(const Fault& fault) {
  const bool slow = fault.outcome == v1::OUTCOME_TIMED_OUT ||
                    fault.outcome == v1::OUTCOME_OUT_OF_MEMORY;
  return slow ? 1 : 6;
}

class HostileSoak : public ::testing::Test {
 protected:
  // An agent with the planting build worker, its tracker being this test.
  void SetUp() override {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(&tracker_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    workers_ = folder_.path() + "/bin";
    fs::create_directory(workers_);
    const std::string bin = REGATTA_BIN_DIR;
    for (const char* name : {"regatta-spawner", "regatta-run-worker"}) {
      fs::create_symlink(bin + "/" + name, workers_ + "/" + name);
    }
    fs::create_symlink(bin + "/regatta-build-worker-planted",
                       workers_ + "/regatta-build-worker");
    state_ = folder_.path() + "/state";
    const std::vector<std::string> argv = {bin + "/regatta-agent",
                                           "--state",
                                           state_,
                                           "--worker-dir",
                                           workers_,
                                           "--cores",
                                           Core(),
                                           "--lock-folder",
                                           folder_.path(),
                                           "--id",
                                           "hostile",
                                           "--tracker",
                                           absl::StrCat("127.0.0.1:", port)};
    std::vector<std::string> print_key = argv;
    print_key.push_back("--print-builder-key");
    ASSERT_EQ(testing::RunProcess(print_key).exit_code, 0);
    key_ = state_ + "/builder.key";
    ASSERT_TRUE(fs::exists(key_));
    agent_ = std::make_unique<testing::Process>(argv, testing::Environment{});
    ASSERT_TRUE(tracker_.Await(&v1::AgentMessage::has_hello));
    ASSERT_TRUE(testing::WaitFor(kPatience, [this] { return Probed(); }));
    hello_ = tracker_.Received()[0].hello();
    const auto spawner = testing::ChildrenOf(agent_->pid(), "regatta-spawner");
    ASSERT_EQ(spawner.size(), 1u);
    spawner_ = spawner[0];
  }
  void TearDown() override {
    agent_.reset();
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  static std::string Core() {
    cpu_set_t set;
    EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu) {
      if (CPU_ISSET(cpu, &set)) return absl::StrCat(cpu);
    }
    return "";
  }
  // Also notes the device as it is now.
  bool Probed() {
    for (const v1::AgentMessage& message : tracker_.Received()) {
      if (message.device_update().devices_size() == 1) {
        device_ = message.device_update().devices(0);
      }
    }
    return !device_.device_id().empty() && device_.health() != "probing";
  }
  std::string MissingFeature() const {
    const std::vector<std::string> features =
        absl::StrSplit(hello_.sandbox(), absl::ByAnyChar(", "));
    for (const char* needed : {"seccomp", "landlock", "cgroup_memory"}) {
      if (std::count(features.begin(), features.end(), needed) == 0) {
        return needed;
      }
    }
    return "";
  }

  // The default schedule; a task of its own, so that nothing is a duplicate.
  v1::TrialSpec Honest() {
    v1::TrialSpec spec;
    spec.set_job_id(++jobs_);
    spec.set_ordinal(1);
    spec.set_trial_id(absl::StrCat(jobs_, "/0/1"));
    spec.set_kind(v1::TRIAL_KIND_DEFAULT);
    spec.set_workload(kPlantedWorkload);
    spec.set_device_class(device_.device_class());
    spec.set_target(device_.target());
    spec.mutable_policy()->set_threads(1);
    spec.mutable_policy()->set_cache(v1::CACHE_STATE_WARM);
    spec.set_input_seed(17);
    spec.set_incumbent_ns(kIncumbentNs);
    spec.set_compiler_version(hello_.compiler_version());
    spec.mutable_schedule()->set_space(hello_.space());
    spec.mutable_schedule()->set_space_version(hello_.space_version());
    spec.mutable_schedule()->set_text(default_schedule_);
    return spec;
  }
  v1::TrialSpec Planted(const Fault& fault) {
    v1::TrialSpec spec = Honest();
    spec.mutable_schedule()->set_text(PlantedSchedule(
        fault, fault.name == "read_file" ? key_ : folder_.path() + "/new"));
    if (fault.outcome == v1::OUTCOME_OUT_OF_MEMORY) {
      spec.set_incumbent_ns(kSlowIncumbentNs);
    }
    return spec;
  }
  void MakeDefaultSchedule() {
    auto workload = ParseWorkload(kPlantedWorkload);
    auto target = ParseTarget(device_.target());
    ASSERT_TRUE(workload.ok() && target.ok());
    auto space = CreateSpace(*workload, *target, 1);
    ASSERT_TRUE(space.ok()) << space.status();
    default_schedule_ = space->Print(space->Default());
  }

  struct Ran {
    v1::TrialResult result;
    absl::Duration took;     // from the assignment to its result
    absl::Duration starved;  // of that, waiting for a processor
  };
  // No result: a test failure.
  Ran Run(const v1::TrialSpec& spec) {
    v1::Assignment assignment;
    assignment.set_assignment_id(absl::StrCat("soak/", spec.trial_id()));
    assignment.set_device_id(device_.device_id());
    assignment.set_mode(v1::ASSIGNMENT_MODE_SCREEN);
    assignment.set_attempt(1);
    assignment.set_lease_epoch(1);
    *assignment.add_trials() = spec;
    const SteadyTime start = RealClock().Steady();
    tracker_.Assign(std::move(assignment));
    Ran ran;
    std::optional<v1::TrialResult> result;
    while (!result.has_value() && RealClock().Steady() - start < kPatience) {
      result = tracker_.TakeResult(spec.trial_id(), absl::Milliseconds(50));
      if (result.has_value()) break;
      for (const ProcessInfo& worker :
           ProcessTree::Read().Descendants(spawner_)) {
        ran.starved =
            std::max(ran.starved, absl::Nanoseconds(RunDelayNs(worker.pid)));
      }
    }
    ran.took = RealClock().Steady() - start;
    EXPECT_TRUE(result.has_value()) << spec.schedule().text();
    if (result.has_value()) ran.result = *std::move(result);
    return ran;
  }

  void RunHostile(const Fault& fault) {
    Ran ran = Run(Planted(fault));
    for (int i = 1; i < 5 && Drifted(ran.result); ++i)
      ran = Run(Planted(fault));
    ++seen_[fault.name];
    // It got an eighth of its processor: others of this machine had the rest.
    if (fault.outcome == v1::OUTCOME_TIMED_OUT &&
        ran.result.detail().rfind("the board is overloaded", 0) == 0) {
      std::cout << fault.name << ": " << ran.result.detail() << "\n";
      ++overloaded_;
      return;
    }
    EXPECT_EQ(v1::Outcome_Name(ran.result.outcome()),
              v1::Outcome_Name(fault.outcome))
        << fault.name << ": " << ran.result.detail();
    EXPECT_NE(ran.result.detail().find(fault.detail), std::string::npos)
        << fault.name << ": " << ran.result.detail();
    if (fault.outcome == v1::OUTCOME_TIMED_OUT) {
      const absl::Duration beyond = ran.took - ran.starved - kLimit;
      slowest_freed_ = std::max(slowest_freed_, beyond);
      EXPECT_LT(beyond, absl::Seconds(1)) << fault.name;
    }
  }
  // Its time, ns per call: results give whole ones.
  double RunHonest() {
    Ran ran = Run(Honest());
    for (int i = 1; i < 10 && Drifted(ran.result); ++i) ran = Run(Honest());
    EXPECT_EQ(ran.result.outcome(), v1::OUTCOME_OK) << ran.result.detail();
    std::vector<double> per_call;
    for (const v1::Block& block : ran.result.blocks()) {
      per_call.push_back(NsPerCall(block));
    }
    EXPECT_FALSE(per_call.empty());
    return per_call.empty() ? 1 : Median(per_call);
  }
  // One honest candidate after a hostile one, then two after honest ones.
  void Compare() {
    after_.push_back(RunHonest());
    plain_.push_back(RunHonest());
    again_.push_back(RunHonest());
  }
  void ExpectUnchangedTimes() const;
  void ExpectNothingKept(const std::vector<std::string>& files_before) const;

  testing::TempDir folder_;
  std::string workers_, state_, key_, default_schedule_;
  FakeFleetService tracker_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<testing::Process> agent_;
  pid_t spawner_ = -1;
  v1::Hello hello_;
  v1::DeviceInfo device_;
  int64_t jobs_ = 0;
  std::map<std::string, int> seen_;
  int overloaded_ = 0;
  absl::Duration slowest_freed_ = -absl::InfiniteDuration();
  std::vector<double> after_, plain_, again_;  // ns per call
};

void HostileSoak::ExpectUnchangedTimes() const {
  const Ratio ratio = PairedRatio(after_, plain_);
  const Ratio noise = PairedRatio(plain_, again_);
  // What two honest ones in a row differ by, and what the board itself says.
  const double floor =
      std::max({std::log(noise.high) - std::log(noise.low),
                std::abs(std::log(noise.ratio)), device_.noise_floor(), 0.01});
  std::cout << absl::StrFormat(
      "honest after hostile / honest after honest: %.4f [%.4f, %.4f]; "
      "honest / honest: %.4f [%.4f, %.4f]; noise floor %.4f (%d rounds, "
      "median %.1f ns)\n",
      ratio.ratio, ratio.low, ratio.high, noise.ratio, noise.low, noise.high,
      floor, static_cast<int>(after_.size()), Median(plain_));
  EXPECT_LT(std::log(ratio.low), floor);
  EXPECT_GT(std::log(ratio.high), -floor);
}

void HostileSoak::ExpectNothingKept(
    const std::vector<std::string>& files_before) const {
  EXPECT_EQ(FilesBelow(folder_.path()), files_before);
  for (const std::string& path : FilesBelow(folder_.path())) {
    struct stat info;
    ASSERT_EQ(lstat(path.c_str(), &info), 0) << path;
    EXPECT_EQ(info.st_uid, geteuid()) << path << " belongs to a candidate";
  }
  // Nothing but build workers.
  for (const ProcessInfo& process : ProcessTree::Read().Descendants(spawner_)) {
    const std::string command =
        testing::ReadFile(absl::StrCat("/proc/", process.pid, "/cmdline"));
    EXPECT_NE(command.find("regatta-build-worker"), std::string::npos)
        << command << " is left";
  }
}

TEST_F(HostileSoak, CostsTheHostileAlone) {
  if (HasFatalFailure()) return;
  if (const std::string missing = MissingFeature(); !missing.empty()) {
    GTEST_SKIP() << "this machine's sandbox is without " << missing;
  }
  MakeDefaultSchedule();
  const int count = Scaled(kHostile);
  std::cout << count << " hostile candidates (1,000 at REGATTA_TEST_SCALE=25), "
            << "REGATTA_TEST_SEED=" << Seed() << "\n";
  const std::vector<Fault> faults = PlantedFaults();
  std::vector<const Fault*> deck;
  for (const Fault& fault : faults) {
    deck.insert(deck.end(), WeightOf(fault), &fault);
  }
  Random random(Seed());
  RunHonest();
  for (const char* name : {"hang", "crash"}) {
    RunHostile(*std::find_if(faults.begin(), faults.end(),
                             [&](const Fault& f) { return f.name == name; }));
  }
  RunHonest();
  const std::vector<std::string> files = FilesBelow(folder_.path());
  const int agent_files = OpenFiles(agent_->pid());
  const int spawner_files = OpenFiles(spawner_);
  const int64_t agent_bytes = ResidentBytes(agent_->pid());
  const int64_t spawner_bytes = ResidentBytes(spawner_);

  for (int i = 2; i < count; ++i) {
    RunHostile(*deck[random.Below(deck.size())]);
    if (i % kComparedEvery == 0) Compare();
    ASSERT_TRUE(agent_->Running()) << "after " << i + 1 << " candidates";
    if (HasFailure() && i < 20) break;
    if (i % 100 == 0) std::cout << i << " of " << count << "\n" << std::flush;
  }

  RunHonest();
  ExpectUnchangedTimes();
  ExpectNothingKept(files);
  std::cout << absl::StrFormat(
      "agent: %d to %d files, %.1f to %.1f MiB; spawner: %d to %d files, %.1f "
      "to %.1f MiB; slowest slot free %s after its limit; kinds %d of %d\n",
      agent_files, OpenFiles(agent_->pid()), agent_bytes / 1048576.0,
      ResidentBytes(agent_->pid()) / 1048576.0, spawner_files,
      OpenFiles(spawner_), spawner_bytes / 1048576.0,
      ResidentBytes(spawner_) / 1048576.0, absl::FormatDuration(slowest_freed_),
      static_cast<int>(seen_.size()), static_cast<int>(faults.size()));
  // It keeps a module of each kind open, so as not to build it again.
  EXPECT_LE(OpenFiles(agent_->pid()),
            agent_files + static_cast<int>(seen_.size()) + 2);
  EXPECT_LE(OpenFiles(spawner_), spawner_files + 2);
  EXPECT_LE(overloaded_, 1 + count / 50) << "this machine is too busy";
  EXPECT_LE(ResidentBytes(agent_->pid()), agent_bytes + kGrowthBytes);
  EXPECT_LE(ResidentBytes(spawner_), spawner_bytes + kGrowthBytes);
  size_t hellos = 0;
  for (const v1::AgentMessage& message : tracker_.Received()) {
    hellos += message.has_hello() ? 1 : 0;
  }
  EXPECT_EQ(hellos, 1u) << "the agent connected again";
  agent_->Signal(SIGTERM);
  EXPECT_EQ(agent_->Wait(absl::Seconds(10)).exit_code, 0);
  EXPECT_TRUE(testing::WaitFor(absl::Seconds(2), [this] {
    return testing::ProcessesWith(workers_).empty();
  })) << "a worker outlived the agent";
}

}  // namespace
}  // namespace regatta
