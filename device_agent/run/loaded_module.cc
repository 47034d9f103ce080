#include "device_agent/run/loaded_module.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "device_agent/spawner/memory_file.h"

namespace regatta {

absl::StatusOr<LoadedModule> LoadedModule::Load(const Module& module) {
  ASSIGN_OR_RETURN(UniqueFd file, SealedMemoryFile("module", module.loadable));
  const std::string path = absl::StrCat("/proc/self/fd/", file.get());
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::InternalError(absl::StrCat("loading the module: ", dlerror()));
  }
  const std::string symbol = module.name + "_call";
  LoadedModule loaded;
  loaded.entry_ = reinterpret_cast<Entry>(dlsym(library, symbol.c_str()));
  if (loaded.entry_ == nullptr) {
    return absl::InternalError(absl::StrCat("the module exports no ", symbol));
  }
  return loaded;
}

}  // namespace regatta
