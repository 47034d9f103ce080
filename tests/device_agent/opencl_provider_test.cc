// Names of the classes of OpenCL devices.
#include "device_agent/devices/opencl_provider.h"

#include "gtest/gtest.h"

namespace regatta {
namespace {

TEST(OpenClClassTest, NamesAreStableAndReadable) {
  v1::BoardDevice device;
  device.set_platform("Portable Computing Language");
  device.set_name("pthread-AMD EPYC 9654 96-Core Processor");
  device.set_compute_units(2);
  device.set_on_host_cores(true);
  EXPECT_EQ(OpenClDeviceClass(device, "znver4-2c"), "opencl-pocl-znver4-2c");
  device.set_platform("Intel(R) OpenCL");
  EXPECT_EQ(OpenClDeviceClass(device, "znver4-2c"),
            "opencl-intel-r-opencl-znver4-2c");
  device.set_on_host_cores(false);
  device.set_platform("ARM Platform");
  device.set_name("Mali-G610 r0p0 ");
  device.set_compute_units(4);
  EXPECT_EQ(OpenClDeviceClass(device, "x"), "opencl-mali-g610-r0p0-4cu");
}

}  // namespace
}  // namespace regatta
