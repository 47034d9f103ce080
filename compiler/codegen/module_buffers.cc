#include "compiler/codegen/module_buffers.h"

#include <utility>

namespace regatta {
namespace {

BufferRole RoleOf(loop::Scope scope) {
  switch (scope) {
    case loop::Scope::kInput:
      return BufferRole::kInput;
    case loop::Scope::kOutput:
      return BufferRole::kOutput;
    default:
      return BufferRole::kWorkspace;
  }
}

}  // namespace

std::vector<int> DescribeBuffers(const LoweredProgram& lowered,
                                 const Workload& workload, MemorySpace space,
                                 Module& module) {
  const loop::Program& program = lowered.program;
  std::vector<int> place(program.buffers.size(), -1);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const loop::Buffer& buffer = program.buffers[i];
    ModuleBuffer described;
    described.name = buffer.name;
    described.role = RoleOf(buffer.scope);
    described.dtype = buffer.dtype;
    described.shape = {buffer.elements};
    described.bytes = buffer.elements * DTypeBytes(buffer.dtype);
    described.space = space;
    if (described.role == BufferRole::kWorkspace) {
      if (lowered.workspace_offset[i] < 0) continue;  // a register, or unused
      if (buffer.image_row > 0) {
        described.image_width = buffer.image_row / loop::kPixelElements;
        described.image_height = buffer.elements / buffer.image_row;
      }
      if (space == MemorySpace::kHost) {
        described.workspace_offset = lowered.workspace_offset[i];
        described.bytes = lowered.workspace_stride[i] *
                          (buffer.per_thread ? program.threads : 1);
      }
    } else {
      // Vector accesses in device memory want more than one element's.
      if (space == MemorySpace::kHost) {
        described.alignment = DTypeBytes(buffer.dtype);
      }
      if (buffer.tensor >= 0) {
        described.shape = workload.tensors[buffer.tensor].shape;
      }
    }
    place[i] = static_cast<int>(module.buffers.size());
    module.buffers.push_back(std::move(described));
  }
  return place;
}

}  // namespace regatta
