// Operations that a device has and its language has not as an operator:
// statements with a name and operands (Stmt::Kind::kIntrinsic). The verifier
// and the interpreter of the tests know them from here; a dialect emits those
// that its devices have and refuses the rest.
//
// To add one: a line in intrinsics.cc and its text in the dialects that have
// it; fragments of matrix units are the next to come. A layout of local memory
// that is no affine form (a swizzle) would be a property of the buffer, so that
// every access, and every intrinsic, goes through the one place where code
// generators and the interpreter turn an offset into an address.
#ifndef REGATTA_COMPILER_LOWER_INTRINSICS_H_
#define REGATTA_COMPILER_LOWER_INTRINSICS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler/lower/loop_ir.h"

namespace regatta::loop {

// A copy of 16 bytes from global to local memory that runs on by itself:
//   copy_async(local element, global element)
// Both are aligned to 16 bytes, in buffers of one type. Copies that a thread
// has begun since its last commit_async() become one batch;
// wait_async(n) waits until at most the newest n batches of the thread are
// still on their way. Until then nothing may touch the destination; after it
// the thread itself sees what was copied, and after a barrier its group.
inline constexpr std::string_view kCopyAsync = "copy_async";
inline constexpr std::string_view kCommitAsync = "commit_async";
inline constexpr std::string_view kWaitAsync = "wait_async";

struct IntrinsicOperandRule {
  enum class Use { kReads, kWrites, kNumber };
  Use use = Use::kNumber;
  bool local = false;  // in memory of the group; else of the device
  int64_t bytes = 0;   // touched from the element on, and its alignment
};

struct Intrinsic {
  std::string_view name;
  std::vector<IntrinsicOperandRule> operands;
};

// Null for an unknown name.
const Intrinsic* FindIntrinsic(std::string_view name);

}  // namespace regatta::loop

#endif  // REGATTA_COMPILER_LOWER_INTRINSICS_H_
