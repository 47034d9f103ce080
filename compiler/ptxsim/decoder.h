// Turns the syntax of an entry into a program. Calls are expanded in place, so
// a program has neither calls nor a stack; recursion is refused.
#ifndef REGATTA_COMPILER_PTXSIM_DECODER_H_
#define REGATTA_COMPILER_PTXSIM_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ptxsim/program.h"
#include "compiler/ptxsim/syntax.h"

namespace regatta::ptxsim {

// Where the module's variables lie.
struct ModuleLayout {
  std::vector<uint64_t> addresses;  // of each; of shared ones unused
  std::vector<std::byte> image;     // what lies at kModuleBase at first
  uint64_t constant_bytes = 0;      // the read-only part, which comes first
};

ModuleLayout LayOutModule(const RawModule& module);

// InvalidArgument, naming opcode and line, for what the simulator does not
// know.
absl::StatusOr<Program> DecodeEntry(const RawModule& module,
                                    const ModuleLayout& layout,
                                    const RawFunction& entry);

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_DECODER_H_
