#include <array>

#include "compiler/space/rule.h"
#include "compiler/space/rules/contraction.h"
#include "compiler/space/rules/loops.h"

namespace regatta {

absl::Span<const SpaceRule* const> SpaceRules(std::string_view target_kind) {
  static const std::array<const SpaceRule*, 2> kCpu = {&ContractionRule(),
                                                       &LoopsRule()};
  if (target_kind == "cpu") return kCpu;
  return {};
}

}  // namespace regatta
