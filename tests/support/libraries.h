// Which shared libraries this machine has, for tests that need one.
#ifndef REGATTA_TESTS_SUPPORT_LIBRARIES_H_
#define REGATTA_TESTS_SUPPORT_LIBRARIES_H_

#include <dlfcn.h>

#include <cstdlib>
#include <initializer_list>
#include <string>

namespace regatta::testing {

// Whether one of them can be opened. What was opened is closed again.
inline bool HasLibrary(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) continue;
    dlclose(library);
    return true;
  }
  return false;
}

// Why no build worker here compiles for CUDA; "": one does.
inline std::string MissingNvrtc() {
  if (std::getenv("CUDA_PATH") != nullptr ||
      HasLibrary({"libnvrtc.so.13", "libnvrtc.so.12",
                  "/usr/local/cuda/lib64/libnvrtc.so.13",
                  "/usr/local/cuda/lib64/libnvrtc.so.12"})) {
    return "";
  }
  return "no NVRTC here: install a CUDA toolkit from 12 on";
}

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_SUPPORT_LIBRARIES_H_
