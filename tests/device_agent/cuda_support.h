// For tests of the CUDA runtime over the simulated driver.
#ifndef REGATTA_TESTS_DEVICE_AGENT_CUDA_SUPPORT_H_
#define REGATTA_TESTS_DEVICE_AGENT_CUDA_SUPPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "compiler/module/cuda_binary.h"
#include "device_agent/run/cuda_api.h"
#include "device_agent/run/cuda_device.h"
#include "tests/device_agent/device_support.h"

namespace regatta::testing {

// What --cuda-driver gets.
inline constexpr char kCudaSim[] = REGATTA_LIB_DIR "/libregatta-cuda-sim.so";

// The first simulated device of this process: sm_80 unless REGATTA_CUDA_SIM
// said else before.
inline absl::StatusOr<v1::BoardDevice> FirstCudaDevice() {
  cuda::UseDriver(kCudaSim);
  ASSIGN_OR_RETURN(const v1::DeviceList list, ListCudaDevices());
  if (list.devices().empty()) return absl::NotFoundError("no simulated GPU");
  return list.devices(0);
}

class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto device = FirstCudaDevice();
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *device;
  }
  v1::BoardDevice device_;
};

// A CUDA module of PTX alone.
inline ModuleBuilder CudaModule(const std::string& ptx) {
  return ModuleBuilder(
      SerializeCudaBinary({.arch = "", .cubin = "", .ptx = ptx}), "cuda");
}

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_DEVICE_AGENT_CUDA_SUPPORT_H_
