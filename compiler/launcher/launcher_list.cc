#include "compiler/launcher/cuda_launcher.h"
#include "compiler/launcher/launcher.h"
#include "compiler/launcher/opencl_launcher.h"

namespace regatta {
namespace {

constexpr const char* kCudaFiles[] = {".h", ".c", ".cu", ".cubin", ".ptx"};
constexpr const char* kOpenClFiles[] = {".h", ".c", ".cl"};

// To add a kind of device, add its launcher here.
constexpr Launcher kLaunchers[] = {
    {"cuda", kCudaFiles, WriteCudaLauncher},
    {"opencl", kOpenClFiles, WriteOpenClLauncher},
};

}  // namespace

absl::Span<const Launcher> Launchers() { return kLaunchers; }

const Launcher* FindLauncher(std::string_view target_kind) {
  for (const Launcher& launcher : kLaunchers) {
    if (launcher.kind == target_kind) return &launcher;
  }
  return nullptr;
}

}  // namespace regatta
