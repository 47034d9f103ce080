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
  std::vector<PartOffer> Match(const SpaceContext& context,
                               int first_stage) const override {
    const std::optional<ContractionShape> shape =
        MatchContraction(context.workload, first_stage);
    if (!shape) return {};
    std::vector<PartOffer> offers;
    for (int stages = 1 + shape->fusable_stages; stages > 0; --stages) {
      offers.push_back(
          {.stage_count = stages, .make = [&context, shape = *shape, stages] {
             return std::make_unique<ContractionPart>(context, shape, stages);
           }});
    }
    return offers;
  }
};

}  // namespace

const SpaceRule& ContractionRule() {
  static const ContractionRuleImpl rule;
  return rule;
}

}  // namespace regatta
