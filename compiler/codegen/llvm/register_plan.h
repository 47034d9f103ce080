// Which parts of register buffers become one SSA value each. No LLVM here: the
// plan is made from the loops, before any is emitted.
#ifndef REGATTA_COMPILER_CODEGEN_LLVM_REGISTER_PLAN_H_
#define REGATTA_COMPILER_CODEGEN_LLVM_REGISTER_PLAN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "compiler/lower/loop_ir.h"

namespace regatta::cpu {

// A piece of a vector loop that is emitted as one vector operation: iterations
// [first, first + count) in a vector of `width` >= count lanes, those beyond
// `count` masked. Width 1 is a scalar.
struct Lanes {
  int var = -1;
  int64_t first = 0;
  int count = 1;
  int width = 1;
};

class RegisterPlan {
 public:
  // Elements [first, first + count) live in one value of `width` lanes.
  struct Slot {
    int64_t first = 0;
    int64_t count = 1;
    int width = 1;
  };

  using Chunker = std::function<std::vector<Lanes>(const loop::Stmt&)>;

  // Plans for every register buffer that `body` touches. `chunks` splits a
  // vector loop; it must be the one that emission uses.
  RegisterPlan(const loop::Program& program, const loop::Stmt& body,
               const Chunker& chunks);

  // Sorted, disjoint. Elements accessed together in different shapes share a
  // slot.
  const std::map<int, std::vector<Slot>>& slots() const { return slots_; }
  // The slot that holds element `first`; null when the buffer lives in memory,
  // because its accesses overlap in ways that no register has room for.
  const Slot* Find(int buffer, int64_t first) const;

 private:
  struct Access {
    int64_t first;
    int64_t count;
    int width;
  };
  void Walk(const loop::Stmt& stmt, const Chunker& chunks);
  void WalkValue(const loop::Value& value);
  void WalkProducts(const loop::Stmt& stmt);
  void Touch(int buffer, const Affine& offset);
  void Merge(int buffer, std::vector<Access> accesses);

  const loop::Program& program_;
  std::map<int, int64_t> vars_;  // expanded loops around the walk
  Lanes lanes_;
  std::map<int, std::vector<Access>> accesses_;
  std::map<int, std::vector<Slot>> slots_;
};

}  // namespace regatta::cpu

#endif  // REGATTA_COMPILER_CODEGEN_LLVM_REGISTER_PLAN_H_
