// Modules for 64-bit ARM processors, run on a machine that is none: one C
// program with all of them, made by a cross compiler and run by QEMU, which
// stops at every instruction that the named processor lacks.
#ifndef REGATTA_TESTS_COMPILER_ARM_PROGRAM_H_
#define REGATTA_TESTS_COMPILER_ARM_PROGRAM_H_

#include <filesystem>
#include <string>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/interp/interpreter.h"
#include "compiler/module/module.h"
#include "compiler/target/target.h"

namespace regatta {

struct ArmProcessor {
  std::string mcpu;
  // What QEMU runs its code as: itself, or where the usual QEMU has no model of
  // it, the nearest one with all of its features.
  std::string qemu;
};
// The processors that code is generated and checked for.
const std::vector<ArmProcessor>& ArmProcessors();
// Complete.
Target ArmTarget(const std::string& mcpu);

// Why programs cannot run here: "no qemu-aarch64". Empty: they can.
std::string ArmProgramsMissing();

class ArmProgram {
 public:
  ArmProgram();
  ~ArmProgram();
  ArmProgram(const ArmProgram&) = delete;

  // A module of its own name, to be called once.
  void Add(const Module& module, const Workload& workload,
           std::vector<TensorValues> inputs);
  // Runs all; the exit status, 128 + the signal's number where one ended it.
  int Run(const std::string& qemu_cpu);
  // After Run returned 0: what the i-th module made.
  std::vector<TensorValues> Outputs(size_t i) const;

 private:
  struct Case {
    std::string name;
    Workload workload;
    std::vector<TensorValues> inputs;
    size_t first_output = 0;  // byte in the file of all outputs
  };
  std::string Source() const;

  std::filesystem::path dir_;
  std::vector<Case> cases_;
  std::string output_;
};

}  // namespace regatta

#endif  // REGATTA_TESTS_COMPILER_ARM_PROGRAM_H_
