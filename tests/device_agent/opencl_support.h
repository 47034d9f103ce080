// For tests that run OpenCL kernels: skips where there is no device, and gives
// PoCL, whose kernels are compiled code on disk, a cache of this process's own.
#ifndef REGATTA_TESTS_DEVICE_AGENT_OPENCL_SUPPORT_H_
#define REGATTA_TESTS_DEVICE_AGENT_OPENCL_SUPPORT_H_

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "device_agent/run/opencl_device.h"
#include "device_agent/run/opencl_runtime.h"
#include "gtest/gtest.h"
#include "tests/device_agent/device_support.h"

namespace regatta::testing {

// The first device; Unavailable, with what to install, where there is none. The
// cache is made before the driver is loaded and removed at exit.
inline absl::StatusOr<v1::BoardDevice> FirstOpenClDevice() {
  struct Cache {
    Cache() : path(::testing::TempDir() + "regatta-pocl-XXXXXX") {
      EXPECT_NE(mkdtemp(path.data()), nullptr);
      setenv("POCL_CACHE_DIR", path.c_str(), 1);
    }
    ~Cache() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::string path;
  };
  static const Cache cache;
  ASSIGN_OR_RETURN(const v1::DeviceList list, ListOpenClDevices());
  if (!list.devices().empty()) return list.devices(0);
  return absl::UnavailableError(
      "no OpenCL device here: install pocl-opencl-icd or a GPU's driver");
}

class OpenClTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto device = FirstOpenClDevice();
    if (absl::IsUnavailable(device.status())) {
      GTEST_SKIP() << device.status().message();
    }
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *device;
  }

  v1::BoardDevice device_;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_DEVICE_AGENT_OPENCL_SUPPORT_H_
