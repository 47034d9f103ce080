// A module's code in this process.
#ifndef REGATTA_DEVICE_AGENT_RUN_LOADED_MODULE_H_
#define REGATTA_DEVICE_AGENT_RUN_LOADED_MODULE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/module/module.h"

namespace regatta {

// Never unloaded: threads of the module may outlive every call.
class LoadedModule {
 public:
  // The exported function NAME_call: pointers to inputs then outputs, and the
  // workspace; 0 or a code of c_interface.h.
  using Entry = int (*)(void* const* buffers, void* workspace);

  // Internal with the loader's message, or when NAME_call is missing.
  static absl::StatusOr<LoadedModule> Load(const Module& module);
  Entry entry() const { return entry_; }

 private:
  Entry entry_ = nullptr;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_LOADED_MODULE_H_
