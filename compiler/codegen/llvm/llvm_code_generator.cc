#include "compiler/codegen/llvm/llvm_code_generator.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/codegen/compiler_version.h"
#include "compiler/codegen/llvm/entry_points.h"
#include "compiler/codegen/llvm/kernel_emitter.h"
#include "compiler/codegen/llvm/llvm_version.h"
#include "compiler/codegen/llvm/object_file.h"
#include "compiler/codegen/llvm/parallel_runtime.h"
#include "compiler/codegen/llvm/processor_target.h"
#include "compiler/codegen/llvm/product_instructions.h"
#include "compiler/codegen/llvm/shared_object.h"
#include "compiler/codegen/llvm/target_info.h"
#include "compiler/codegen/module_buffers.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace regatta {
namespace {

// More registers than this would only fill the stack.
constexpr int64_t kMaxRegisterBytes = 256 << 10;

// An LLVM module and the context that it lives in, destroyed in that order.
struct Emitted {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  llvm::TargetMachine* machine = nullptr;
};

absl::Status CheckProgram(const loop::Program& program) {
  for (const loop::Kernel& kernel : program.kernels) {
    if (loop::IsDeviceKernel(kernel)) {
      return absl::InternalError(
          absl::StrCat("kernel ", kernel.name,
                       " is one of a device with groups of threads"));
    }
  }
  for (const loop::Buffer& buffer : program.buffers) {
    const int64_t bytes = buffer.elements * DTypeBytes(buffer.dtype);
    if (buffer.scope == loop::Scope::kRegister && bytes > kMaxRegisterBytes) {
      return absl::InternalError(
          absl::StrCat("register buffer ", buffer.name, " has ", bytes,
                       " bytes, more than ", kMaxRegisterBytes));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Emitted> EmitModule(const LoweredProgram& lowered,
                                   const Target& target, std::string_view name,
                                   bool with_runtime = true) {
  RETURN_IF_ERROR(CheckProgram(lowered.program));
  RETURN_IF_ERROR(cpu::CheckProducts(lowered.program, target));
  Emitted emitted;
  ASSIGN_OR_RETURN(emitted.machine, cpu::MachineFor(target));
  emitted.context = std::make_unique<llvm::LLVMContext>();
  emitted.module = std::make_unique<llvm::Module>(
      llvm::StringRef(name.data(), name.size()), *emitted.context);
  emitted.module->setTargetTriple(cpu::LlvmTriple(target.triple));
  emitted.module->setDataLayout(emitted.machine->createDataLayout());
  emitted.module->setPICLevel(llvm::PICLevel::BigPIC);
  const cpu::Traits traits = cpu::TraitsOf(target);
  cpu::ModuleState state{*emitted.module, lowered, target, traits,
                         std::string(name)};
  std::vector<llvm::Function*> kernels;
  for (const loop::Kernel& kernel : lowered.program.kernels) {
    kernels.push_back(cpu::EmitKernel(state, kernel));
  }
  cpu::EmitEntryPoints(state, kernels);
  if (with_runtime) {
    RETURN_IF_ERROR(cpu::LinkParallelRuntime(*emitted.module));
  } else {
    cpu::ExpectParallelRuntime(*emitted.module);
  }
  return emitted;
}

// Iterations of the kernel's parallel loops, 1 when it has none.
int64_t ParallelExtent(const loop::Stmt& stmt) {
  if (stmt.kind == loop::Stmt::Kind::kFor) {
    return stmt.loop == loop::LoopKind::kParallel ? stmt.extent : 1;
  }
  int64_t extent = 1;
  for (const loop::StmtPtr& child : stmt.body) {
    extent = std::max(extent, ParallelExtent(*child));
  }
  return extent;
}

// All of a module but its loadable.
absl::StatusOr<Module> MakeModule(const LoweredProgram& lowered,
                                  const Workload& workload,
                                  const Target& target, std::string_view name,
                                  bool with_runtime) {
  ASSIGN_OR_RETURN(const Emitted emitted,
                   EmitModule(lowered, target, name, with_runtime));
  Module module;
  module.name = std::string(name);
  module.target = target.ToString();
  module.compiler_version = CompilerVersionOf(LlvmVersion());
  module.threads = lowered.program.threads;
  const std::vector<int> place =
      DescribeBuffers(lowered, workload, MemorySpace::kHost, module);
  for (const loop::Kernel& kernel : lowered.program.kernels) {
    ModuleKernel described;
    described.entry = absl::StrCat(module.name, "_", kernel.name);
    for (const int id : cpu::KernelBuffers(lowered.program, *kernel.body)) {
      described.arguments.push_back(place[id]);
    }
    described.grid = {ParallelExtent(*kernel.body)};
    module.host_sequence.push_back(static_cast<int>(module.kernels.size()));
    module.kernels.push_back(std::move(described));
  }
  module.workspace_bytes = lowered.workspace_bytes;
  ASSIGN_OR_RETURN(module.relocatable,
                   cpu::EmitFile(*emitted.module, *emitted.machine,
                                 llvm::CodeGenFileType::ObjectFile));
  return module;
}

}  // namespace

std::string LlvmCodeGenerator::tool_version(const Target&) const {
  return LlvmVersion();
}

absl::StatusOr<Target> LlvmCodeGenerator::Complete(Target target) const {
  return cpu::CompleteCpuTarget(std::move(target));
}

std::vector<std::string> LlvmCodeGenerator::Architectures() const {
  return cpu::CpuArchitectures();
}

absl::StatusOr<Target> LlvmCodeGenerator::OfProcessor(
    const std::string& architecture, const std::string& cpuinfo) const {
  return cpu::ProcessorTarget(architecture, cpuinfo);
}

absl::StatusOr<Target> LlvmCodeGenerator::Host() const {
  return cpu::HostCpuTarget();
}

absl::StatusOr<Module> LlvmCodeGenerator::Generate(
    const LoweredProgram& lowered, const Workload& workload,
    const Target& target, std::string_view name) const {
  ASSIGN_OR_RETURN(Module module, MakeModule(lowered, workload, target, name,
                                             /*with_runtime=*/true));
  ASSIGN_OR_RETURN(module.loadable,
                   cpu::LinkSharedObject({module.relocatable}, target));
  return module;
}

absl::StatusOr<Module> LlvmCodeGenerator::GeneratePart(
    const LoweredProgram& lowered, const Workload& workload,
    const Target& target, std::string_view name) const {
  return MakeModule(lowered, workload, target, name, /*with_runtime=*/false);
}

absl::StatusOr<std::string> LlvmCodeGenerator::LinkLibrary(
    absl::Span<const std::string> parts, const Target& target) const {
  std::vector<std::string> objects(parts.begin(), parts.end());
  for (const std::string& part : parts) {
    ASSIGN_OR_RETURN(const auto undefined, cpu::UndefinedSymbols(part));
    if (!cpu::NeedsParallelRuntime(undefined)) continue;
    Emitted runtime;
    ASSIGN_OR_RETURN(runtime.machine, cpu::MachineFor(target));
    runtime.context = std::make_unique<llvm::LLVMContext>();
    runtime.module =
        std::make_unique<llvm::Module>("runtime", *runtime.context);
    runtime.module->setTargetTriple(cpu::LlvmTriple(target.triple));
    runtime.module->setDataLayout(runtime.machine->createDataLayout());
    runtime.module->setPICLevel(llvm::PICLevel::BigPIC);
    RETURN_IF_ERROR(cpu::EmitParallelRuntime(*runtime.module));
    ASSIGN_OR_RETURN(std::string object,
                     cpu::EmitFile(*runtime.module, *runtime.machine,
                                   llvm::CodeGenFileType::ObjectFile));
    objects.push_back(std::move(object));
    break;
  }
  return cpu::LinkSharedObject(objects, target);
}

absl::StatusOr<std::string> EmitLlvmIr(const LoweredProgram& lowered,
                                       const Target& target,
                                       std::string_view name) {
  ASSIGN_OR_RETURN(const Emitted emitted, EmitModule(lowered, target, name));
  std::string text;
  llvm::raw_string_ostream stream(text);
  emitted.module->print(stream, nullptr);
  return stream.str();
}

absl::StatusOr<std::string> EmitAssembly(const LoweredProgram& lowered,
                                         const Target& target,
                                         std::string_view name) {
  ASSIGN_OR_RETURN(const Emitted emitted, EmitModule(lowered, target, name));
  return cpu::EmitFile(*emitted.module, *emitted.machine,
                       llvm::CodeGenFileType::AssemblyFile);
}

}  // namespace regatta
