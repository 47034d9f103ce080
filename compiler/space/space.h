// All schedules of one workload on one target.
//
// A schedule is a sketch (a named sequence of parts) and a value for every
// knob. Its text form crosses the wire and stands in the log; nobody but this
// class reads it:
//   contraction{mr=14,nv=2,kc=512,...}
//   loops{vec=16,...}+rows:3{...}
// A part that covers several stages says how many. The syntax is that of
// schedule_text.h.
//
// Immutable after Create; safe to share between threads.
#ifndef REGATTA_COMPILER_SPACE_SPACE_H_
#define REGATTA_COMPILER_SPACE_SPACE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "compiler/lower/loop_ir.h"
#include "compiler/space/offered_part.h"
#include "compiler/space/rule.h"
#include "compiler/space/schedule_text.h"

namespace regatta {

// Bumped whenever a schedule's text could mean other code than before.
inline constexpr int kSpaceVersion = 2;

// A point of a space: plain data, comparable. Meaningful only with its Space.
struct Schedule {
  int sketch = 0;
  std::vector<KnobValues> parts;  // per part of the sketch
  friend auto operator<=>(const Schedule&, const Schedule&) = default;
};

class Space {
 public:
  // InvalidArgument when no rule covers the workload on this target, naming the
  // stage.
  static absl::StatusOr<Space> Create(SpaceContext context);

  std::string_view name() const { return context_->target.kind; }  // "cpu"
  const SpaceContext& context() const { return *context_; }

  // Decent everywhere; satisfies the constraints.
  Schedule Default() const;
  // Few schedules that heuristics expect to be fast, the default first; all
  // satisfy the constraints.
  std::vector<Schedule> Seeds() const;
  // Knob combinations over all sketches, before constraints.
  double Size() const;

  // The refusal of a schedule that breaks a constraint:
  // "register_budget: 14*4+4 = 60 of 32 vector registers". Absent when legal.
  std::optional<std::string> Refusal(const Schedule& schedule) const;

  // Legal schedules; absent when `kAttempts` tries found none.
  static constexpr int kAttempts = 1000;
  std::optional<Schedule> Sample(Random& random) const;
  // One or two knobs moved, mostly to neighbouring choices.
  std::optional<Schedule> Mutate(const Schedule& from, Random& random) const;
  // Knobs from both parents when they share a sketch, else a mutation of `a`.
  std::optional<Schedule> Cross(const Schedule& a, const Schedule& b,
                                Random& random) const;
  // Calls `visit` with every legal schedule, in a fixed order, until it returns
  // false. REQUIRES: Size() is small enough to walk.
  void ForEach(const std::function<bool(const Schedule&)>& visit) const;

  std::string Print(const Schedule& schedule) const;
  // InvalidArgument for text that names no schedule of this space (which part,
  // knob or value); legality is Refusal's business.
  absl::StatusOr<Schedule> Parse(std::string_view text) const;
  // The schedule of this space that is most like one written for another shape
  // (knobs of the same names take the nearest choice). Absent when no sketch
  // has the same parts or the result is illegal.
  std::optional<Schedule> Adapt(std::string_view foreign_text) const;
  // The schedule itself where this space has it and it is legal, else as Adapt.
  std::optional<Schedule> CarryOver(std::string_view foreign_text) const;

  // The loops of a legal schedule.
  loop::Program Emit(const Schedule& schedule) const;

 private:
  struct Sketch {
    std::vector<std::shared_ptr<const OfferedPart>> parts;  // sketches share
    const Part& At(size_t p) const { return parts[p]->Get(); }
  };
  Space() = default;

  bool LegalPart(const Part& part, const KnobValues& values) const;
  std::optional<KnobValues> SamplePart(const Part& part, Random& random) const;
  Schedule DefaultOf(int sketch) const;
  bool Visit(Schedule& schedule, size_t part,
             const std::function<bool(const Schedule&)>& visit) const;
  // Absent where ParsePart has an error.
  std::optional<KnobValues> FindValues(const Part& part,
                                       const PartText& text) const;
  std::optional<Schedule> Adapt(const Sketch& sketch,
                                const std::vector<PartText>& parts) const;
  absl::StatusOr<KnobValues> ParsePart(const Part& part,
                                       const PartText& text) const;
  const Sketch* FindSketch(const std::vector<PartText>& parts) const;

  std::shared_ptr<const SpaceContext> context_;
  // What the parts look at: the workload simplified.
  std::shared_ptr<const SpaceContext> part_context_;
  std::shared_ptr<const std::vector<Sketch>> sketches_;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_SPACE_H_
