#include "compiler/module/module.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/digest.h"

namespace regatta {

std::string Module::BinaryHash() const {
  std::string launches;
  for (int index : host_sequence) {
    const ModuleKernel& kernel = kernels[static_cast<size_t>(index)];
    if (kernel.group.empty()) continue;  // a CPU's
    absl::StrAppend(&launches, "\n", kernel.entry, "(",
                    absl::StrJoin(kernel.arguments, ","), ") ",
                    absl::StrJoin(kernel.grid, ","), " of ",
                    absl::StrJoin(kernel.group, ","), ", ",
                    kernel.shared_bytes);
  }
  return Sha256Hex(loadable + launches);
}

std::vector<const ModuleBuffer*> Module::BuffersWithRole(
    BufferRole role) const {
  std::vector<const ModuleBuffer*> found;
  for (const ModuleBuffer& buffer : buffers) {
    if (buffer.role == role) found.push_back(&buffer);
  }
  return found;
}

}  // namespace regatta
