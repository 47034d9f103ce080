// A CUDA board that is simulated: the agent's own way through a CUDA driver,
// with a simulator in its place.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/e2e/fleet.h"
#include "tests/support/libraries.h"

namespace regatta::testing {
namespace {

const char kWorkload[] = "matmul(m=64,n=64,k=64)";
const char kClass[] = "simulated-cuda-sm_80";

std::vector<std::string> WithSimulatedCuda(const std::string& kinds) {
  return {"--devices", kinds, "--cuda-driver",
          REGATTA_LIB_DIR "/libregatta-cuda-sim.so"};
}

using Times = std::map<std::string, double>;  // of schedules, in nanoseconds

// Tunes from scratch. A schedule that is timed several times takes the same
// time whenever, in whichever way.
Times TuneOnce() {
  Fleet fleet(WithSimulatedCuda("cuda"));
  EXPECT_TRUE(fleet.Ready());
  const Json job = fleet.Document({"tune", kWorkload, "--trials", "20",
                                   "--seed", "5", "--device-class", kClass},
                                  absl::Seconds(240));
  EXPECT_EQ(job["state"], "done") << job.dump(1);
  const Json best =
      fleet.Document({"best", kWorkload, "--device-class", kClass});
  EXPECT_EQ(best["grade"], "exact") << best.dump(1);
  EXPECT_EQ(best["device_class"], kClass);
  const Json records =
      fleet.Document({"records", kWorkload, "--device-class", kClass});
  Times times;
  for (const Json& record : records["records"]) {
    EXPECT_EQ(record["device_class"], kClass);
    if (record["outcome"] != "ok") continue;
    const double time_ns = record["time_ns"];
    const auto known = times.emplace(record["schedule"], time_ns);
    EXPECT_EQ(known.first->second, time_ns) << record.dump(1);
  }
  EXPECT_EQ(fleet.Stop().exit_code, 0);
  return times;
}

TEST(SimulatedCuda, TuningTwiceFromScratchGivesTheSameTimes) {
  if (const std::string missing = MissingNvrtc(); !missing.empty()) {
    GTEST_SKIP() << missing;
  }
  const Times first = TuneOnce(), second = TuneOnce();
  EXPECT_GE(first.size(), 10u);
  // What is tried depends on when results come in; what it takes does not.
  int common = 0;
  for (const auto& [schedule, time_ns] : first) {
    const auto again = second.find(schedule);
    if (again == second.end()) continue;
    ++common;
    EXPECT_EQ(again->second, time_ns) << schedule;
  }
  EXPECT_GE(common, 5);
}

TEST(SimulatedCuda, IsJoinedOnlyByJobsThatNameIt) {
  if (const std::string missing = MissingNvrtc(); !missing.empty()) {
    GTEST_SKIP() << missing;
  }
  Fleet fleet(WithSimulatedCuda("cpu,cuda"));
  ASSERT_TRUE(fleet.Ready());
  Json cpu, cuda;
  const Json all = fleet.Document({"devices"})["devices"];
  for (const Json& device : all) {
    (device["kind"] == "cuda" ? cuda : cpu) = device;
  }
  ASSERT_EQ(cuda["kind"], "cuda");
  EXPECT_TRUE(cuda["simulated"]);
  EXPECT_EQ(cuda["device_class"], kClass);
  EXPECT_EQ(cuda["id"].get<std::string>().rfind("simulated-", 0), 0u);
  EXPECT_FALSE(cpu["simulated"]);
  const ProcessResult listed = fleet.Run({"devices"});
  EXPECT_NE(listed.out.find(std::string(kClass) + " (simulated)"),
            std::string::npos)
      << listed.out;

  const Json job = fleet.Document({"tune", kWorkload, "--trials", "3"});
  ASSERT_EQ(job["tasks"].size(), 1u) << job.dump(1);
  EXPECT_EQ(job["tasks"][0]["device_class"], cpu["device_class"]);
  const Json best =
      fleet.Document({"best", kWorkload, "--device-class", kClass});
  EXPECT_NE(best["grade"], "exact") << best.dump(1);
  EXPECT_EQ(fleet.Stop().exit_code, 0);
}

TEST(SimulatedCuda, AFileThatIsNoDriverIsRefusedWithItsName) {
  Fleet fleet({"--devices", "cuda", "--cuda-driver", "/nowhere/libcuda.so"});
  const ProcessResult ended = fleet.up().Wait(absl::Seconds(30));
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_NE(ended.err.find("/nowhere/libcuda.so"), std::string::npos)
      << ended.err;
}

TEST(SimulatedCuda, AMachineWithoutCudaServesTheRest) {
  if (HasLibrary({"libcuda.so.1"})) {
    GTEST_SKIP() << "a CUDA driver is installed here";
  }
  Fleet fleet({"--devices", "cpu,cuda"});
  ASSERT_TRUE(fleet.Ready());
  const Json devices = fleet.Document({"devices"})["devices"];
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0]["kind"], "cpu");
  EXPECT_NE(fleet.Logs().find("no devices of kind cuda"), std::string::npos);
  EXPECT_EQ(fleet.Stop().exit_code, 0);
}

}  // namespace
}  // namespace regatta::testing
