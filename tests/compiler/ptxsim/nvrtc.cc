#include "tests/compiler/ptxsim/nvrtc.h"

#include <dlfcn.h>

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta::ptxsim {
namespace {

// nvrtcProgram and nvrtcResult are an opaque pointer and an enumeration whose
// zero is success.
using Program = void*;
using GetSize = int (*)(Program, size_t*);
using GetText = int (*)(Program, char*);

struct Nvrtc {
  int (*create)(Program*, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  GetSize log_size = nullptr, ptx_size = nullptr, cubin_size = nullptr;
  GetText log = nullptr, ptx = nullptr, cubin = nullptr;
  std::string missing;
};

template <typename F>
void Find(void* library, const char* name, F& function, Nvrtc& nvrtc) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function == nullptr) nvrtc.missing = absl::StrCat("NVRTC without ", name);
}

Nvrtc Open() {
  Nvrtc nvrtc;
  void* library = nullptr;
  for (const char* path :
       {"libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13",
        "/usr/local/cuda-13.0/lib/libnvrtc.so.13",
        "/usr/local/cuda-13.0/lib64/libnvrtc.so.13"}) {
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    nvrtc.missing = absl::StrCat("no NVRTC 13 here: ", dlerror());
    return nvrtc;
  }
  Find(library, "nvrtcCreateProgram", nvrtc.create, nvrtc);
  Find(library, "nvrtcCompileProgram", nvrtc.compile, nvrtc);
  Find(library, "nvrtcDestroyProgram", nvrtc.destroy, nvrtc);
  Find(library, "nvrtcGetProgramLogSize", nvrtc.log_size, nvrtc);
  Find(library, "nvrtcGetProgramLog", nvrtc.log, nvrtc);
  Find(library, "nvrtcGetPTXSize", nvrtc.ptx_size, nvrtc);
  Find(library, "nvrtcGetPTX", nvrtc.ptx, nvrtc);
  Find(library, "nvrtcGetCUBINSize", nvrtc.cubin_size, nvrtc);
  Find(library, "nvrtcGetCUBIN", nvrtc.cubin, nvrtc);
  return nvrtc;
}

const Nvrtc& Library() {
  static const Nvrtc* const kLibrary = new Nvrtc(Open());
  return *kLibrary;
}

std::string Fetch(Program program, GetSize size, GetText text) {
  size_t bytes = 0;
  if (size(program, &bytes) != 0 || bytes == 0) return "";
  std::string result(bytes, '\0');
  return text(program, result.data()) == 0 ? result : "";
}

}  // namespace

std::string WhyNoNvrtc() { return Library().missing; }

absl::StatusOr<Compiled> CompileCuda(const std::string& source,
                                     const std::string& architecture,
                                     const std::vector<std::string>& options) {
  const Nvrtc& nvrtc = Library();
  if (!nvrtc.missing.empty()) return absl::UnavailableError(nvrtc.missing);
  Program program = nullptr;
  if (nvrtc.create(&program, source.c_str(), "kernel.cu", 0, nullptr,
                   nullptr) != 0) {
    return absl::InternalError("nvrtcCreateProgram failed");
  }
  const std::string target = absl::StrCat("--gpu-architecture=", architecture);
  std::vector<const char*> flags = {target.c_str()};
  for (const std::string& option : options) flags.push_back(option.c_str());
  const int result =
      nvrtc.compile(program, static_cast<int>(flags.size()), flags.data());
  Compiled compiled;
  if (result == 0) {
    compiled.ptx = Fetch(program, nvrtc.ptx_size, nvrtc.ptx);
    if (architecture.rfind("sm_", 0) == 0) {
      compiled.cubin = Fetch(program, nvrtc.cubin_size, nvrtc.cubin);
    }
  }
  const std::string log = Fetch(program, nvrtc.log_size, nvrtc.log);
  nvrtc.destroy(&program);
  if (result != 0) return absl::InvalidArgumentError(log);
  return compiled;
}

}  // namespace regatta::ptxsim
