#include "compiler/space/rule.h"
#include "compiler/space/rules/contraction.h"
#include "compiler/space/rules/device/group_reduce.h"
#include "compiler/space/rules/device/matrix_tiles.h"
#include "compiler/space/rules/device/threads.h"
#include "compiler/space/rules/device/tiles.h"
#include "compiler/space/rules/fold.h"
#include "compiler/space/rules/loops.h"
#include "compiler/space/rules/rows.h"
#include "compiler/space/rules/transpose.h"
#include "compiler/space/rules/windows.h"

namespace regatta {
namespace {

struct KindRules {
  std::string_view kind;
  absl::Span<const SpaceRule* const> rules;
};

absl::Span<const KindRules> AllRules() {
  static const SpaceRule* const kCpu[] = {
      &WindowsRule(), &ContractionRule(), &RowsRule(),
      &FoldRule(),    &TransposeRule(),   &LoopsRule(),
  };
  static const SpaceRule* const kDevice[] = {
      &MatrixTilesRule(), &TilesRule(), &GroupReduceRule(), &ThreadsRule()};
  static const KindRules kKinds[] = {
      {"cpu", kCpu}, {"cuda", kDevice}, {"opencl", kDevice}};
  return kKinds;
}

}  // namespace

absl::Span<const SpaceRule* const> SpaceRules(std::string_view target_kind) {
  for (const KindRules& of : AllRules()) {
    if (of.kind == target_kind) return of.rules;
  }
  return {};
}

std::vector<std::string> SpaceTargetKinds() {
  std::vector<std::string> kinds;
  for (const KindRules& of : AllRules()) kinds.emplace_back(of.kind);
  return kinds;
}

}  // namespace regatta
