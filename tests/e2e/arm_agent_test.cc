// Agents of simulated ARM boards: the board's programs for 64-bit ARM, run by
// QEMU, which counts instructions for time.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/arm_fleet.h"

namespace regatta::testing {
namespace {

const char kWorkload[] = "matmul(m=64,n=64,k=64)";
const char kMeasures[] = REGATTA_ARM_BIN_DIR;
const char kBuilds[] = REGATTA_ARM_COMPILER_BIN_DIR;

class ArmAgents : public ArmFleet {
 protected:
  void SetUp() override {
    ArmFleet::SetUp();
    if (!IsSkipped()) StartFleet({"--no-agent"});
  }
  // The board is a simulated Cortex-A72 and says so; five trials on it are
  // right, and the same code has the same time whenever it is measured.
  void ExpectSimulatedBoardThatTunes() {
    const Json devices = Devices(1);
    ASSERT_FALSE(devices.is_null());
    const Json& device = devices[0];
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
        fleet().Run({"tune", kWorkload, "--trials", "1"});
    EXPECT_EQ(unnamed.exit_code, 1) << unnamed.out << unnamed.err;

    const Json job =
        fleet().Document({"tune", kWorkload, "--trials", "6", "--seed", "3",
                          "--device-class", device_class},
                         absl::Seconds(240));
    ASSERT_EQ(job["state"], "done") << job.dump(1) << fleet().Logs();
    const Json records = fleet().Document({"records", kWorkload})["records"];
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
        fleet().Document({"best", kWorkload, "--device-class", device_class});
    EXPECT_EQ(best["grade"], "exact") << best.dump(1);
  }
};

TEST_F(ArmAgents, ABoardGetsItsCodeFromABuilderOfAnotherProcessor) {
  const std::string key = StartBuilder();
  StartBoard("board", kMeasures, "cortex-a72", Time::kInstructions,
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
  StartBoard("board", kBuilds, "cortex-a72", Time::kInstructions, {});
  ExpectSimulatedBoardThatTunes();
}

TEST_F(ArmAgents, AnEmulatedAgentHasNoNameThatHidesIt) {
  const std::string key(64, '0');
  for (const char* flag : {"--id", "--device-class"}) {
    const ProcessResult refused = RunProcess(
        BoardCommand("board", kMeasures, "cortex-a72", Time::kInstructions,
                     {"--measure-only", "--trust-builder", key, flag, "pi4"}),
        {}, absl::Seconds(30));
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_TRUE(absl::StrContains(refused.err, "must begin with"))
        << refused.err;
  }
}

}  // namespace
}  // namespace regatta::testing
