#include "tests/compiler/codegen_support.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "compiler/codegen/code_generator.h"
#include "compiler/lower/lower.h"
#include "tests/compiler/status_text.h"

namespace regatta {

const Target& HostForTests() {
  static const Target& host = *[] {
    const auto found = FindCodeGenerator("cpu")->Host();
    CHECK(found.ok()) << found.status();
    return new Target(*found);
  }();
  return host;
}

const std::vector<NamedTarget>& RunnableTargets() {
  static const std::vector<NamedTarget>& targets = *[] {
    auto* list = new std::vector<NamedTarget>;
    list->push_back({"host", HostForTests()});
#if defined(__x86_64__)
    const auto add = [&](const std::string& name, const std::string& mcpu) {
      Target target;
      target.triple = "x86_64-linux-gnu";
      target.mcpu = mcpu;
      const auto complete = FindCodeGenerator("cpu")->Complete(target);
      CHECK(complete.ok()) << complete.status();
      list->push_back({name, *complete});
    };
    add("sse2", "x86-64");
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      add("avx2", "x86-64-v3");
    }
#endif
    return list;
  }();
  return targets;
}

Workload TensorsOnly(const loop::Program& program) {
  Workload workload;
  for (const loop::Buffer& buffer : program.buffers) {
    if (buffer.tensor < 0) continue;
    workload.tensors.resize(
        std::max<size_t>(workload.tensors.size(), buffer.tensor + 1));
    TensorDecl& tensor = workload.tensors[buffer.tensor];
    tensor.name = buffer.name;
    tensor.dtype = buffer.dtype;
    tensor.shape = {buffer.elements};
  }
  return workload;
}

Module Build(const loop::Program& program, const Target& target,
             const std::string& name) {
  const auto lowered = LowerProgram(program);
  EXPECT_TRUE(lowered.ok()) << StatusText(lowered) << "\n"
                            << loop::ToString(program);
  if (!lowered.ok()) return Module();
  const auto module = FindCodeGenerator("cpu")->Generate(
      *lowered, TensorsOnly(program), target, name);
  EXPECT_TRUE(module.ok()) << StatusText(module) << "\n"
                           << loop::ToString(program);
  return module.ok() ? *module : Module();
}

LoadedModule::LoadedModule(const Module& module)
    : name_(module.name), workspace_bytes_(module.workspace_bytes) {
  fd_ = memfd_create("module", MFD_CLOEXEC);
  CHECK(fd_ >= 0);
  CHECK(write(fd_, module.loadable.data(), module.loadable.size()) ==
        static_cast<ssize_t>(module.loadable.size()));
  const std::string path = "/proc/self/fd/" + std::to_string(fd_);
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  CHECK(handle_ != nullptr) << dlerror();
}

LoadedModule::~LoadedModule() {
  dlclose(handle_);
  close(fd_);
}

void* LoadedModule::Symbol(const std::string& name) const {
  void* symbol = dlsym(handle_, name.c_str());
  CHECK(symbol != nullptr) << dlerror();
  return symbol;
}

int LoadedModule::Call(const std::vector<void*>& tensors) const {
  const auto call =
      reinterpret_cast<int (*)(void* const*, void*)>(Symbol(name_ + "_call"));
  const FencedMemory workspace(workspace_bytes_, 64);
  // Whatever a kernel forgets to set is not zero.
  std::memset(workspace.data(), 0xff, workspace_bytes_);
  const int code = call(tensors.data(), workspace.data());
  return code;
}

FencedMemory::FencedMemory(int64_t bytes, int64_t alignment, Fence fence) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t payload = std::max(page, (bytes + page - 1) / page * page);
  block_bytes_ = payload + 2 * page;
  block_ = mmap(nullptr, block_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
                -1, 0);
  CHECK(block_ != MAP_FAILED);
  char* begin = static_cast<char*>(block_) + page;
  CHECK(mprotect(begin, payload, PROT_READ | PROT_WRITE) == 0);
  data_ = fence == Fence::kBefore
              ? begin
              : begin + (payload - bytes) / alignment * alignment;
}

FencedMemory::~FencedMemory() { munmap(block_, block_bytes_); }

int ProgramWriter::Add(const std::string& name, loop::Scope scope, DType dtype,
                       int64_t elements) {
  loop::Buffer buffer;
  buffer.name = name;
  buffer.scope = scope;
  buffer.dtype = dtype;
  buffer.elements = elements;
  const int id = static_cast<int>(program.buffers.size());
  if (scope == loop::Scope::kInput || scope == loop::Scope::kOutput) {
    buffer.tensor = id;
  }
  program.buffers.push_back(buffer);
  return id;
}

}  // namespace regatta
