#include "tests/device_agent/device_contract/device_kind.h"

namespace regatta::testing {

const std::vector<DeviceKind>& DeviceKinds() {
  static const auto& kinds =
      *new std::vector<DeviceKind>{OpenClKind(), CudaKind()};
  return kinds;
}

}  // namespace regatta::testing
