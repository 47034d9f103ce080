// One fleet of unlike boards: processors and an OpenCL device of this machine,
// a simulated GPU, and two boards of 64-bit ARM that QEMU plays. One job tunes
// on all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/e2e/arm_fleet.h"
#include "tests/support/libraries.h"

namespace regatta::testing {
namespace {

const char kWorkload[] = "matmul(m=256,n=256,k=256)";

class FiveClasses : public ArmFleet {
 protected:
  std::string Missing() const override {
    if (std::string arm = ArmFleet::Missing(); !arm.empty()) return arm;
    if (!HasLibrary({"libOpenCL.so.1"})) {
      return "no OpenCL here: install pocl-opencl-icd";
    }
    return MissingNvrtc();
  }
};

TEST_F(FiveClasses, OneJobTunesOnAllAtOnce) {
  StartFleet({"--devices", "cpu,opencl"});
  const std::string key = BuilderKey(fleet().dir() + "/agent");
  StartAgent("gpu",
             {Program("regatta-agent"), "--id", "gpu", "--devices", "cuda",
              "--cuda-driver", REGATTA_LIB_DIR "/libregatta-cuda-sim.so"});
  StartBoard(
      "wall", REGATTA_ARM_BIN_DIR, "cortex-a72", Time::kWallClock,
      {"--id", "simulated-wall", "--measure-only", "--trust-builder", key});
  StartBoard(
      "counted", REGATTA_ARM_BIN_DIR, "cortex-a76", Time::kInstructions,
      {"--id", "simulated-counted", "--measure-only", "--trust-builder", key});
  const Json devices = Devices(5);
  ASSERT_EQ(devices.size(), 5u);

  std::vector<std::string> tune = {
      "tune", kWorkload, "--trials", std::to_string(Scaled(6)), "--seed", "7"};
  std::set<std::string> classes;
  for (const Json& device : devices) {
    const std::string device_class = device["device_class"];
    EXPECT_EQ(device["simulated"], device_class.rfind("simulated-", 0) == 0)
        << device.dump(1);
    EXPECT_TRUE(classes.insert(device_class).second) << device_class;
    tune.insert(tune.end(), {"--device-class", device_class});
  }
  const Json job = fleet().Document(tune, absl::Minutes(20));
  ASSERT_EQ(job["state"], "done") << job.dump(1) << fleet().Logs();
  EXPECT_EQ(job["tasks"].size(), 5u);

  std::set<std::string> schedules;
  for (const std::string& device_class : classes) {
    const Json best =
        fleet().Document({"best", kWorkload, "--device-class", device_class});
    EXPECT_EQ(best["grade"], "exact") << best.dump(1);
    EXPECT_EQ(best["device_class"], device_class);
    schedules.insert(best["schedule"].get<std::string>());
  }
  EXPECT_GE(schedules.size(), 4u) << "unlike boards, the same schedules";

  // On all at once: every board ran something before any had finished.
  std::map<std::string, int64_t> first, last;
  const Json records = fleet().Document({"records", kWorkload})["records"];
  for (const Json& record : records) {
    const std::string device_class = record["device_class"];
    const int64_t at = record["recorded_unix_ms"];
    const auto known = first.emplace(device_class, at);
    known.first->second = std::min(known.first->second, at);
    last[device_class] = std::max(last[device_class], at);
  }
  ASSERT_EQ(first.size(), 5u);
  int64_t latest_start = 0, earliest_end = INT64_MAX;
  for (const std::string& device_class : classes) {
    latest_start = std::max(latest_start, first[device_class]);
    earliest_end = std::min(earliest_end, last[device_class]);
  }
  EXPECT_LT(latest_start, earliest_end);
}

}  // namespace
}  // namespace regatta::testing
