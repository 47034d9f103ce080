#include "device_agent/devices/nvidia_files.h"

#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

constexpr int kMaxGpus = 16;

}  // namespace

std::vector<std::string> NvidiaDeviceFiles() {
  std::vector<std::string> files = {"/dev/nvidiactl", "/dev/nvidia-uvm",
                                    "/dev/nvidia-uvm-tools",
                                    "/dev/nvidia-modeset"};
  for (int i = 0; i < kMaxGpus; ++i) {
    files.push_back(absl::StrCat("/dev/nvidia", i));
  }
  for (const char* file :
       {"/dev/nvmap", "/dev/nvgpu", "/dev/nvhost-ctrl", "/dev/nvhost-ctrl-gpu",
        "/dev/nvhost-gpu", "/dev/nvhost-as-gpu", "/dev/nvhost-dbg-gpu",
        "/dev/nvhost-prof-gpu", "/dev/nvhost-tsg-gpu", "/dev/nvsciipc"}) {
    files.push_back(file);
  }
  return files;
}

}  // namespace regatta
