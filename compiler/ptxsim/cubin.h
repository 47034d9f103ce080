// What a cubin says of its kernels without a GPU: resources and the mix of
// machine instructions.
//
// Source of the format: ELF64 (its manual) and observation of what NVRTC 13.0
// writes for sm_75, 80, 86, 87, 89, 90 and 100. The resources stand in tagged
// records of the sections .nv.info and .nv.info.NAME, the instructions, 16
// bytes each, in .text.NAME. Pure functions; thread-safe.
#ifndef REGATTA_COMPILER_PTXSIM_CUBIN_H_
#define REGATTA_COMPILER_PTXSIM_CUBIN_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace regatta::ptxsim {

// Machine opcodes: the low 9 bits of an instruction. The three bits above say
// where its operands come from.
enum class SassOpcode : uint16_t {
  kFadd = 0x021,
  kFmul = 0x020,
  kFfma = 0x023,
  kImad = 0x024,
  kHmma = 0x03C,
  kImma = 0x037,
  kMufu = 0x108,
  kLdg = 0x181,
  kStg = 0x186,
  kLdl = 0x183,
  kStl = 0x187,
  kLds = 0x184,
  kSts = 0x188,
  kLdsm = 0x03B,
  kLdgsts = 0x1AE,
  kBar = 0x11D,
  kBra = 0x147,
  kExit = 0x14D,
};

struct CubinKernel {
  std::string name;
  int registers = 0;  // of each thread
  // Without the 1 kB that the system reserves in every block from sm_90 on.
  uint32_t static_shared_bytes = 0;
  uint32_t frame_bytes = 0;  // of each thread: spills and local arrays
  uint32_t min_stack_bytes = 0;
  uint32_t max_threads = 0;  // of a block; 0: not said
  // How often each opcode stands in the code (not how often it runs).
  std::map<uint16_t, uint32_t> instructions;

  uint32_t Count(SassOpcode opcode) const;
  uint32_t InstructionCount() const;
  // Loads from or stores to local memory: registers spilt, or a local array.
  bool UsesLocalMemory() const {
    return Count(SassOpcode::kLdl) + Count(SassOpcode::kStl) > 0;
  }
};

struct Cubin {
  int sm = 0;                        // 80
  std::vector<CubinKernel> kernels;  // by name

  // nullptr when there is none.
  const CubinKernel* Find(std::string_view name) const;
};

// InvalidArgument for bytes that are no cubin of this format.
absl::StatusOr<Cubin> ReadCubin(std::string_view bytes);

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_CUBIN_H_
