// Lays out a program's register frame: see program.h.
#ifndef REGATTA_COMPILER_PTXSIM_FRAME_LAYOUT_H_
#define REGATTA_COMPILER_PTXSIM_FRAME_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ptxsim/program.h"

namespace regatta::ptxsim {

class FrameLayout {
 public:
  // A constant in all 32 lanes. Its slot is provisional until Finish.
  Slot Constant(uint64_t bits, bool wide);
  Slot PredicateConstant(bool value);
  Slot NewRegister(Type type);
  // A predicate that the whole program shares: the carry.
  Slot CarryRegister();
  // nullopt: no special register has that name. The second says whether it is
  // 64 bits wide.
  std::optional<std::pair<Slot, bool>> SpecialRegister(std::string_view name);

  uint32_t register_bytes() const { return register_bytes_; }

  // Puts the constants before the registers, corrects the slots in `program`
  // and fills in its frame.
  void Finish(Program& program);

 private:
  std::vector<std::byte> constants_;
  std::map<std::pair<uint64_t, int>, Slot> constant_slots_;
  std::map<Special, Slot> special_slots_;
  std::vector<SpecialSlot> specials_;
  Slot carry_ = kNoSlot;
  uint32_t register_bytes_ = 0;
};

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_FRAME_LAYOUT_H_
