// NVRTC, NVIDIA's compiler of CUDA C++ as a library, opened at run time: this
// program builds and starts without it. Functions are declared here, after its
// manual; no header of CUDA is needed.
#ifndef REGATTA_COMPILER_CODEGEN_CUDA_NVRTC_H_
#define REGATTA_COMPILER_CODEGEN_CUDA_NVRTC_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/shared_library.h"

namespace regatta::cuda {

// Thread-safe; compilations run side by side.
class Nvrtc {
 public:
  // Opens the library the first time, under the names of the versions that are
  // known and in the toolkit's folders ($CUDA_PATH first): the newest, of CUDA
  // 12 or later, whose code a driver of CUDA `driver` loads, one of that
  // version or older; 0: any. One that does not start is passed over.
  // Unavailable, with what was tried, why it would not do and what to install,
  // when there is none; stays so for this process. It takes about 0.3 s the
  // first time and 60 to 100 MB.
  static absl::StatusOr<const Nvrtc*> Load(int driver = 0);

  // "NVRTC 13.0".
  const std::string& version() const { return version_; }
  // Numbers of what it compiles for, ascending: 80 for sm_80.
  const std::vector<int>& architectures() const { return architectures_; }

  // What Load passed over before it opened this one, with the reasons, and
  // whether $CUDA_PATH, where it is set, names a folder without any; "":
  // nothing.
  const std::string& passed_over() const { return passed_over_; }

  struct Compiled {
    std::string cubin;
    std::string ptx;
    std::string log;  // warnings
  };
  // `arch` is a real one: "sm_80". Deterministic. InvalidArgument with the log
  // when the source is wrong; DeadlineExceeded when it takes longer than
  // `limit` by `clock`, as far as this version can be stopped; Internal for the
  // rest.
  absl::StatusOr<Compiled> Compile(const std::string& source,
                                   const std::string& arch,
                                   absl::Duration limit,
                                   const Clock& clock) const;

 private:
  using Program = struct ProgramObject*;

  static absl::StatusOr<const Nvrtc*> Open(int driver);
  // FailedPrecondition: it is there, and no use.
  static absl::StatusOr<Nvrtc*> Start(const std::string& path);
  absl::Status Begin(SharedLibrary& library);
  void Resolve(SharedLibrary& library);
  std::string ErrorText(int code) const;

  int major_ = 0;
  std::string version_;
  std::string passed_over_;
  std::vector<int> architectures_;

  const char* (*get_error_string_)(int) = nullptr;
  int (*get_version_)(int*, int*) = nullptr;
  int (*get_num_archs_)(int*) = nullptr;
  int (*get_archs_)(int*) = nullptr;
  int (*create_)(Program*, const char*, const char*, int, const char* const*,
                 const char* const*) = nullptr;
  int (*destroy_)(Program*) = nullptr;
  int (*compile_)(Program, int, const char* const*) = nullptr;
  int (*ptx_size_)(Program, size_t*) = nullptr;
  int (*ptx_)(Program, char*) = nullptr;
  int (*cubin_size_)(Program, size_t*) = nullptr;
  int (*cubin_)(Program, char*) = nullptr;
  int (*log_size_)(Program, size_t*) = nullptr;
  int (*log_)(Program, char*) = nullptr;
  // Absent in older versions, which cannot be stopped.
  int (*set_flow_callback_)(Program, int (*)(void*, void*), void*) = nullptr;
};

// The version of the library that Load opens, "no NVRTC" when there is none.
std::string NvrtcVersion(int driver = 0);

}  // namespace regatta::cuda

#endif  // REGATTA_COMPILER_CODEGEN_CUDA_NVRTC_H_
