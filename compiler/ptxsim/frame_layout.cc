#include "compiler/ptxsim/frame_layout.h"

#include <cstring>

namespace regatta::ptxsim {
namespace {

// Marks a provisional slot that counts from the start of the constants.
constexpr Slot kConstantTag = 0x80000000u;
// Slots start at multiples of this.
constexpr uint32_t kSlotAlignment = 64;

struct NamedSpecial {
  std::string_view name;
  Special special;
  bool wide;
};

constexpr NamedSpecial kSpecials[] = {
    {"%tid.x", Special::kTidX, false},
    {"%tid.y", Special::kTidY, false},
    {"%tid.z", Special::kTidZ, false},
    {"%ntid.x", Special::kNtidX, false},
    {"%ntid.y", Special::kNtidY, false},
    {"%ntid.z", Special::kNtidZ, false},
    {"%ctaid.x", Special::kCtaidX, false},
    {"%ctaid.y", Special::kCtaidY, false},
    {"%ctaid.z", Special::kCtaidZ, false},
    {"%nctaid.x", Special::kNctaidX, false},
    {"%nctaid.y", Special::kNctaidY, false},
    {"%nctaid.z", Special::kNctaidZ, false},
    {"%laneid", Special::kLaneid, false},
    {"%warpid", Special::kWarpid, false},
    {"%nwarpid", Special::kNwarpid, false},
    {"%smid", Special::kSmid, false},
    {"%nsmid", Special::kNsmid, false},
    {"%gridid", Special::kGridid, true},
    {"%lanemask_eq", Special::kLanemaskEq, false},
    {"%lanemask_le", Special::kLanemaskLe, false},
    {"%lanemask_lt", Special::kLanemaskLt, false},
    {"%lanemask_ge", Special::kLanemaskGe, false},
    {"%lanemask_gt", Special::kLanemaskGt, false},
    {"%dynamic_smem_size", Special::kDynamicSharedBytes, false},
    {"%total_smem_size", Special::kTotalSharedBytes, false},
};

uint32_t SlotBytes(Type type) {
  if (type == Type::kPred) return kSlotAlignment;
  return TypeBytes(type) == 8 ? kLanes * 8 : kLanes * 4;
}

}  // namespace

Slot FrameLayout::Constant(uint64_t bits, bool wide) {
  const auto [found, is_new] = constant_slots_.try_emplace(
      {bits, wide ? 8 : 4},
      kConstantTag | static_cast<Slot>(constants_.size()));
  if (is_new) {
    const size_t cell = wide ? 8 : 4;
    for (int lane = 0; lane < kLanes; ++lane) {
      constants_.resize(constants_.size() + cell);
      std::memcpy(constants_.data() + constants_.size() - cell, &bits, cell);
    }
  }
  return found->second;
}

Slot FrameLayout::PredicateConstant(bool value) {
  return Constant(value ? ~uint32_t{0} : 0, false);
}

Slot FrameLayout::NewRegister(Type type) {
  const Slot slot = register_bytes_;
  register_bytes_ += SlotBytes(type);
  return slot;
}

Slot FrameLayout::CarryRegister() {
  if (carry_ == kNoSlot) carry_ = NewRegister(Type::kPred);
  return carry_;
}

std::optional<std::pair<Slot, bool>> FrameLayout::SpecialRegister(
    std::string_view name) {
  for (const NamedSpecial& entry : kSpecials) {
    if (entry.name != name) continue;
    const auto [found, is_new] = special_slots_.try_emplace(entry.special, 0);
    if (is_new) {
      found->second = NewRegister(entry.wide ? Type::kB64 : Type::kB32);
      specials_.push_back({entry.special, found->second, entry.wide});
    }
    return std::pair(found->second, entry.wide);
  }
  return std::nullopt;
}

void FrameLayout::Finish(Program& program) {
  const uint32_t constant_bytes = static_cast<uint32_t>(constants_.size());
  const auto correct = [&](Slot& slot) {
    if (slot == kNoSlot) return;
    slot = (slot & kConstantTag) != 0 ? slot & ~kConstantTag
                                      : slot + constant_bytes;
  };
  for (Instruction& instruction : program.code) {
    correct(instruction.guard);
    for (Slot& slot : instruction.operand) correct(slot);
  }
  program.specials = specials_;
  for (SpecialSlot& special : program.specials) correct(special.slot);
  program.constants = constants_;
  program.frame_bytes = constant_bytes + register_bytes_;
}

}  // namespace regatta::ptxsim
