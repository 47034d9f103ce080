#include "compiler/space/rules/contraction.h"

#include <optional>

#include "compiler/space/rules/contraction_part.h"
#include "compiler/space/rules/contraction_shape.h"

namespace regatta {
namespace {

class ContractionRuleImpl : public SpaceRule {
 public:
  std::string_view name() const override { return "contraction"; }

  // With every stage that can be fused first, then with ever fewer.
  std::vector<std::unique_ptr<Part>> Match(const SpaceContext& context,
                                           int first_stage) const override {
    std::vector<std::unique_ptr<Part>> parts;
    const std::optional<ContractionShape> shape =
        MatchContraction(context.workload, first_stage);
    if (!shape) return parts;
    for (int fused = shape->fusable_stages; fused >= 0; --fused) {
      parts.push_back(
          std::make_unique<ContractionPart>(context, *shape, 1 + fused));
    }
    return parts;
  }
};

}  // namespace

const SpaceRule& ContractionRule() {
  static const ContractionRuleImpl rule;
  return rule;
}

}  // namespace regatta
