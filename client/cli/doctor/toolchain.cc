// Whether this machine can make and load code.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/shared_library.h"
#include "client/cli/doctor/doctor.h"
#include "client/cli/own_directory.h"
#include "compiler/codegen/cuda/nvrtc.h"
#include "compiler/compile.h"
#include "compiler/ops/op.h"

namespace regatta::cli {
namespace {

// Small enough for a moment, and it goes through every step.
constexpr char kSample[] = "matmul(m=16,n=16,k=16)";

absl::Status BuildSample(const Target& target) {
  auto workload = ParseWorkload(kSample);
  if (!workload.ok()) return workload.status();
  auto space = CreateSpace(*std::move(workload), target, /*threads=*/1);
  if (!space.ok()) return space.status();
  return Compile(*space, space->Print(space->Default()), "doctor").status();
}

// Compiles for this machine's own processor.
Finding ExamineCpu() {
  Finding finding{Level::kFail, "cpu", "", ""};
  auto target = HostTarget();
  absl::Status made = target.status();
  const SteadyTime began = RealClock().Steady();
  if (target.ok()) made = BuildSample(*target);
  if (!made.ok()) {
    finding.what = absl::StrCat("no code for this processor: ", made.message());
    finding.remedy = "deploy/install-packages; cmake --build --preset release";
    return finding;
  }
  finding.level = Level::kOk;
  finding.what = absl::StrFormat(
      "%s builds for %s, a small kernel in %.0f ms", CompilerVersion(*target),
      target->mcpu, absl::ToDoubleMilliseconds(RealClock().Steady() - began));
  return finding;
}

Finding ExamineCuda(const std::string& root) {
  const bool has_gpu = access((root + "/dev/nvidiactl").c_str(), F_OK) == 0;
  Target target;
  target.kind = "cuda";
  target.mcpu = "sm_80";
  const auto complete = CompleteTarget(target);
  const absl::Status tool =
      complete.ok() ? CheckTool(*complete) : complete.status();
  if (tool.ok()) {
    Finding found{Level::kOk, "nvrtc",
                  absl::StrCat("found, ", CompilerVersion(*complete)), ""};
    const auto nvrtc = cuda::Nvrtc::Load();
    if (nvrtc.ok() && !(*nvrtc)->passed_over().empty()) {
      found.level = Level::kWarn;
      absl::StrAppend(&found.what, "; passed over: ", (*nvrtc)->passed_over());
      found.remedy =
          "install that toolkit again, or set CUDA_PATH to one that is whole "
          "(docs/boards/cuda.md)";
    }
    return found;
  }
  const std::string why(tool.message());
  if (!has_gpu && std::getenv("CUDA_PATH") != nullptr) {
    return {Level::kWarn, "nvrtc",
            absl::StrCat("CUDA_PATH is set, but no code can be made: ", why),
            "set CUDA_PATH to a toolkit's folder (docs/boards/cuda.md)"};
  }
  if (!has_gpu) {
    return {Level::kOk, "nvrtc",
            "not found; no NVIDIA device is here that would need it", ""};
  }
  return {Level::kFail, "nvrtc",
          absl::StrCat("an NVIDIA device is here, but no code can be made for "
                       "it: ",
                       why),
          "install a CUDA toolkit of the driver's version, or name it by "
          "CUDA_PATH (docs/boards/cuda.md)"};
}

// NotFound: there is none; FailedPrecondition: it cannot be loaded, and why.
absl::Status OpensLibrary(const std::string& name) {
  absl::StatusOr<SharedLibrary> library = SharedLibrary::Open(name);
  if (library.ok()) library->Close();
  return library.status();
}

Finding ExamineCudaDriver(const std::string& root) {
  const bool has_gpu = access((root + "/dev/nvidiactl").c_str(), F_OK) == 0;
  const absl::Status opened = OpensLibrary("libcuda.so.1");
  const bool found = opened.ok();
  if (found == has_gpu) {
    return {Level::kOk, "cuda driver",
            found ? "libcuda.so.1 found" : "no NVIDIA device is here", ""};
  }
  if (found) {
    return {Level::kWarn, "cuda driver",
            "libcuda.so.1 is here, but no device file /dev/nvidiactl: no CUDA "
            "device will be served",
            "nvidia-modprobe; in a container, pass the devices on"};
  }
  return {Level::kFail, "cuda driver",
          absl::StrCat("an NVIDIA device is here, but ", opened.message()),
          "install NVIDIA's driver (Debian: apt-get install libcuda1)"};
}

// Device files say nothing of OpenCL: a loader's list of drivers does.
Finding ExamineOpenCl(const std::string& root) {
  int drivers = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(
           root + "/etc/OpenCL/vendors", error)) {
    drivers += entry.path().extension() == ".icd" ? 1 : 0;
  }
  const absl::Status opened = OpensLibrary("libOpenCL.so.1");
  const bool found = opened.ok();
  if (found && drivers > 0) {
    return {Level::kOk, "opencl",
            absl::StrCat("loader libOpenCL.so.1 found, ", drivers,
                         " driver(s) in /etc/OpenCL/vendors"),
            ""};
  }
  if (absl::IsNotFound(opened) && drivers == 0) {
    return {Level::kOk, "opencl", "no loader and no driver are installed", ""};
  }
  if (found) {
    return {Level::kWarn, "opencl",
            "loader libOpenCL.so.1 found, but no driver in "
            "/etc/OpenCL/vendors: no OpenCL device will be served",
            "install the driver of the device's maker (docs/boards/opencl.md)"};
  }
  return {Level::kFail, "opencl",
          absl::StrCat(drivers, " driver(s) in /etc/OpenCL/vendors, but ",
                       opened.message()),
          "apt-get install ocl-icd-libopencl1"};
}

Finding ExaminePrograms() {
  const std::string folder = OwnDirectory();
  std::string missing;
  for (const char* name :
       {"regatta-server", "regatta-tracker", "regatta-agent", "regatta-spawner",
        "regatta-build-worker", "regatta-run-worker"}) {
    if (access(absl::StrCat(folder, "/", name).c_str(), X_OK) != 0) {
      absl::StrAppend(&missing, missing.empty() ? "" : ", ", name);
    }
  }
  if (missing.empty()) {
    return {Level::kOk, "programs", "all are in " + folder, ""};
  }
  return {Level::kWarn, "programs",
          absl::StrCat(folder, " has no ", missing,
                       ": `regatta up` and `regatta run` cannot start them"),
          "cmake --build --preset release"};
}

}  // namespace

std::vector<Finding> ExamineToolchain(const DoctorOptions& options) {
  return {ExaminePrograms(), ExamineCpu(), ExamineCuda(options.root),
          ExamineCudaDriver(options.root), ExamineOpenCl(options.root)};
}

}  // namespace regatta::cli
