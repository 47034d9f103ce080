#include "compiler/space/rule.h"
#include "compiler/space/rules/contraction.h"
#include "compiler/space/rules/fold.h"
#include "compiler/space/rules/loops.h"
#include "compiler/space/rules/rows.h"
#include "compiler/space/rules/transpose.h"
#include "compiler/space/rules/windows.h"

namespace regatta {

absl::Span<const SpaceRule* const> SpaceRules(std::string_view target_kind) {
  static const SpaceRule* const kCpu[] = {
      &WindowsRule(), &ContractionRule(), &RowsRule(),
      &FoldRule(),    &TransposeRule(),   &LoopsRule(),
  };
  if (target_kind == "cpu") return kCpu;
  return {};
}

}  // namespace regatta
