// The kinds of devices that run workers serve: add a kind here.
#ifndef REGATTA_DEVICE_AGENT_RUN_RUNTIME_LIST_H_
#define REGATTA_DEVICE_AGENT_RUN_RUNTIME_LIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/module/module.h"
#include "device_agent/run/module_runtime.h"

namespace regatta {

struct RuntimeKind {
  std::string_view kind;  // first word of a module's target
  RuntimeOrFailure (*create)(const Module&, const RuntimeOptions&);
  // The board's devices of this kind, with an error for each that is there and
  // fails; and what one of them can do.
  absl::StatusOr<v1::DeviceList> (*list)();
  absl::StatusOr<v1::ProbeReport> (*probe)(const std::string& device);
  // Makes what all modules on a device share, or sees whether it still works;
  // null where nothing is shared: such workers are not used again.
  absl::Status (*prepare)(const std::string& device);
};

absl::Span<const RuntimeKind> RuntimeKinds();

// A runtime for the module's target. A kind that is not listed is the board's
// failure: its agent took work that it cannot do. REQUIRES: `module` and the
// clock outlive the runtime.
RuntimeOrFailure CreateRuntime(const Module& module,
                               const RuntimeOptions& options);

// NotFound for a kind that run workers do not probe.
absl::StatusOr<v1::ProbeReport> ProbeDevice(std::string_view kind,
                                            const std::string& device);

// NotFound for a kind with nothing to prepare.
absl::Status PrepareDevice(std::string_view kind, const std::string& device);

// The devices of `kinds`; a kind whose driver fails is an error in the list.
v1::DeviceList ListDevices(const std::vector<std::string>& kinds);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_RUNTIME_LIST_H_
