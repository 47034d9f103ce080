// A board with devices of several kinds.
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/fleet.h"

namespace regatta::testing {
namespace {

const char kWorkload[] = "matmul(m=64,n=64,k=64)";

TEST(Devices, OneAgentServesItsProcessorsAndItsOpenClDevice) {
  Fleet fleet({"--devices", "cpu,opencl"});
  ASSERT_TRUE(fleet.Ready());
  const Json listed = fleet.Document({"devices"})["devices"];
  Json cpu, opencl;
  for (const Json& device : listed) {
    (device["kind"] == "opencl" ? opencl : cpu) = device;
  }
  ASSERT_EQ(cpu["kind"], "cpu");
  EXPECT_EQ(cpu["driver_version"], nullptr);
  if (opencl.is_null()) {
    GTEST_SKIP() << "no OpenCL device here: install pocl-opencl-icd or a GPU's "
                    "driver";
  }
  EXPECT_EQ(opencl["agent"], cpu["agent"]);
  EXPECT_NE(opencl["id"], cpu["id"]);
  EXPECT_NE(opencl["driver_version"], nullptr);
  EXPECT_FALSE(opencl["simulated"]);
  const std::string device_class = opencl["device_class"];
  EXPECT_EQ(device_class.rfind("opencl-", 0), 0u) << device_class;

  const Json job = fleet.Document({"tune", kWorkload, "--trials", "4", "--seed",
                                   "3", "--device-class", device_class},
                                  absl::Seconds(180));
  EXPECT_EQ(job["state"], "done") << job.dump(1);
  const Json best =
      fleet.Document({"best", kWorkload, "--device-class", device_class});
  EXPECT_EQ(best["device_class"], device_class);
  EXPECT_EQ(best["grade"], "exact") << best.dump(1);
  // The processors are a class of their own, with answers of their own.
  const Json other = fleet.Document({"best", kWorkload, "--device-class",
                                     cpu["device_class"].get<std::string>()});
  EXPECT_NE(other["grade"], "exact") << other.dump(1);
  EXPECT_EQ(fleet.Stop().exit_code, 0);
}

TEST(Devices, AnUnknownKindEndsUpWithTheReason) {
  Fleet fleet({"--devices", "cpu,abacus"});
  const ProcessResult ended = fleet.up().Wait(absl::Seconds(30));
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_NE(ended.err.find("abacus"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace regatta::testing
