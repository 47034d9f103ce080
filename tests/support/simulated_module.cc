#include "tests/support/simulated_module.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/module/cuda_binary.h"
#include "compiler/ptxsim/cubin.h"
#include "compiler/ptxsim/device_memory.h"
#include "compiler/ptxsim/ptx_module.h"

namespace regatta::testing {
namespace {

uint32_t Extent(const std::vector<int64_t>& extents, size_t dimension) {
  return dimension < extents.size() ? static_cast<uint32_t>(extents[dimension])
                                    : 1;
}

ptxsim::Dim3 Dimensions(const std::vector<int64_t>& extents) {
  return {Extent(extents, 0), Extent(extents, 1), Extent(extents, 2)};
}

absl::StatusOr<ptxsim::BlockResources> ResourcesOf(const ModuleKernel& kernel,
                                                   const ptxsim::Cubin& cubin) {
  ptxsim::BlockResources block;
  block.threads = 1;
  for (const int64_t extent : kernel.group) {
    block.threads *= static_cast<int>(extent);
  }
  for (const ptxsim::CubinKernel& known : cubin.kernels) {
    if (known.name != kernel.entry) continue;
    block.registers_per_thread = known.registers;
    block.shared_bytes =
        static_cast<uint32_t>(known.static_shared_bytes + kernel.shared_bytes);
    return block;
  }
  return absl::NotFoundError(
      absl::StrCat("the cubin has no kernel ", kernel.entry));
}

std::vector<ptxsim::Argument> Arguments(
    const ModuleKernel& kernel, const std::vector<uint64_t>& addresses) {
  std::vector<ptxsim::Argument> arguments;
  for (const int argument : kernel.arguments) {
    arguments.emplace_back(addresses[static_cast<size_t>(argument)]);
  }
  return arguments;
}

absl::StatusOr<std::vector<uint64_t>> MakeBuffers(
    const Module& module, absl::Span<const std::string> inputs,
    ptxsim::DeviceMemory& memory) {
  std::vector<uint64_t> addresses;
  size_t next = 0;
  for (const ModuleBuffer& buffer : module.buffers) {
    ASSIGN_OR_RETURN(const uint64_t address, memory.Allocate(buffer.bytes));
    addresses.push_back(address);
    if (buffer.role != BufferRole::kInput) continue;
    const std::string& bytes = inputs[next++];
    RETURN_IF_ERROR(memory.Write(
        address,
        {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}));
  }
  return addresses;
}

}  // namespace

absl::StatusOr<SimulatedCall> SimulateCall(const Module& module,
                                           absl::Span<const std::string> inputs,
                                           const ptxsim::RunOptions& options) {
  ASSIGN_OR_RETURN(const CudaBinary binary, ParseCudaBinary(module.loadable));
  ASSIGN_OR_RETURN(const ptxsim::PtxModule ptx,
                   ptxsim::PtxModule::Parse(binary.ptx));
  ASSIGN_OR_RETURN(const ptxsim::Cubin cubin, ptxsim::ReadCubin(binary.cubin));
  ptxsim::DeviceMemory memory;
  ASSIGN_OR_RETURN(const std::vector<uint64_t> addresses,
                   MakeBuffers(module, inputs, memory));
  SimulatedCall call;
  for (const int index : module.host_sequence) {
    const ModuleKernel& kernel = module.kernels[static_cast<size_t>(index)];
    const ptxsim::Launch launch = {
        .entry = kernel.entry,
        .grid = Dimensions(kernel.grid),
        .group = Dimensions(kernel.group),
        .dynamic_shared_bytes = static_cast<uint32_t>(kernel.shared_bytes),
        .arguments = Arguments(kernel, addresses)};
    SimulatedKernel& done = call.kernels.emplace_back();
    done.entry = kernel.entry;
    ASSIGN_OR_RETURN(done.block, ResourcesOf(kernel, cubin));
    ASSIGN_OR_RETURN(done.report,
                     ptxsim::RunKernel(ptx, launch, memory, options));
    if (done.report.fault) {
      call.fault = done.report.fault->ToString();
      return call;
    }
  }
  for (size_t i = 0; i < module.buffers.size(); ++i) {
    const ModuleBuffer& buffer = module.buffers[i];
    if (buffer.role != BufferRole::kOutput) continue;
    std::string& bytes = call.outputs.emplace_back(buffer.bytes, '\0');
    RETURN_IF_ERROR(memory.Read(
        addresses[i],
        {reinterpret_cast<std::byte*>(bytes.data()), bytes.size()}));
  }
  return call;
}

}  // namespace regatta::testing
