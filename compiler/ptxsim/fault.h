// What a kernel did wrong. A fault is data about a candidate, not an error of
// the simulator.
#ifndef REGATTA_COMPILER_PTXSIM_FAULT_H_
#define REGATTA_COMPILER_PTXSIM_FAULT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace regatta::ptxsim {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  bool operator==(const Dim3&) const = default;
  uint64_t Count() const { return uint64_t{x} * y * z; }
};

enum class FaultKind {
  kSharedRace,  // two threads, a write, nothing that orders them
  kGlobalRace,
  kSharedOutOfBounds,
  kGlobalOutOfBounds,  // also freed memory, and writes to constants
  kLocalOutOfBounds,
  kMisaligned,
  kAsyncNotAwaited,    // a cp.async destination touched before its wait
  kBarrierDivergence,  // a warp reaches a barrier or mma without all its lanes
  kDeadlock,           // every warp waits and nobody can wake them
  kTrap,
  kTimeout,  // the limit on executed instructions
};

// "shared_race", ...
std::string_view FaultKindName(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::kTrap;
  int line = 0;             // of the PTX text; 0: no single instruction
  std::string instruction;  // "st.shared.f32"
  Dim3 block = {0, 0, 0};
  Dim3 thread = {0, 0, 0};
  std::string detail;  // what exactly: addresses, sizes, the other access

  // All of it in one line.
  std::string ToString() const;
};

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_FAULT_H_
