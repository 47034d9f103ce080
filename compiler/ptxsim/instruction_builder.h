// What an opcode's decode function works with: takes the modifiers of a
// statement one by one and turns its operands into slots. The first mistake is
// remembered and everything after it is harmless, so decode functions need not
// check each step.
#ifndef REGATTA_COMPILER_PTXSIM_INSTRUCTION_BUILDER_H_
#define REGATTA_COMPILER_PTXSIM_INSTRUCTION_BUILDER_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ptxsim/frame_layout.h"
#include "compiler/ptxsim/program.h"
#include "compiler/ptxsim/syntax.h"

namespace regatta::ptxsim {

// Resolves what a statement names, within one function.
class NameResolver {
 public:
  virtual ~NameResolver() = default;
  virtual Slot RegisterSlot(int id) = 0;
  virtual Type RegisterType(int id) const = 0;
  // The address of a variable within its space, and that space; a call's
  // parameter is in local space.
  struct Place {
    Space space;
    uint64_t address;
  };
  virtual absl::StatusOr<Place> VariablePlace(int id) const = 0;
};

class InstructionBuilder {
 public:
  InstructionBuilder(const Statement& statement, NameResolver& names,
                     FrameLayout& frame);

  Instruction& out() { return out_; }
  const Instruction& out() const { return out_; }

  // Modifiers: each is taken once; what is left over is an error.
  bool Take(std::string_view modifier);
  // The index of the one present; nullopt when none is. A second one of the
  // list stays and is an error.
  std::optional<int> TakeOneOf(std::initializer_list<std::string_view> list);
  // The first type among the modifiers that are left.
  Type TakeType();
  std::optional<Type> TryType();
  // .rn .rz .rm .rp, into out().rounding; false when there is none.
  bool TakeRounding();
  void TakeFlush() { out_.flush = Take(".ftz"); }

  // Operands: `index` counts those written, `place` is where it goes in
  // Instruction::operand.
  size_t operands() const { return statement_.operands.size(); }
  const Operand& raw(size_t index) const;
  void RequireOperands(size_t least, size_t most);
  void Source(int place, size_t index, Type type) {
    SourceOf(place, raw(index), type);
  }
  void Destination(int place, size_t index, Type type) {
    DestinationOf(place, raw(index), type);
  }
  // The same for an operand that is part of another.
  void SourceOf(int place, const Operand& operand, Type type);
  void DestinationOf(int place, const Operand& operand, Type type);
  // A register of `bytes` or more that a narrower value of memory is loaded
  // into or stored from; gives the register's bytes.
  int MemoryRegister(int place, const Operand& operand, int bytes, bool store);
  // [address]: the base register's slot into operand[place], the rest into
  // out().offset, out().wide_address; out().space is refined when the address
  // names a variable.
  void Address(int place, size_t index);
  // An integer written out.
  uint64_t Immediate(size_t index);
  // The elements of {a, b}, or the operand itself when it is no list.
  std::vector<Operand> Elements(size_t index) const;
  // A register nobody reads, as large as `type`.
  Slot Scratch(Type type);
  // The thread's carry, a predicate.
  Slot Carry() { return frame_.CarryRegister(); }
  Slot Constant(uint64_t bits, Type type);
  Slot PredicateConstant(bool value);

  void Fail(std::string_view message);
  bool ok() const { return status_.ok(); }
  // The first mistake, or a complaint about modifiers that nobody took.
  absl::Status Finish();
  const Statement& statement() const { return statement_; }

 private:
  void CheckRegister(int id, Type type);
  void FailWith(const absl::Status& status) {
    Fail(std::string(status.message()));
  }

  const Statement& statement_;
  NameResolver& names_;
  FrameLayout& frame_;
  Instruction out_;
  std::vector<bool> taken_;
  absl::Status status_;
};

using DecodeFunction = void (*)(InstructionBuilder&);

struct OpcodeEntry {
  std::string_view opcode;
  DecodeFunction decode;
};

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_INSTRUCTION_BUILDER_H_
