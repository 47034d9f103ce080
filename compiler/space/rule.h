// How spaces come about: rules look at the structure of a workload and offer
// parts; a part implements one or more consecutive stages in loops that its
// knobs shape. A sketch is a sequence of parts that covers every stage.
//
// An offer is made into a part when somebody first looks at it: a best-known
// answer looks at one sketch, and knobs take far longer to work out than it
// does to see that a rule applies.
//
// To add a rule: a file under rules/ and one line in rule_list.cc; see
// docs/recipes.md, which also says how tests come to reach it.
#ifndef REGATTA_COMPILER_SPACE_RULE_H_
#define REGATTA_COMPILER_SPACE_RULE_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "compiler/expr/expr.h"
#include "compiler/lower/loop_builder.h"
#include "compiler/space/knob.h"
#include "compiler/target/target.h"

namespace regatta {

// What a rule may look at. Everything a schedule depends on is here.
struct SpaceContext {
  Workload workload;   // for rules: simplified (simplify.h)
  Target target;       // complete
  int threads = 1;     // a part offers parallel knobs only when above 1
  MachineHints hints;  // for defaults and ranges
};

// One way to run consecutive stages. Immutable; safe to share between threads.
// REQUIRES: the context outlives the part.
class Part {
 public:
  virtual ~Part() = default;
  virtual const std::vector<Knob>& knobs() const = 0;
  virtual const std::vector<Constraint>& constraints() const = 0;
  // Values that heuristics expect to be fast, best first, each satisfying every
  // constraint. The knobs' defaults need not be repeated.
  virtual std::vector<KnobValues> Seeds() const { return {}; }
  // Different values can mean the same code: a loop order where only one loop
  // is left, say. Moves `values` to the one spelling that searches use for that
  // code. Idempotent; keeps legal values legal.
  virtual void Normalise(KnobValues& values) const {}
  // Appends kernels and buffers that compute the stages' tensors from earlier
  // ones. REQUIRES: `values` satisfy every constraint.
  virtual void Emit(const KnobValues& values, LoopBuilder& out) const = 0;
};

// A part for `stage_count` stages, when wanted. `make` gives equal parts
// whenever it is called; REQUIRES: the context that was matched still exists.
struct PartOffer {
  int stage_count = 1;
  std::function<std::unique_ptr<Part>()> make;
};

class SpaceRule {
 public:
  virtual ~SpaceRule() = default;
  // Names its parts in schedules: "contraction".
  virtual std::string_view name() const = 0;
  // Every part that the rule offers for stages starting at `first_stage`, best
  // default first, no two with the same stage count; empty when it does not
  // apply. Knob defaults satisfy every constraint.
  virtual std::vector<PartOffer> Match(const SpaceContext& context,
                                       int first_stage) const = 0;
};

// THE list, in rule_list.cc: for each kind of target, ordered so that the first
// rule that matches gives the default sketch.
absl::Span<const SpaceRule* const> SpaceRules(std::string_view target_kind);
// The kinds of target that have rules.
std::vector<std::string> SpaceTargetKinds();

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULE_H_
