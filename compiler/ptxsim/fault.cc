#include "compiler/ptxsim/fault.h"

#include "absl/strings/str_cat.h"

namespace regatta::ptxsim {
namespace {

std::string ToText(const Dim3& at) {
  return absl::StrCat("(", at.x, ",", at.y, ",", at.z, ")");
}

}  // namespace

std::string_view FaultKindName(FaultKind kind) {
  switch (kind) {
    case FaultKind::kSharedRace:
      return "shared_race";
    case FaultKind::kGlobalRace:
      return "global_race";
    case FaultKind::kSharedOutOfBounds:
      return "shared_out_of_bounds";
    case FaultKind::kGlobalOutOfBounds:
      return "global_out_of_bounds";
    case FaultKind::kLocalOutOfBounds:
      return "local_out_of_bounds";
    case FaultKind::kMisaligned:
      return "misaligned";
    case FaultKind::kAsyncNotAwaited:
      return "async_not_awaited";
    case FaultKind::kBarrierDivergence:
      return "barrier_divergence";
    case FaultKind::kDeadlock:
      return "deadlock";
    case FaultKind::kTrap:
      return "trap";
    case FaultKind::kTimeout:
      return "timeout";
  }
  return "unknown";
}

std::string Fault::ToString() const {
  std::string text(FaultKindName(kind));
  if (line > 0) absl::StrAppend(&text, " at PTX line ", line);
  if (!instruction.empty()) absl::StrAppend(&text, " (", instruction, ")");
  absl::StrAppend(&text, ", block ", ToText(block), ", thread ", ToText(thread),
                  ": ", detail);
  return text;
}

}  // namespace regatta::ptxsim
