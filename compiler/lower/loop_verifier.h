// The verifier of lowered loops, which loop::Verify is the door to. One walk in
// program order carries the loops around the current statement and what has
// been written so far. Statements are checked in loop_verify.cc, what they
// touch in loop_verify_elements.cc.
#ifndef REGATTA_COMPILER_LOWER_LOOP_VERIFIER_H_
#define REGATTA_COMPILER_LOWER_LOOP_VERIFIER_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/lower/intrinsics.h"
#include "compiler/lower/loop_ir.h"

namespace regatta::loop {

class Verifier {
 public:
  // REQUIRES: `program` outlives the verifier.
  explicit Verifier(const Program& program)
      : program_(program),
        written_(program.buffers.size(), false),
        home_(program.buffers.size()) {}

  absl::Status Run();

 private:
  // A loop, or a let.
  struct EnclosingLoop {
    int var;
    int64_t extent;
    LoopKind kind;
    bool expanded;        // each iteration is its own code
    std::vector<int> of;  // a let: the loops that its value depends on
  };

  // Where a register, local or per-thread buffer lives.
  struct Home {
    int kernel;
    int parallel_var;  // -1 outside parallel loops
    friend bool operator==(const Home&, const Home&) = default;
  };

  absl::Status Error(const std::string& what) const;

  // Statements.
  absl::Status CheckBuffers();
  absl::Status CheckStmt(const StmtPtr& stmt);
  absl::Status CheckIf(const Stmt& stmt);
  absl::Status CheckLet(const Stmt& stmt);
  absl::Status CheckMeeting(const std::string& on_processors) const;
  absl::Status CheckDeviceLoop(const Stmt& stmt) const;
  absl::Status CheckNewVar(const Stmt& stmt);
  absl::Status CheckFor(const Stmt& stmt);
  absl::Status CheckStore(const Stmt& stmt);
  absl::Status CheckProducts(const Stmt& stmt);

  // What they touch.
  absl::Status CheckIntrinsic(const Stmt& stmt);
  absl::Status CheckIntrinsicElement(const IntrinsicOperand& operand,
                                     const IntrinsicOperandRule& rule);
  absl::Status CheckRace(const Affine& offset, const Buffer& buffer) const;
  bool DependsOn(const Affine& form, int var) const;
  bool LeavesOne(int var) const;
  absl::Status CheckElement(int id, const Affine& offset,
                            const std::vector<Guard>& guards);
  absl::Status CheckForm(const Affine& form) const;
  absl::Status CheckValue(const Value& value);
  absl::Status CheckLoad(const Value& value);
  absl::Status CheckTypes(const Value& value) const;

  // nullptr: not around this place.
  const EnclosingLoop* Find(int var) const;
  int64_t Extent(int var) const { return Find(var)->extent; }

  const Program& program_;
  int kernel_ = -1;
  bool device_ = false;  // kernel_ is a device kernel
  const Stmt* stmt_ = nullptr;
  const Stmt* top_ = nullptr;         // body of the last group or thread loop
  std::vector<EnclosingLoop> loops_;  // outermost first
  std::vector<Guard> guards_;         // of the kIfs around
  std::set<int> seen_vars_;
  std::vector<bool> written_;              // per buffer
  std::vector<std::optional<Home>> home_;  // per buffer
};

}  // namespace regatta::loop

#endif  // REGATTA_COMPILER_LOWER_LOOP_VERIFIER_H_
