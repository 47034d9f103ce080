// A kernel ready to run: decoded instructions whose operands are places in a
// warp's register frame.
//
// The frame of a warp holds, at fixed byte offsets (slots): the constants of
// the program, the special registers that it reads, and its registers. A value
// of up to 32 bits takes 32 cells of 4 bytes, one a lane, narrower values
// zero-extended; a 64-bit value takes 32 cells of 8; a predicate is one 32-bit
// mask. So every source operand of every instruction is read the same way.
#ifndef REGATTA_COMPILER_PTXSIM_PROGRAM_H_
#define REGATTA_COMPILER_PTXSIM_PROGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ptxsim/counters.h"
#include "compiler/ptxsim/ptx_type.h"
#include "compiler/ptxsim/syntax.h"

namespace regatta::ptxsim {

struct Instruction;
struct WarpContext;

using Slot = uint32_t;
inline constexpr Slot kNoSlot = ~0u;
inline constexpr int kLanes = 32;

// Executes an instruction for the lanes of `warp.mask`.
using Handler = void (*)(const Instruction&, WarpContext& warp);

// What the scheduler has to do; everything else is the handler's.
enum class Flow : uint8_t {
  kNext,
  kBranch,       // to `target`
  kBranchTable,  // operand[0] is an index into tables[target]
  kExit,
  kWarpSync,   // operand[kSyncOperand] is the mask of lanes that must be here
  kConverged,  // the whole warp must be here: mma, ldmatrix
  kBarrier,
  kTrap,
};

enum class BarrierKind : uint8_t { kSync, kArrive, kPopc, kAnd, kOr };

enum class Rounding : uint8_t { kNearest, kZero, kDown, kUp, kNearestAway };

inline constexpr int kMaxOperands = 16;
inline constexpr int kSyncOperand = kMaxOperands - 1;

using Operands = std::array<Slot, kMaxOperands>;
constexpr Operands NoOperands() {
  Operands none = {};
  for (Slot& slot : none) slot = kNoSlot;
  return none;
}

// What an instruction may have to wait for before it can start.
enum class Fill : uint8_t { kNone, kShared, kGlobal };

// What the fields mean to an instruction is said where it is decoded.
struct Instruction {
  Handler run = nullptr;
  Flow flow = Flow::kNext;
  InstructionClass kind = InstructionClass::kOther;
  uint8_t issue_slots = 1;  // hardware instructions that it stands for
  bool guard_negated = false;
  Slot guard = kNoSlot;
  uint32_t target = 0;
  int32_t line = 0;
  int64_t offset = 0;
  Space space = Space::kGeneric;
  Type type = Type::kB32;
  Type source_type = Type::kB32;
  uint8_t vector = 1;
  bool wide_address = false;  // the address register has 64 bits
  bool flush = false;         // .ftz
  bool saturate = false;      // .sat, .satfinite
  bool relu = false;
  Rounding rounding = Rounding::kNearest;
  uint8_t mode = 0;
  BarrierKind barrier = BarrierKind::kSync;
  bool aligned = false;  // a barrier that all lanes of a warp reach together
  uint16_t flags = 0;
  uint32_t immediate = 0;
  // The first use of a load's result, which the hardware waits for; and of a
  // load, which operands arrive late (latency_points.h).
  Fill fill = Fill::kNone;
  uint8_t late_first = 0;
  uint8_t late_count = 0;
  Operands operand = NoOperands();
};

enum class Special : uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneid,
  kWarpid,
  kNwarpid,
  kSmid,
  kNsmid,
  kGridid,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kDynamicSharedBytes,
  kTotalSharedBytes,
};

struct SpecialSlot {
  Special special;
  Slot slot;
  bool wide;  // 64-bit cells
};

struct Parameter {
  size_t offset = 0;
  size_t bytes = 0;
  size_t alignment = 1;
};

struct Program {
  std::string name;
  std::vector<Instruction> code;   // the last one leaves the kernel
  std::vector<std::string> names;  // "ld.global.f32" of each instruction
  std::vector<std::vector<uint32_t>> tables;  // of kBranchTable
  std::vector<std::byte> constants;           // what every frame begins with
  std::vector<SpecialSlot> specials;
  uint32_t frame_bytes = 0;
  std::vector<Parameter> parameters;
  size_t parameter_bytes = 0;
  uint32_t static_shared_bytes = 0;
  bool dynamic_shared = false;  // has an extern shared array
  uint32_t local_bytes = 0;     // of each thread
  // The narrowest access to shared and to global memory, at most 4: what the
  // race detectors keep one cell for.
  uint32_t shared_granule = 4;
  uint32_t global_granule = 4;
  uint32_t max_threads[3] = {0, 0, 0};
  uint32_t required_threads[3] = {0, 0, 0};
};

// Where address spaces lie among generic 64-bit addresses. An address within
// shared, local or param space is the offset; the generic one adds the window.
inline constexpr uint64_t kSharedWindow = 1ull << 60;
inline constexpr uint64_t kLocalWindow = 2ull << 60;
inline constexpr uint64_t kParamWindow = 3ull << 60;
inline constexpr uint64_t kWindowMask = 15ull << 60;
// The module's own variables, beyond any address of a DeviceMemory.
inline constexpr uint64_t kModuleBase = 1ull << 56;
// Arguments of calls lie in the caller's local memory: their param addresses
// have this bit and then a local offset.
inline constexpr uint64_t kParamIsLocal = 1ull << 30;

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_PROGRAM_H_
