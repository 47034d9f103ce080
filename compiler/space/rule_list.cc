#include "compiler/space/rule.h"
#include "compiler/space/rules/contraction.h"
#include "compiler/space/rules/device/group_reduce.h"
#include "compiler/space/rules/device/threads.h"
#include "compiler/space/rules/device/tiles.h"
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
  static const SpaceRule* const kDevice[] = {
      &TilesRule(), &GroupReduceRule(), &ThreadsRule()};
  static const struct {
    std::string_view kind;
    absl::Span<const SpaceRule* const> rules;
  } kKinds[] = {{"cpu", kCpu}, {"opencl", kDevice}, {"cuda", kDevice}};
  for (const auto& of : kKinds) {
    if (of.kind == target_kind) return of.rules;
  }
  return {};
}

}  // namespace regatta
