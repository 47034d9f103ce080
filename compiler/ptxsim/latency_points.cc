#include "compiler/ptxsim/latency_points.h"

#include <unordered_set>

namespace regatta::ptxsim {
namespace {

using Slots = std::unordered_set<Slot>;

bool Names(const Instruction& in, const Slots& slots) {
  if (slots.empty()) return false;
  if (in.guard != kNoSlot && slots.contains(in.guard)) return true;
  for (Slot slot : in.operand) {
    if (slot != kNoSlot && slots.contains(slot)) return true;
  }
  return false;
}

}  // namespace

void MarkLatencyPoints(Program& program) {
  Slots global, shared;  // registers that are under way
  for (Instruction& in : program.code) {
    if (Names(in, global)) {
      in.fill = Fill::kGlobal;
      global.clear();
      shared.clear();  // the shorter latency has passed too
    } else if (Names(in, shared)) {
      in.fill = Fill::kShared;
      shared.clear();
    }
    Slots* late = nullptr;
    if (in.space == Space::kGlobal || in.space == Space::kGeneric) {
      late = &global;
    } else if (in.space == Space::kShared) {
      late = &shared;
    }
    for (int i = 0; i < in.late_count && late != nullptr; ++i) {
      late->insert(in.operand[in.late_first + i]);
    }
  }
}

}  // namespace regatta::ptxsim
