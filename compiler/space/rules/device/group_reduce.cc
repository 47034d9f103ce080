#include "compiler/space/rules/device/group_reduce.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/device/device_nest.h"
#include "compiler/space/rules/knobbed_part.h"
#include "compiler/space/rules/loop_nest.h"
#include "compiler/space/rules/stage_loops.h"

namespace regatta {
namespace {

using loop::LoopKind;
using loop::StmtPtr;

// Fewer elements than this are not worth a group's barriers.
constexpr int64_t kFewestShared = 16;
constexpr int64_t kSmallestTeam = 4;

struct GroupReduceTiling {
  int64_t team = 1;    // threads that share one result; a power of two
  int64_t teams = 1;   // results of a group
  int64_t unroll = 1;  // of a thread's loop
};

class GroupReducePart : public KnobbedPart<GroupReduceTiling> {
 public:
  GroupReducePart(const SpaceContext& context, int stage, int shared);

  void Emit(const KnobValues& values, LoopBuilder& out) const override;

 private:
  const Stage& stage() const { return context_.workload.stages[stage_index_]; }
  int64_t Extent(int index) const {
    return index < 0 ? 1 : context_.workload.indices[index].extent;
  }
  void AddConstraints();
  void SetDefaults();
  StmtPtr Share(const GroupReduceTiling& t, const Affine& thread,
                const std::function<StmtPtr(const Affine& element)>& step,
                LoopBuilder& out) const;
  StmtPtr Combine(const GroupReduceTiling& t, int found, const Affine& thread,
                  const Affine& place, const LoopBuilder& out) const;

  const SpaceContext& context_;
  const int stage_index_;
  const int shared_;  // the reduced index that a team divides
  int x_ = -1;        // the contiguous output index
};

GroupReducePart::GroupReducePart(const SpaceContext& context, int stage_index,
                                 int shared)
    : context_(context), stage_index_(stage_index), shared_(shared) {
  if (!stage().indices.empty()) x_ = stage().indices.back();
  std::vector<int64_t> teams;
  for (int64_t team = kSmallestTeam; team <= 512; team *= 2) {
    if (team == kSmallestTeam || team <= Extent(shared_)) teams.push_back(team);
  }
  Add(NumberKnob("team", "threads that share one result", std::move(teams)),
      [](GroupReduceTiling& t, int64_t v) { t.team = v; });
  std::vector<int64_t> results = {1};
  for (int64_t r : {2, 4, 8, 16}) {
    if (r <= Extent(x_)) results.push_back(r);
  }
  Add(NumberKnob("teams", "results of one group", std::move(results)),
      [](GroupReduceTiling& t, int64_t v) { t.teams = v; });
  Add(NumberKnob("unroll", "copies of a thread's step", {1, 2, 4, 8}),
      [](GroupReduceTiling& t, int64_t v) { t.unroll = v; });
  AddConstraints();
  SetDefaults();
}

// The smallest values of all knobs satisfy every constraint.
void GroupReducePart::AddConstraints() {
  using Violation = std::optional<std::string>;
  const auto add = [&](std::string name, auto check) {
    constraints_.push_back(
        {std::move(name), [this, check](const KnobValues& values) {
           return Violation(check(Decode(values)));
         }});
  };
  add("group_size", [this](const GroupReduceTiling& t) {
    return GroupViolation(context_.target, t.team * t.teams);
  });
  add("local_memory", [this](const GroupReduceTiling& t) {
    return LocalViolation(context_.target,
                          t.team * t.teams * DTypeBytes(stage().accumulator));
  });
  add("unroll_fits", [this](const GroupReduceTiling& t) {
    const int64_t trips = std::max<int64_t>(1, Extent(shared_) / t.team);
    if (t.unroll <= trips) return Violation();
    return Violation(
        absl::StrCat(t.unroll, " copies of a loop of ", trips, " steps"));
  });
}

void GroupReducePart::SetDefaults() {
  KnobValues values;
  for (Knob& knob : knobs_) {
    knob.default_value = knob.choices[0];
    values.push_back(knob.choices[0]);
  }
  Wish("team", 128, values);
  knobs_[0].default_value = values[0];
}

// `step` for every element of the shared index that is the thread's.
StmtPtr GroupReducePart::Share(
    const GroupReduceTiling& t, const Affine& thread,
    const std::function<StmtPtr(const Affine& element)>& step,
    LoopBuilder& out) const {
  const int64_t trips = Extent(shared_) / t.team;
  const int64_t rest = Extent(shared_) % t.team;
  std::vector<StmtPtr> parts;
  if (trips > 0) {
    parts.push_back(MakeLoop(
        out, trips, LoopKind::kSerial,
        [&](const Affine& s) { return step(s * t.team + thread); }, t.unroll));
  }
  if (rest > 0) {
    parts.push_back(loop::If({{thread, rest}}, step(thread + trips * t.team)));
  }
  return loop::Block(std::move(parts));
}

// Gathers what the threads of a team left in `found` at the place of the first:
// each round the lower half of those that remain takes in the upper half.
StmtPtr GroupReducePart::Combine(const GroupReduceTiling& t, int found,
                                 const Affine& thread, const Affine& place,
                                 const LoopBuilder& out) const {
  std::vector<StmtPtr> parts = {loop::Barrier()};
  for (int64_t half = t.team / 2; half >= 1; half /= 2) {
    parts.push_back(
        loop::If({{thread, half}},
                 loop::Store(found, place,
                             loop::Load(out.buffer(found), found, place + half),
                             stage().reduction)));
    parts.push_back(loop::Barrier());
  }
  return loop::Block(std::move(parts));
}

void GroupReducePart::Emit(const KnobValues& values, LoopBuilder& out) const {
  const GroupReduceTiling t = Decode(values);
  const DType type = stage().accumulator;
  const int total = out.AddBuffer({.name = "total",
                                   .dtype = type,
                                   .elements = 1,
                                   .scope = loop::Scope::kRegister});
  const int found = out.AddBuffer({.name = "found",
                                   .dtype = type,
                                   .elements = t.team * t.teams,
                                   .scope = loop::Scope::kLocal});
  std::map<int, int64_t> tiled;
  if (x_ >= 0) tiled[x_] = CeilDiv(Extent(x_), t.teams);
  const StageTarget target = TensorTarget(out, stage());

  const auto body = [&](const std::map<int, Affine>& piece,
                        const std::array<Affine, 2>& thread) {
    std::map<int, Affine> bound = piece;
    std::vector<loop::Guard> inside;  // the team has a result to work on
    if (x_ >= 0) {
      bound[x_] = piece.at(x_) * t.teams + thread[1];
      inside.push_back({bound[x_], Extent(x_)});
    }
    const auto bind = [&](int index) {
      const auto it = bound.find(index);
      CHECK(it != bound.end()) << "index " << index << " is not bound";
      return it->second;
    };
    const auto step = [&](const Affine& element) {
      bound[shared_] = element;
      return loop::Store(total, Affine(),
                         loop::Cast(out.Translate(stage().value, bind), type),
                         stage().reduction);
    };
    const std::function<StmtPtr(size_t)> sum = [&](size_t depth) {
      if (depth == stage().reduce_indices.size()) {
        return Share(t, thread[0], step, out);
      }
      const int index = stage().reduce_indices[depth];
      if (index == shared_) return sum(depth + 1);
      return MakeLoop(out, Extent(index), LoopKind::kSerial,
                      [&](const Affine& var) {
                        bound[index] = var;
                        return sum(depth + 1);
                      });
    };
    const Affine place = thread[1] * t.team + thread[0];
    std::vector<StmtPtr> program;
    program.push_back(loop::Store(
        total, Affine(),
        loop::Const(loop::Identity(stage().reduction, type), type)));
    program.push_back(inside.empty() ? sum(0) : loop::If(inside, sum(0)));
    program.push_back(loop::Store(
        found, place, loop::Load(out.buffer(total), total, Affine())));
    program.push_back(Combine(t, found, thread[0], place, out));
    inside.push_back({thread[0], 1});
    program.push_back(loop::If(
        std::move(inside),
        loop::Store(target.buffer, target.offset(bind),
                    loop::Cast(loop::Load(out.buffer(found), found, place),
                               out.buffer(target.buffer).dtype))));
    return loop::Block(std::move(program));
  };
  out.AddKernel(absl::StrCat("group_reduce_",
                             context_.workload.tensors[stage().tensor].name),
                OverGrid(out, GridAxes(context_.workload, stage(), tiled),
                         {t.team, t.teams}, body));
}

class GroupReduceRuleImpl : public SpaceRule {
 public:
  std::string_view name() const override { return "group_reduce"; }
  std::vector<PartOffer> Match(const SpaceContext& context,
                               int first_stage) const override {
    const Workload& w = context.workload;
    const Stage& stage = w.stages[first_stage];
    int shared = -1, fewest = 0;
    for (int index : stage.reduce_indices) {
      if (w.indices[index].extent < kFewestShared) continue;
      const int strided = StridedAccesses(w, stage, index);
      if (shared < 0 || strided <= fewest) {
        shared = index;
        fewest = strided;
      }
    }
    // Where neighbouring results read neighbouring elements, threads of their
    // own do so too.
    if (shared >= 0 && !stage.indices.empty() &&
        StridedAccesses(w, stage, stage.indices.back()) < fewest) {
      return {};
    }
    if (shared < 0) return {};
    // A device that holds no team: each thread reduces alone.
    if (GroupViolation(context.target, kSmallestTeam) ||
        LocalViolation(context.target,
                       kSmallestTeam * DTypeBytes(stage.accumulator))) {
      return {};
    }
    return {{.make = [&context, first_stage, shared] {
      return std::make_unique<GroupReducePart>(context, first_stage, shared);
    }}};
  }
};

}  // namespace

const SpaceRule& GroupReduceRule() {
  static const GroupReduceRuleImpl rule;
  return rule;
}

}  // namespace regatta
