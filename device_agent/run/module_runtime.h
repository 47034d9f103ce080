// One module's code and buffers on the device that it was made for: the only
// thing that a run session knows of devices. runtime_list.h lists the kinds.
//
// What goes wrong is told as a RunFailure with its outcome: the candidate's own
// (it does not compile, asks for more than the device has, crashes) or the
// board's (OUTCOME_DEVICE_FAULT). After a failure only the destructor may be
// called. Not thread-safe; a process has one.
#ifndef REGATTA_DEVICE_AGENT_RUN_MODULE_RUNTIME_H_
#define REGATTA_DEVICE_AGENT_RUN_MODULE_RUNTIME_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "compiler/module/module.h"
#include "device_agent/verify/guarded_memory.h"
#include "regatta/v1/worker.pb.h"

namespace regatta {

// Absent: all went well.
using MaybeFailure = std::optional<v1::RunFailure>;

MaybeFailure Failed(v1::Outcome outcome, std::string detail);

// "output C": as messages name a module's buffer.
std::string NameOf(const ModuleBuffer& buffer);

struct RuntimeOptions {
  const Clock* clock = nullptr;  // times calls; outlives the runtime
  // Real time that a device's own clock is held against; null: it is not.
  const Clock* host_clock = nullptr;
  std::string device;       // which one, as the kind names them; "": any
  int64_t evict_bytes = 0;  // what Evict streams through; 0: never called
};

class ModuleRuntime {
 public:
  virtual ~ModuleRuntime() = default;

  // What the kernels shall read, in the module's order: shared where the device
  // sees host memory, else copied. REQUIRES: called once, before anything else;
  // the memory outlives this and does not change.
  virtual MaybeFailure SetInputs(const std::vector<GuardedMemory>& inputs) = 0;
  // Takes from this process what calls do not need any more: the tightest
  // sandbox that the device's driver leaves room for. Once, before the first
  // call. An error means that the module must not be called.
  virtual absl::Status Tighten() = 0;
  // Fills outputs and workspace with `pattern`, and what surrounds buffers in
  // the device's memory with known bytes.
  virtual MaybeFailure Poison(uint8_t pattern) = 0;
  // One call, finished when this returns.
  virtual MaybeFailure Call() = 0;
  // `calls` calls back to back and the time that they took by the device's own
  // clock, where it has one. REQUIRES: calls >= 1.
  virtual MaybeFailure TimeCalls(int64_t calls, int64_t* elapsed_ns) = 0;
  // Drives everything else out of the device's caches. REQUIRES: evict_bytes
  // was given.
  virtual MaybeFailure Evict() = 0;
  // The outputs as the last call left them, in host memory, in the module's
  // order; valid until the next call of anything here.
  virtual MaybeFailure ReadOutputs(std::vector<const void*>* outputs) = 0;
  // Sets `damage` to "" or what was written outside outputs and workspace since
  // Poison, as far as the device's memory shows it.
  virtual MaybeFailure FindDamage(std::string* damage) = 0;
};

// A runtime ready for SetInputs, or why there is none.
struct RuntimeOrFailure {
  std::unique_ptr<ModuleRuntime> runtime;
  MaybeFailure failure;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_MODULE_RUNTIME_H_
