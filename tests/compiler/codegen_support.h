// Running generated code inside a test.
#ifndef REGATTA_TESTS_COMPILER_CODEGEN_SUPPORT_H_
#define REGATTA_TESTS_COMPILER_CODEGEN_SUPPORT_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/lower/loop_ir.h"
#include "compiler/module/module.h"
#include "compiler/target/target.h"

namespace regatta {

// Targets that this machine can run: its own, and on x86-64 the baseline and
// the common levels below its own. Named for test names.
struct NamedTarget {
  std::string name;
  Target target;
};
const std::vector<NamedTarget>& RunnableTargets();
// This machine's own.
const Target& HostForTests();

// A workload with nothing but names and types, for programs written by hand.
Workload TensorsOnly(const loop::Program& program);

// Lowers and generates; a failure fails the test and gives an empty module.
Module Build(const loop::Program& program, const Target& target,
             const std::string& name = "k");

// A module's functions, loaded into this process until destroyed.
class LoadedModule {
 public:
  explicit LoadedModule(const Module& module);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;

  void* Symbol(const std::string& name) const;
  // NAME_call with a fresh workspace.
  int Call(const std::vector<void*>& tensors) const;
  int64_t workspace_bytes() const { return workspace_bytes_; }

 private:
  std::string name_;
  int64_t workspace_bytes_;
  int fd_ = -1;  // open as long as the library: its path must stay unique
  void* handle_ = nullptr;
};

// Memory whose end (or begin) touches a page that may not be accessed, so that
// reading or writing outside crashes.
class FencedMemory {
 public:
  enum class Fence { kAfter, kBefore };
  FencedMemory(int64_t bytes, int64_t alignment, Fence fence = Fence::kAfter);
  ~FencedMemory();
  FencedMemory(const FencedMemory&) = delete;
  void* data() const { return data_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* block_;
  int64_t block_bytes_;
  void* data_;
};

// Writing loop programs by hand.
class ProgramWriter {
 public:
  explicit ProgramWriter(int threads = 1) { program.threads = threads; }

  int Add(const std::string& name, loop::Scope scope, DType dtype,
          int64_t elements);
  int Var() { return program.num_vars++; }
  loop::ValuePtr Load(int buffer, Affine offset,
                      std::vector<loop::Guard> guards = {},
                      double pad = 0) const {
    return loop::Load(program.buffers[buffer], buffer, std::move(offset),
                      std::move(guards), pad);
  }
  void Kernel(loop::StmtPtr body) {
    program.kernels.push_back(
        {"k" + std::to_string(program.kernels.size()), std::move(body)});
  }

  loop::Program program;
};

inline Affine V(int var, int64_t coeff = 1) { return Affine::Var(var, coeff); }

}  // namespace regatta

#endif  // REGATTA_TESTS_COMPILER_CODEGEN_SUPPORT_H_
