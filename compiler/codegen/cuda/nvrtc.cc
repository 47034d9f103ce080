#include "compiler/codegen/cuda/nvrtc.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/elf_file.h"
#include "base/status_macros.h"

namespace regatta::cuda {
namespace {

constexpr int kSuccess = 0;
constexpr int kErrorCompilation = 6;
// Older ones do not know what is generated.
constexpr int kLeastMajor = 12;
constexpr char kToolkitVariable[] = "CUDA_PATH";
struct LibraryName {
  const char* name;
  int major;  // 0: whichever it is
};
constexpr LibraryName kNames[] = {
    {"libnvrtc.so.13", 13}, {"libnvrtc.so.12", 12}, {"libnvrtc.so", 0}};

std::vector<std::string> Folders() {
  std::vector<std::string> folders;
  if (const char* path = std::getenv(kToolkitVariable)) {
    folders.push_back(absl::StrCat(path, "/lib64/"));
  }
  folders.push_back("");  // where the system looks
  folders.push_back("/usr/local/cuda/lib64/");
  return folders;
}

struct Watch {
  const Clock& clock;
  SteadyTime deadline;
  bool stopped = false;
};

// NVRTC calls it now and then; anything but 0 stops the compilation.
int OnFlow(void* payload, void*) {
  auto* watch = static_cast<Watch*>(payload);
  watch->stopped = watch->clock.Steady() > watch->deadline;
  return watch->stopped ? 1 : 0;
}

}  // namespace

absl::StatusOr<const Nvrtc*> Nvrtc::Load(int driver) {
  static std::mutex& mutex = *new std::mutex;
  static auto& loaded = *new std::map<int, absl::StatusOr<const Nvrtc*>>;
  std::lock_guard<std::mutex> lock(mutex);
  const auto known = loaded.find(driver);
  if (known != loaded.end()) return known->second;
  return loaded.emplace(driver, Open(driver)).first->second;
}

absl::StatusOr<const Nvrtc*> Nvrtc::Open(int driver) {
  const char* named = std::getenv(kToolkitVariable);
  std::vector<std::string> absent, unfit;
  for (const std::string& folder : Folders()) {
    for (const LibraryName& known : kNames) {
      if (driver > 0 && known.major > driver) continue;
      const std::string path = absl::StrCat(folder, known.name);
      const absl::StatusOr<Nvrtc*> nvrtc = Start(path);
      if (nvrtc.ok() && (driver == 0 || (*nvrtc)->major_ <= driver)) {
        if (named != nullptr && !absl::StartsWith(path, named)) {
          unfit.insert(unfit.begin(),
                       absl::StrCat("CUDA_PATH, ", named,
                                    ", has no NVRTC that is used"));
        }
        (*nvrtc)->passed_over_ = absl::StrJoin(unfit, "; ");
        return *nvrtc;
      }
      if (absl::IsNotFound(nvrtc.status())) {
        absent.push_back(path);
      } else {
        unfit.push_back(nvrtc.ok()
                            ? absl::StrCat(path, " is ", (*nvrtc)->version_)
                            : std::string(nvrtc.status().message()));
      }
    }
  }
  std::string tried = absl::StrJoin(unfit, "; ");
  if (!absent.empty()) {
    absl::StrAppend(&tried, tried.empty() ? "" : "; ", "there is no ",
                    absl::StrJoin(absent, ", "));
  }
  if (driver == 0) {
    return absl::UnavailableError(absl::StrCat(
        "CUDA's run-time compiler is not on this machine (", tried,
        "): install the package cuda-nvrtc of a CUDA toolkit from ",
        kLeastMajor, " on, or set CUDA_PATH to the toolkit's folder"));
  }
  return absl::UnavailableError(absl::StrCat(
      "the board's driver is of CUDA ", driver,
      " and loads no code of a newer compiler, but there is no NVRTC ", driver,
      " here (", tried, "): install the package cuda-nvrtc of a CUDA ", driver,
      " toolkit, or set CUDA_PATH to its folder, or give the board a newer "
      "driver"));
}

absl::StatusOr<Nvrtc*> Nvrtc::Start(const std::string& path) {
  ASSIGN_OR_RETURN(SharedLibrary library, SharedLibrary::Open(path));
  auto nvrtc = std::make_unique<Nvrtc>();
  const absl::Status status = nvrtc->Begin(library);
  if (status.ok()) return nvrtc.release();  // as long as the library: for good
  library.Close();
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": ", status.message()));
}

absl::Status Nvrtc::Begin(SharedLibrary& library) {
  Resolve(library);
  RETURN_IF_ERROR(library.Complete());
  int minor = 0, count = 0;
  int code = get_version_(&major_, &minor);
  if (code == kSuccess) code = get_num_archs_(&count);
  architectures_.resize(static_cast<size_t>(std::max(0, count)));
  if (code == kSuccess) code = get_archs_(architectures_.data());
  if (code != kSuccess) {
    return absl::FailedPreconditionError(
        absl::StrCat("does not start: ", ErrorText(code)));
  }
  version_ = absl::StrCat("NVRTC ", major_, ".", minor);
  if (major_ < kLeastMajor) {
    return absl::FailedPreconditionError(
        absl::StrCat(version_, " is older than CUDA ", kLeastMajor));
  }
  // It opens its second half itself, with the first compilation.
  return CheckElfWhole(absl::StrCat(library.Folder(), "libnvrtc-builtins.so.",
                                    major_, ".", minor));
}

void Nvrtc::Resolve(SharedLibrary& library) {
  library.Resolve("nvrtcGetErrorString", get_error_string_);
  library.Resolve("nvrtcVersion", get_version_);
  library.Resolve("nvrtcGetNumSupportedArchs", get_num_archs_);
  library.Resolve("nvrtcGetSupportedArchs", get_archs_);
  library.Resolve("nvrtcCreateProgram", create_);
  library.Resolve("nvrtcDestroyProgram", destroy_);
  library.Resolve("nvrtcCompileProgram", compile_);
  library.Resolve("nvrtcGetPTXSize", ptx_size_);
  library.Resolve("nvrtcGetPTX", ptx_);
  library.Resolve("nvrtcGetCUBINSize", cubin_size_);
  library.Resolve("nvrtcGetCUBIN", cubin_);
  library.Resolve("nvrtcGetProgramLogSize", log_size_);
  library.Resolve("nvrtcGetProgramLog", log_);
  set_flow_callback_ = reinterpret_cast<decltype(set_flow_callback_)>(
      library.Symbol("nvrtcSetFlowCallback"));
}

std::string Nvrtc::ErrorText(int code) const {
  return absl::StrCat(get_error_string_(code), " (", code, ")");
}

absl::StatusOr<Nvrtc::Compiled> Nvrtc::Compile(const std::string& source,
                                               const std::string& arch,
                                               absl::Duration limit,
                                               const Clock& clock) const {
  Program program = nullptr;
  int code =
      create_(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr);
  if (code != kSuccess) {
    return absl::InternalError(absl::StrCat("NVRTC: ", ErrorText(code)));
  }
  struct Destroyer {
    const Nvrtc& nvrtc;
    Program program;
    ~Destroyer() { nvrtc.destroy_(&program); }
  } destroyer{*this, program};

  Watch watch{clock, clock.Steady() + limit};
  if (set_flow_callback_ != nullptr) {
    code = set_flow_callback_(program, OnFlow, &watch);
    if (code != kSuccess) {
      return absl::InternalError(absl::StrCat("NVRTC: ", ErrorText(code)));
    }
  }
  const std::string architecture = absl::StrCat("--gpu-architecture=", arch);
  const char* const options[] = {architecture.c_str(), "--std=c++17"};
  const int compiled = compile_(program, std::size(options), options);

  // Sizes count a closing zero, but for the cubin's.
  absl::Status failed;
  const auto text = [&](int (*size_of)(Program, size_t*),
                        int (*get)(Program, char*), bool closed) {
    size_t size = 0;
    std::string bytes;
    int result = size_of(program, &size);
    bytes.resize(size);
    if (result == kSuccess && size > 0) result = get(program, bytes.data());
    if (result != kSuccess) {
      failed = absl::InternalError(absl::StrCat("NVRTC: ", ErrorText(result)));
    }
    while (closed && !bytes.empty() && bytes.back() == '\0') bytes.pop_back();
    return bytes;
  };
  Compiled result;
  result.log = text(log_size_, log_, true);
  if (watch.stopped) {
    return absl::DeadlineExceededError(
        absl::StrCat("NVRTC took longer than ", absl::FormatDuration(limit)));
  }
  if (compiled != kSuccess) {
    const std::string message =
        absl::StrCat("NVRTC: ", ErrorText(compiled), "\n", result.log);
    return compiled == kErrorCompilation ? absl::InvalidArgumentError(message)
                                         : absl::InternalError(message);
  }
  result.ptx = text(ptx_size_, ptx_, true);
  result.cubin = text(cubin_size_, cubin_, false);
  RETURN_IF_ERROR(failed);
  return result;
}

std::string NvrtcVersion(int driver) {
  const absl::StatusOr<const Nvrtc*> nvrtc = Nvrtc::Load(driver);
  return nvrtc.ok() ? (*nvrtc)->version() : "no NVRTC";
}

}  // namespace regatta::cuda
