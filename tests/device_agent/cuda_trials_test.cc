// What trials on a simulated CUDA device hold beside the contract of all
// devices: run workers are kept from one trial to the next, and times are the
// model's.
#include <set>

#include "device_agent/devices/cuda_provider.h"
#include "gmock/gmock.h"
#include "tests/device_agent/device_contract/device_trials.h"

namespace regatta {
namespace {

using ::testing::StartsWith;

class CudaTrialsTest : public testing::DeviceTrialsTest {
 protected:
  CudaTrialsTest() : DeviceTrialsTest(testing::CudaKind()) {}
};

TEST_F(CudaTrialsTest, ASimulatedDeviceSaysThatItIsOneEverywhere) {
  EXPECT_EQ(device_.info.device_id(), "simulated-lab-cuda0");
  EXPECT_EQ(device_.info.device_class(), "simulated-cuda-sm_80");
  EXPECT_TRUE(device_.info.simulated());
  EXPECT_THAT(device_.info.target(), StartsWith("cuda,mcpu=sm_80,"));
  EXPECT_EQ(device_.info.driver_version(), "CUDA, driver of CUDA 13.0");
  EXPECT_EQ(device_.info.marketing_name(), "Simulated sm_80");
}

TEST_F(CudaTrialsTest, WorkersAreKeptWhileAllGoesWellAndReplacedAfterAFault) {
  StartDevice();
  ASSERT_EQ(RunPlanted("honest").outcome(), v1::OUTCOME_OK);
  const std::set<pid_t> first = KeptWorkers();
  ASSERT_EQ(first.size(), 1u);
  for (int i = 0; i < 5; ++i) {
    const v1::TrialResult result = RunPlanted(i % 2 == 0 ? "slow" : "honest");
    ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.detail();
    EXPECT_EQ(KeptWorkers(), first) << i;
  }
  EXPECT_EQ(RunPlanted("trap").outcome(), v1::OUTCOME_CRASHED);
  ASSERT_EQ(RunPlanted("honest").outcome(), v1::OUTCOME_OK);
  ASSERT_EQ(KeptWorkers().size(), 1u);
  EXPECT_NE(KeptWorkers(), first);
}

TEST_F(CudaTrialsTest, TimesAreTheModelsAndTheSameEveryTime) {
  StartDevice();
  const v1::TrialResult one = RunPlanted("honest");
  const v1::TrialResult two = RunPlanted("honest");
  const v1::TrialResult slow = RunPlanted("slow");
  ASSERT_EQ(one.outcome(), v1::OUTCOME_OK) << one.detail();
  ASSERT_EQ(slow.outcome(), v1::OUTCOME_OK) << slow.detail();
  EXPECT_EQ(one.time_ns(), two.time_ns());
  ASSERT_EQ(one.blocks_size(), two.blocks_size());
  for (int i = 0; i < one.blocks_size(); ++i) {
    EXPECT_EQ(one.blocks(i).SerializeAsString(),
              two.blocks(i).SerializeAsString());
  }
  // 2000 dependent multiply-adds at 1.41 GHz take at least 4 cycles each.
  EXPECT_GT(slow.time_ns(), one.time_ns() + 2'000);
}

TEST(CudaClassTest, NamesAreStableAndReadable) {
  v1::BoardDevice device;
  device.set_name("NVIDIA H200");
  device.set_compute_units(132);
  device.set_architecture("sm_90");
  EXPECT_EQ(CudaDeviceClass(device), "cuda-nvidia-h200-132sm");
  device.set_name("NVIDIA GeForce RTX 4090 (Laptop)");
  device.set_compute_units(76);
  EXPECT_EQ(CudaDeviceClass(device),
            "cuda-nvidia-geforce-rtx-4090-laptop-76sm");
  device.set_simulated(true);
  EXPECT_EQ(CudaDeviceClass(device), "simulated-cuda-sm_90");
}

}  // namespace
}  // namespace regatta
