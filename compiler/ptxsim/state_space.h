// Modifiers that name state spaces and scopes of threads.
#ifndef REGATTA_COMPILER_PTXSIM_STATE_SPACE_H_
#define REGATTA_COMPILER_PTXSIM_STATE_SPACE_H_

#include "compiler/ptxsim/instruction_builder.h"

namespace regatta::ptxsim {

// kGeneric when no space is named. Clusters' shared memory is the block's own.
inline Space TakeSpace(InstructionBuilder& b) {
  const auto space =
      b.TakeOneOf({".global", ".shared", ".shared::cta", ".local", ".param",
                   ".param::entry", ".param::func", ".const"});
  if (!space.has_value()) return Space::kGeneric;
  static constexpr Space kSpaces[] = {
      Space::kGlobal, Space::kShared, Space::kShared, Space::kLocal,
      Space::kParam,  Space::kParam,  Space::kParam,  Space::kConst};
  return kSpaces[*space];
}

// Threads of one block all run here, one after another, so scopes change
// nothing.
inline void TakeScope(InstructionBuilder& b) {
  b.TakeOneOf({".cta", ".cluster", ".gpu", ".sys"});
}

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_STATE_SPACE_H_
