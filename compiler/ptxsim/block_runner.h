// Runs the warps of a block until all have left the kernel or one faults.
#ifndef REGATTA_COMPILER_PTXSIM_BLOCK_RUNNER_H_
#define REGATTA_COMPILER_PTXSIM_BLOCK_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "compiler/ptxsim/block_barriers.h"
#include "compiler/ptxsim/lane_groups.h"
#include "compiler/ptxsim/program.h"
#include "compiler/ptxsim/warp_context.h"

namespace regatta::ptxsim {

class BlockRunner {
 public:
  // `block` describes the launch and outlives the runner. `limit`: warp
  // instructions of the launch.
  BlockRunner(const Program& program, const Dim3& grid, BlockContext& block,
              uint64_t limit);

  // Runs the block at block.index, number `number` of the grid. False after a
  // fault, which is in block.fault.
  bool Run(uint64_t number);

  // Adds what was executed so far to `counters`.
  void Count(Counters& counters) const;

 private:
  enum class Stop { kTurnOver, kBarrier, kDone, kFault };
  enum class State { kReady, kAtBarrier, kDone };
  struct Warp : WarpContext {
    LaneGroups groups;
    State state = State::kReady;
    int barrier = 0;
    std::unique_ptr<std::byte[]> memory;
  };

  uint64_t SpecialValue(Special special, const Warp& warp, int lane) const;
  void FillSpecials(Warp& warp);
  void StartBlock(uint64_t number);
  Stop RunWarp(Warp& warp);
  // What follows an instruction that is not kNext: the next one, another try
  // when other lanes have come, or a rest at a barrier. block.faulted may be
  // set.
  enum class Next { kGoOn, kTryLater, kBarrier };
  Next Control(Warp& warp, const Instruction& in, uint32_t mask);
  Next ControlBarrier(Warp& warp, const Instruction& in, uint32_t mask);
  // Whether the lanes in `needed` are all in `mask`. If not, the running group
  // waits or the block faults.
  bool AwaitLanes(Warp& warp, uint32_t mask, uint32_t needed);
  void ReportMissingLanes(Warp& warp);
  void BranchByTable(Warp& warp, const Instruction& in, uint32_t mask);
  void ArriveAtBarrier(Warp& warp, const Instruction& in, uint32_t mask);
  void CompleteBarriers();
  void Release(int barrier);
  void ReportDeadlock();
  void ReportTimeout(Warp& warp);

  const Program& program_;
  const Dim3 grid_;
  BlockContext& block_;
  const uint64_t limit_;
  std::vector<Warp> warps_;
  int live_ = 0;
  BlockBarriers barriers_;
  // Of each instruction: executions, and lanes that did not take part.
  std::vector<uint64_t> executions_;
  std::vector<uint64_t> idle_lanes_;
};

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_BLOCK_RUNNER_H_
