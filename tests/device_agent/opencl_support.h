// For tests that run OpenCL kernels: skips where there is no device, and gives
// PoCL, whose kernels are compiled code on disk, a cache of this process's own.
#ifndef REGATTA_TESTS_DEVICE_AGENT_OPENCL_SUPPORT_H_
#define REGATTA_TESTS_DEVICE_AGENT_OPENCL_SUPPORT_H_

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "device_agent/run/opencl_device.h"
#include "device_agent/run/opencl_runtime.h"
#include "gtest/gtest.h"
#include "tests/device_agent/device_support.h"

namespace regatta::testing {

// The first device; made before the driver is loaded, removed at exit.
class OpenClTest : public ::testing::Test {
 protected:
  void SetUp() override {
    static const Cache cache;
    const auto devices = ListOpenClDevices();
    ASSERT_TRUE(devices.ok()) << devices.status();
    if (devices->empty()) {
      GTEST_SKIP() << "no OpenCL device here: install pocl-opencl-icd or a "
                      "GPU's driver";
    }
    device_ = devices->front();
  }

  v1::BoardDevice device_;

 private:
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
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_DEVICE_AGENT_OPENCL_SUPPORT_H_
