#include "compiler/module/module.h"

#include "base/digest.h"

namespace regatta {

std::string Module::BinaryHash() const { return Sha256Hex(loadable); }

std::vector<const ModuleBuffer*> Module::BuffersWithRole(
    BufferRole role) const {
  std::vector<const ModuleBuffer*> found;
  for (const ModuleBuffer& buffer : buffers) {
    if (buffer.role == role) found.push_back(&buffer);
  }
  return found;
}

}  // namespace regatta
