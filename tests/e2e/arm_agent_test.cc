// Agents of simulated ARM boards: the board's programs for 64-bit ARM, run by
// QEMU, which counts instructions for time.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/fleet.h"

namespace regatta::testing {
namespace {

const char kWorkload[] = "matmul(m=64,n=64,k=64)";
const char kMeasures[] = REGATTA_ARM_BIN_DIR;
const char kBuilds[] = REGATTA_ARM_COMPILER_BIN_DIR;

class ArmAgents : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = REGATTA_ARM_MISSING; !missing.empty()) {
      GTEST_SKIP() << missing;
    }
    fleet_ = std::make_unique<Fleet>(std::vector<std::string>{"--no-agent"});
    ASSERT_TRUE(WaitFor(absl::Seconds(20), [&] {
      return !fleet_->server().empty();
    })) << fleet_->Logs();
    tracker_ = fleet_->tracker();
  }
  void TearDown() override {
    for (const auto& agent : agents_) agent->Signal(SIGTERM);
    for (const auto& agent : agents_) {
      const ProcessResult ended = agent->Wait(absl::Seconds(20));
      EXPECT_EQ(ended.exit_code, 0) << ended.err;
    }
  }

  std::string State(const std::string& name) const {
    return absl::StrCat(state_.path(), "/", name);
  }
  // An agent of this machine that builds for others; the key that it signs
  // with.
  std::string StartBuilder() {
    const std::vector<std::string> agent = {Program("regatta-agent"), "--state",
                                            State("builder")};
    std::vector<std::string> ask = agent, serve = agent;
    ask.push_back("--print-builder-key");
    const ProcessResult key = RunProcess(ask, {}, absl::Seconds(20));
    EXPECT_EQ(key.exit_code, 0) << key.err;
    serve.insert(serve.end(), {"--tracker", tracker_, "--role", "builder"});
    agents_.push_back(std::make_unique<Process>(serve, Environment{}));
    return std::string(absl::StripAsciiWhitespace(key.out));
  }
  // One processor that QEMU plays, with the programs of a folder.
  std::vector<std::string> BoardCommand(
      const std::string& programs, const std::string& cpu,
      const std::vector<std::string>& options) const {
    std::vector<std::string> argv = {
        REGATTA_QEMU,
        "-cpu",
        cpu,
        "-L",
        "/",
        programs + "/regatta-agent",
        "--tracker",
        tracker_,
        "--state",
        State("board"),
        "--cores",
        "0",
        "--exec-prefix",
        absl::StrCat(REGATTA_QEMU " -cpu ", cpu,
                     " -L / -plugin " REGATTA_INSTRUCTION_COUNT)};
    argv.insert(argv.end(), options.begin(), options.end());
    return argv;
  }
  void StartBoard(const std::string& programs, const std::string& cpu,
                  const std::vector<std::string>& options) {
    agents_.push_back(std::make_unique<Process>(
        BoardCommand(programs, cpu, options), Environment{}));
  }
  // The one device, once it is probed; null after a test failure.
  Json Device() {
    Json device;
    const bool there = WaitFor(absl::Seconds(90), [&] {
      if (!agents_.back()->Running()) return true;
      const ProcessResult result = fleet_->Run({"devices", "--json"});
      if (result.exit_code != 0) return false;
      const Json devices = Json::parse(result.out)["devices"];
      if (devices.size() == 1 && devices[0]["health"] != "probing") {
        device = devices[0];
      }
      return !device.is_null();
    });
    EXPECT_TRUE(there) << fleet_->Logs();
    EXPECT_FALSE(device.is_null())
        << agents_.back()->Wait(absl::Seconds(1)).err;
    return device;
  }
  // The board is a simulated Cortex-A72 and says so; five trials on it are
  // right, and the same code has the same time whenever it is measured.
  void ExpectSimulatedBoardThatTunes() {
    const Json device = Device();
    ASSERT_FALSE(device.is_null());
    EXPECT_EQ(device["simulated"], true) << device.dump(1);
    EXPECT_TRUE(absl::StartsWith(device["id"].get<std::string>(), "simulated-"))
        << device.dump(1);
    const std::string device_class = device["device_class"];
    EXPECT_EQ(device_class, "simulated-cortex-a72-1c-instructions");
    EXPECT_TRUE(absl::StrContains(device["target"].get<std::string>(),
                                  "triple=aarch64-linux-gnu,mcpu=cortex-a72"))
        << device["target"];
    EXPECT_TRUE(absl::StrContains(device["driver_version"].get<std::string>(),
                                  "instructions of 1000 ps"));
    for (const char* missing : {"seccomp", "landlock", "tight"}) {
      EXPECT_FALSE(
          absl::StrContains(device["sandbox"].get<std::string>(), missing))
          << device["sandbox"];
    }
    // Only jobs that name it come here.
    const ProcessResult unnamed =
        fleet_->Run({"tune", kWorkload, "--trials", "1"});
    EXPECT_EQ(unnamed.exit_code, 1) << unnamed.out << unnamed.err;

    const Json job =
        fleet_->Document({"tune", kWorkload, "--trials", "6", "--seed", "3",
                          "--device-class", device_class},
                         absl::Seconds(240));
    ASSERT_EQ(job["state"], "done") << job.dump(1) << fleet_->Logs();
    const Json records = fleet_->Document({"records", kWorkload})["records"];
    std::map<std::string, std::set<int64_t>> times;  // by code
    int right = 0;
    for (const Json& record : records) {
      if (record["outcome"] == "duplicate_binary") continue;
      ASSERT_EQ(record["outcome"], "ok") << record.dump(1);
      EXPECT_EQ(record["device_class"], device_class);
      times[record["binary_hash"]].insert(record["time_ns"].get<int64_t>());
      ++right;
    }
    EXPECT_GE(right, 6);
    EXPECT_LT(times.size(), static_cast<size_t>(right))
        << "nothing was measured twice";
    // But for the reading of the count, which the calls of a block share: many
    // in a comparison, fewer in a screening.
    for (const auto& [code, measured] : times) {
      EXPECT_LE(*measured.rbegin() - *measured.begin(), 5)
          << code << " took " << *measured.begin() << " and "
          << *measured.rbegin() << " ns";
    }
    const Json best =
        fleet_->Document({"best", kWorkload, "--device-class", device_class});
    EXPECT_EQ(best["grade"], "exact") << best.dump(1);
  }

  std::unique_ptr<Fleet> fleet_;
  TempDir state_;
  std::string tracker_;
  std::vector<std::unique_ptr<Process>> agents_;
};

TEST_F(ArmAgents, ABoardGetsItsCodeFromABuilderOfAnotherProcessor) {
  const std::string key = StartBuilder();
  StartBoard(kMeasures, "cortex-a72",
             {"--measure-only", "--trust-builder", key});
  ExpectSimulatedBoardThatTunes();
}

TEST_F(ArmAgents, ABoardBuildsForItself) {
  const std::string worker = std::string(kBuilds) + "/regatta-build-worker";
  if (!std::filesystem::exists(worker)) {
    GTEST_SKIP() << "no " << worker
                 << " (deploy/install-packages --arm --arm-compiler; cmake "
                    "--preset aarch64-compiler; cmake --build --preset "
                    "aarch64-compiler)";
  }
  StartBoard(kBuilds, "cortex-a72", {});
  ExpectSimulatedBoardThatTunes();
}

TEST_F(ArmAgents, AnEmulatedAgentHasNoNameThatHidesIt) {
  const std::string key(64, '0');
  for (const char* flag : {"--id", "--device-class"}) {
    const ProcessResult refused = RunProcess(
        BoardCommand(kMeasures, "cortex-a72",
                     {"--measure-only", "--trust-builder", key, flag, "pi4"}),
        {}, absl::Seconds(30));
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_TRUE(absl::StrContains(refused.err, "must begin with"))
        << refused.err;
  }
}

}  // namespace
}  // namespace regatta::testing
