// From what a sketch emitted to what a code generator reads: one readable list
// of passes (lower.cc), the verifier after each.
#ifndef REGATTA_COMPILER_LOWER_LOWER_H_
#define REGATTA_COMPILER_LOWER_LOWER_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/lower/loop_ir.h"

namespace regatta {

// A program with a place for every workspace buffer.
struct LoweredProgram {
  loop::Program program;
  // Per buffer of `program`: byte offset into the workspace block; -1 for other
  // scopes. Per-thread buffers occupy `threads` consecutive slots of
  // `workspace_stride[i]` bytes.
  std::vector<int64_t> workspace_offset;
  std::vector<int64_t> workspace_stride;
  int64_t workspace_bytes = 0;
};

// Runs the passes.
// Internal when a pass or the verifier finds the program malformed: a bug of
// the part that emitted it.
absl::StatusOr<LoweredProgram> LowerProgram(loop::Program program);

}  // namespace regatta

#endif  // REGATTA_COMPILER_LOWER_LOWER_H_
