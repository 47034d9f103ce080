#include "compiler/ptxsim/warp_context.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace regatta::ptxsim {

Dim3 ThreadIndex(const Dim3& group, uint32_t number) {
  return {number % group.x, number / group.x % group.y,
          number / (group.x * group.y)};
}

void SetFault(WarpContext& warp, FaultKind kind, int lane, std::string detail) {
  BlockContext& block = *warp.block;
  if (block.faulted) return;
  block.faulted = true;
  block.fault = {.kind = kind,
                 .line = block.program->code[warp.pc].line,
                 .instruction = block.program->names[warp.pc],
                 .block = block.index,
                 .thread = ThreadIndex(block.group, warp.Thread(lane)),
                 .detail = std::move(detail)};
}

std::string DescribeAccess(const BlockContext& block, Stamp stamp) {
  const uint32_t pc = StampPc(stamp);
  const Dim3 thread = ThreadIndex(block.group, StampThread(stamp));
  return absl::StrCat(block.program->names[pc], " at line ",
                      block.program->code[pc].line, " by thread (", thread.x,
                      ",", thread.y, ",", thread.z, ")");
}

}  // namespace regatta::ptxsim
