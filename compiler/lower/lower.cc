#include "compiler/lower/lower.h"

#include <string>
#include <string_view>
#include <utility>

#include "base/status_macros.h"
#include "compiler/lower/image_verify.h"
#include "compiler/lower/passes/drop_unit_loops.h"
#include "compiler/lower/passes/fold_guards.h"
#include "compiler/lower/passes/plan_workspace.h"

namespace regatta {
namespace {

absl::Status VerifyAfter(const loop::Program& program, std::string_view pass) {
  absl::Status status = loop::Verify(program);
  if (status.ok()) status = loop::VerifyImages(program);
  return Annotate(std::move(status),
                  absl::StrCat("after ", std::string(pass)));
}

}  // namespace

absl::StatusOr<LoweredProgram> LowerProgram(loop::Program program) {
  RETURN_IF_ERROR(VerifyAfter(program, "emission"));

  // No loop but group and thread loops has extent 1 afterwards.
  program = loop::DropUnitLoops(std::move(program));
  RETURN_IF_ERROR(VerifyAfter(program, "drop_unit_loops"));

  // Every guard left can fail for some iteration.
  program = loop::FoldGuards(std::move(program));
  RETURN_IF_ERROR(VerifyAfter(program, "fold_guards"));

  LoweredProgram lowered;
  lowered.program = std::move(program);
  // Every workspace buffer in use has a place.
  PlanWorkspace(lowered);
  return lowered;
}

}  // namespace regatta
