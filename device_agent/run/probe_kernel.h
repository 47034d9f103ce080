// One kernel of a probe's own, loaded, warm and timed, on any kind of device.
//
// Not thread-safe.
#ifndef REGATTA_DEVICE_AGENT_RUN_PROBE_KERNEL_H_
#define REGATTA_DEVICE_AGENT_RUN_PROBE_KERNEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/module/module.h"
#include "device_agent/run/module_runtime.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {

// A module for `target` of one kernel `entry` with `groups` groups of `group`
// work-items, which reads `in_bytes` and writes a float per work-item.
Module OneKernel(std::string target, std::string loadable,
                 const std::string& entry, int64_t in_bytes, int64_t groups,
                 int64_t group);

class ProbeKernel {
 public:
  using Create = RuntimeOrFailure (*)(const Module&, const RuntimeOptions&);

  // On the device that `selector` names; `fill` writes the input of
  // OneKernel's `in_bytes`. Unavailable with what the driver said.
  static absl::StatusOr<std::unique_ptr<ProbeKernel>> Load(
      Create create, const std::string& selector, Module module,
      const std::function<void(char* input)>& fill);

  // Nanoseconds of one call: the least of many windows of 2 ms.
  absl::StatusOr<double> Best();
  absl::StatusOr<int64_t> Time(int64_t calls);
  // How many calls take so long, at least 1.
  int64_t CallsIn(int64_t ns) const;
  // How far two timings of this kernel differ.
  absl::StatusOr<double> Noise();

 private:
  explicit ProbeKernel(Module module) : module_(std::move(module)) {}
  absl::Status Start(Create create, const std::string& selector,
                     const std::function<void(char*)>& fill);

  const Module module_;
  std::vector<GuardedMemory> inputs_;
  std::unique_ptr<ModuleRuntime> runtime_;  // after what it reads
  int64_t call_ns_ = 1;
};

// The one that `selector` names, of those that a driver lists; "" names the
// first. Unavailable, with the kind as people write it, when it is not there.
absl::StatusOr<v1::BoardDevice> DeviceToProbe(const v1::DeviceList& list,
                                              const std::string& kind,
                                              const std::string& selector);

// Bytes to read so that caches do not matter, of a device with so much memory.
int64_t ProbeReadBytes(const v1::BoardDevice& device);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_PROBE_KERNEL_H_
