#include "compiler/space/space.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compiler/space/simplify.h"

namespace regatta {
namespace {

// Covers that are kept; more would be combinations of small stages.
constexpr size_t kMaxSketches = 16;

double Combinations(const Part& part) {
  double size = 1;
  for (const Knob& knob : part.knobs()) size *= knob.choices.size();
  return size;
}

KnobValues Defaults(const Part& part) {
  KnobValues values;
  for (const Knob& knob : part.knobs()) values.push_back(knob.default_value);
  return values;
}

int64_t Pick(const Knob& knob, Random& random) {
  return knob.choices[random.Below(knob.choices.size())];
}

// Mostly the choice next to `value`, sometimes any.
int64_t Move(const Knob& knob, int64_t value, Random& random) {
  if (random.Below(4) == 0) return Pick(knob, random);
  const size_t at = knob.Position(value);
  const bool up = random.Below(2) == 0;
  if (up) return knob.choices[std::min(at + 1, knob.choices.size() - 1)];
  return knob.choices[at == 0 ? 0 : at - 1];
}

std::string KnobNames(const Part& part) {
  return absl::StrJoin(part.knobs(), ", ",
                       [](std::string* out, const Knob& knob) {
                         absl::StrAppend(out, knob.name);
                       });
}

std::string ChoiceNames(const Knob& knob) {
  constexpr size_t kShown = 24;
  std::vector<std::string> names;
  for (int64_t choice : knob.choices) {
    if (names.size() == kShown) {
      names.push_back("...");
      break;
    }
    names.push_back(knob.Print(choice));
  }
  return absl::StrJoin(names, " ");
}

}  // namespace

absl::StatusOr<Space> Space::Create(SpaceContext context) {
  Space space;
  SpaceContext simplified = {.workload = Simplify(context.workload),
                             .target = context.target,
                             .threads = context.threads,
                             .hints = context.hints};
  space.context_ = std::make_shared<const SpaceContext>(std::move(context));
  space.part_context_ =
      std::make_shared<const SpaceContext>(std::move(simplified));
  const SpaceContext& rules_see = *space.part_context_;
  const auto rules = SpaceRules(rules_see.target.kind);
  if (rules.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no schedules for targets of kind '", rules_see.target.kind,
        "'; known: ", absl::StrJoin(SpaceTargetKinds(), ", ")));
  }
  const int stages = static_cast<int>(rules_see.workload.stages.size());
  // Covers of the stages from `next` on by the parts that rules offer, the
  // first rule's first. Sketches with a part in common share it.
  using SharedPart = std::shared_ptr<const OfferedPart>;
  std::vector<std::vector<SharedPart>> covers;
  std::vector<SharedPart> path;
  std::vector<std::vector<SharedPart>> offers(stages);
  for (int stage = 0; stage < stages; ++stage) {
    for (const SpaceRule* rule : rules) {
      for (PartOffer& offer : rule->Match(rules_see, stage)) {
        offers[stage].push_back(
            std::make_shared<OfferedPart>(*rule, std::move(offer)));
      }
    }
  }
  const std::function<void(int)> cover = [&](int next) {
    if (covers.size() == kMaxSketches) return;
    if (next == stages) {
      covers.push_back(path);
      return;
    }
    for (const SharedPart& part : offers[next]) {
      path.push_back(part);
      cover(next + part->stage_count());
      path.pop_back();
    }
  };
  cover(0);
  for (int stage = 0; covers.empty() && stage < stages; ++stage) {
    if (!offers[stage].empty()) continue;
    const int tensor = rules_see.workload.stages[stage].tensor;
    return absl::InvalidArgumentError(absl::StrCat(
        "no rule for ", rules_see.target.kind, " targets covers the stage of ",
        rules_see.workload.tensors[tensor].name));
  }
  auto sketches = std::make_shared<std::vector<Sketch>>();
  for (std::vector<SharedPart>& parts : covers) {
    sketches->push_back({std::move(parts)});
  }
  space.sketches_ = std::move(sketches);
  return space;
}

Schedule Space::DefaultOf(int sketch) const {
  Schedule schedule{.sketch = sketch};
  for (const auto& part : (*sketches_)[sketch].parts) {
    KnobValues values = Defaults(part->Get());
    part->Get().Normalise(values);
    schedule.parts.push_back(std::move(values));
  }
  return schedule;
}

Schedule Space::Default() const { return DefaultOf(0); }

// Of the first sketch every part's seeds in step, of the others the defaults.
std::vector<Schedule> Space::Seeds() const {
  std::vector<Schedule> seeds = {Default()};
  const auto add = [&](Schedule seed) {
    if (std::find(seeds.begin(), seeds.end(), seed) == seeds.end() &&
        !Refusal(seed)) {
      seeds.push_back(std::move(seed));
    }
  };
  std::vector<std::vector<KnobValues>> by_part;
  size_t most = 0;
  for (const auto& part : (*sketches_)[0].parts) {
    by_part.push_back(part->Get().Seeds());
    most = std::max(most, by_part.back().size());
  }
  for (size_t i = 0; i < most; ++i) {
    Schedule seed = Default();
    for (size_t p = 0; p < by_part.size(); ++p) {
      if (i >= by_part[p].size()) continue;
      seed.parts[p] = by_part[p][i];
      (*sketches_)[0].At(p).Normalise(seed.parts[p]);
    }
    add(std::move(seed));
  }
  for (size_t sketch = 1; sketch < sketches_->size() && sketch < 4; ++sketch) {
    add(DefaultOf(static_cast<int>(sketch)));
  }
  return seeds;
}

double Space::Size() const {
  double size = 0;
  for (const Sketch& sketch : *sketches_) {
    double combinations = 1;
    for (const auto& part : sketch.parts)
      combinations *= Combinations(part->Get());
    size += combinations;
  }
  return size;
}

bool Space::LegalPart(const Part& part, const KnobValues& values) const {
  return !FirstViolation(part.constraints(), values).has_value();
}

std::optional<std::string> Space::Refusal(const Schedule& schedule) const {
  const Sketch& sketch = (*sketches_)[schedule.sketch];
  for (size_t p = 0; p < sketch.parts.size(); ++p) {
    auto violation =
        FirstViolation(sketch.At(p).constraints(), schedule.parts[p]);
    if (!violation) continue;
    if (sketch.parts.size() > 1) {
      absl::StrAppend(&*violation, " (part ", p + 1, ", ",
                      sketch.parts[p]->label(), ")");
    }
    return violation;
  }
  return std::nullopt;
}

std::optional<KnobValues> Space::SamplePart(const Part& part,
                                            Random& random) const {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    KnobValues values;
    for (const Knob& knob : part.knobs()) values.push_back(Pick(knob, random));
    part.Normalise(values);
    if (LegalPart(part, values)) return values;
  }
  return std::nullopt;
}

// Sketches are ordered by promise: each is four times as likely as the next.
std::optional<Schedule> Space::Sample(Random& random) const {
  Schedule schedule;
  const int last = static_cast<int>(sketches_->size()) - 1;
  while (schedule.sketch < last && random.Below(4) == 0) ++schedule.sketch;
  for (const auto& part : (*sketches_)[schedule.sketch].parts) {
    std::optional<KnobValues> values = SamplePart(part->Get(), random);
    if (!values) return std::nullopt;
    schedule.parts.push_back(*std::move(values));
  }
  return schedule;
}

std::optional<Schedule> Space::Mutate(const Schedule& from,
                                      Random& random) const {
  const Sketch& sketch = (*sketches_)[from.sketch];
  std::vector<std::pair<size_t, size_t>> movable;  // part, knob
  for (size_t p = 0; p < sketch.parts.size(); ++p) {
    for (size_t k = 0; k < sketch.At(p).knobs().size(); ++k) {
      if (sketch.At(p).knobs()[k].choices.size() > 1) {
        movable.emplace_back(p, k);
      }
    }
  }
  if (movable.empty()) return std::nullopt;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Schedule result = from;
    const int moves = 1 + static_cast<int>(random.Below(2));
    for (int move = 0; move < moves; ++move) {
      const auto [p, k] = movable[random.Below(movable.size())];
      int64_t& value = result.parts[p][k];
      value = Move(sketch.At(p).knobs()[k], value, random);
    }
    for (size_t p = 0; p < sketch.parts.size(); ++p) {
      sketch.At(p).Normalise(result.parts[p]);
    }
    if (result != from && !Refusal(result)) return result;
  }
  return std::nullopt;
}

std::optional<Schedule> Space::Cross(const Schedule& a, const Schedule& b,
                                     Random& random) const {
  constexpr int kCrossAttempts = 50;
  const Sketch& sketch = (*sketches_)[a.sketch];
  if (a.sketch == b.sketch) {
    for (int attempt = 0; attempt < kCrossAttempts; ++attempt) {
      Schedule result = a;
      for (size_t p = 0; p < sketch.parts.size(); ++p) {
        for (size_t k = 0; k < result.parts[p].size(); ++k) {
          if (random.Below(2) == 0) result.parts[p][k] = b.parts[p][k];
        }
        sketch.At(p).Normalise(result.parts[p]);
      }
      if (result != a && result != b && !Refusal(result)) return result;
    }
  }
  return Mutate(a, random);
}

bool Space::Visit(Schedule& schedule, size_t p,
                  const std::function<bool(const Schedule&)>& visit) const {
  const Sketch& sketch = (*sketches_)[schedule.sketch];
  if (p == sketch.parts.size()) return visit(schedule);
  const Part& part = sketch.At(p);
  const std::vector<Knob>& knobs = part.knobs();
  std::vector<size_t> at(knobs.size(), 0);
  while (true) {
    KnobValues values;
    for (size_t k = 0; k < knobs.size(); ++k) {
      values.push_back(knobs[k].choices[at[k]]);
    }
    KnobValues normal = values;
    part.Normalise(normal);
    if (normal == values && LegalPart(part, values)) {
      schedule.parts.resize(p);
      schedule.parts.push_back(std::move(values));
      if (!Visit(schedule, p + 1, visit)) return false;
    }
    size_t k = knobs.size();
    while (k > 0 && ++at[k - 1] == knobs[k - 1].choices.size()) at[--k] = 0;
    if (k == 0) return true;
  }
}

void Space::ForEach(const std::function<bool(const Schedule&)>& visit) const {
  for (size_t s = 0; s < sketches_->size(); ++s) {
    Schedule schedule{.sketch = static_cast<int>(s)};
    if (!Visit(schedule, 0, visit)) return;
  }
}

std::string Space::Print(const Schedule& schedule) const {
  const Sketch& sketch = (*sketches_)[schedule.sketch];
  std::vector<PartText> text;
  for (size_t p = 0; p < sketch.parts.size(); ++p) {
    text.push_back({.label = sketch.parts[p]->label()});
    const std::vector<Knob>& knobs = sketch.At(p).knobs();
    for (size_t k = 0; k < knobs.size(); ++k) {
      text.back().knobs.emplace_back(knobs[k].name,
                                     knobs[k].Print(schedule.parts[p][k]));
    }
  }
  return PrintScheduleText(text);
}

const Space::Sketch* Space::FindSketch(
    const std::vector<PartText>& parts) const {
  for (const Sketch& sketch : *sketches_) {
    if (std::equal(parts.begin(), parts.end(), sketch.parts.begin(),
                   sketch.parts.end(),
                   [](const PartText& text,
                      const std::shared_ptr<const OfferedPart>& part) {
                     return text.label == part->label();
                   })) {
      return &sketch;
    }
  }
  return nullptr;
}

std::optional<KnobValues> Space::FindValues(const Part& part,
                                            const PartText& text) const {
  const std::vector<Knob>& knobs = part.knobs();
  if (text.knobs.size() != knobs.size()) return std::nullopt;
  KnobValues values;
  values.reserve(knobs.size());
  for (size_t k = 0; k < knobs.size(); ++k) {
    // Nearly always in the order of the knobs.
    auto given = text.knobs.begin() + k;
    if (given->first != knobs[k].name) {
      given = std::find_if(
          text.knobs.begin(), text.knobs.end(),
          [&](const auto& named) { return named.first == knobs[k].name; });
      if (given == text.knobs.end()) return std::nullopt;
    }
    const std::optional<int64_t> value = knobs[k].Parse(given->second);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

absl::StatusOr<KnobValues> Space::ParsePart(const Part& part,
                                            const PartText& text) const {
  if (auto values = FindValues(part, text)) return *std::move(values);
  const std::vector<Knob>& knobs = part.knobs();
  const auto error = [&](const std::string& what) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule: part ", text.label, ": ", what));
  };
  for (const auto& [name, value] : text.knobs) {
    if (std::none_of(knobs.begin(), knobs.end(),
                     [&](const Knob& knob) { return knob.name == name; })) {
      return error(
          absl::StrCat("unknown knob '", name, "'; known: ", KnobNames(part)));
    }
  }
  KnobValues values;
  for (const Knob& knob : knobs) {
    const auto given =
        std::find_if(text.knobs.begin(), text.knobs.end(),
                     [&](const auto& k) { return k.first == knob.name; });
    if (given == text.knobs.end()) {
      return error(absl::StrCat("knob ", knob.name, " is missing"));
    }
    const std::optional<int64_t> value = knob.Parse(given->second);
    if (!value) {
      return error(absl::StrCat("knob ", knob.name, " has no choice '",
                                given->second,
                                "'; choices: ", ChoiceNames(knob)));
    }
    values.push_back(*value);
  }
  return values;
}

absl::StatusOr<Schedule> Space::Parse(std::string_view text) const {
  ASSIGN_OR_RETURN(const std::vector<PartText> parts, ParseScheduleText(text));
  const Sketch* sketch = FindSketch(parts);
  if (sketch == nullptr) {
    std::vector<std::string> known;
    for (const Sketch& s : *sketches_) {
      known.push_back(absl::StrJoin(
          s.parts, "+",
          [](std::string* out, const std::shared_ptr<const OfferedPart>& p) {
            absl::StrAppend(out, p->label());
          }));
    }
    const std::string given =
        absl::StrJoin(parts, "+", [](std::string* out, const PartText& part) {
          absl::StrAppend(out, part.label);
        });
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule: this workload has no schedules of the form ",
        given.substr(0, 80), "; it has ", absl::StrJoin(known, ", ")));
  }
  Schedule schedule{.sketch = static_cast<int>(sketch - sketches_->data())};
  for (size_t p = 0; p < parts.size(); ++p) {
    ASSIGN_OR_RETURN(KnobValues values, ParsePart(sketch->At(p), parts[p]));
    schedule.parts.push_back(std::move(values));
  }
  return schedule;
}

std::optional<Schedule> Space::CarryOver(std::string_view foreign_text) const {
  const auto parts = ParseScheduleText(foreign_text);
  if (!parts.ok()) return std::nullopt;
  const Sketch* sketch = FindSketch(*parts);
  if (sketch == nullptr) return std::nullopt;
  Schedule schedule{.sketch = static_cast<int>(sketch - sketches_->data())};
  for (size_t p = 0; p < parts->size(); ++p) {
    auto values = FindValues(sketch->At(p), (*parts)[p]);
    if (!values) break;
    schedule.parts.push_back(*std::move(values));
  }
  if (schedule.parts.size() == parts->size() && !Refusal(schedule)) {
    return schedule;
  }
  return Adapt(*sketch, *parts);
}

std::optional<Schedule> Space::Adapt(std::string_view foreign_text) const {
  const auto parts = ParseScheduleText(foreign_text);
  if (!parts.ok()) return std::nullopt;
  const Sketch* sketch = FindSketch(*parts);
  if (sketch == nullptr) return std::nullopt;
  return Adapt(*sketch, *parts);
}

std::optional<Schedule> Space::Adapt(const Sketch& sketch,
                                     const std::vector<PartText>& parts) const {
  Schedule schedule{.sketch = static_cast<int>(&sketch - sketches_->data())};
  for (size_t p = 0; p < parts.size(); ++p) {
    const Part& part = sketch.At(p);
    KnobValues values;
    for (const Knob& knob : part.knobs()) {
      std::optional<int64_t> nearest;
      for (const auto& [name, value] : parts[p].knobs) {
        if (name == knob.name) nearest = knob.Nearest(value);
      }
      values.push_back(nearest.value_or(knob.default_value));
    }
    part.Normalise(values);
    // What does not fit this shape gives way to the default, knob by knob.
    for (size_t k = 0; k < values.size() && !LegalPart(part, values); ++k) {
      values[k] = part.knobs()[k].default_value;
      part.Normalise(values);
    }
    schedule.parts.push_back(std::move(values));
  }
  if (Refusal(schedule)) return std::nullopt;
  return schedule;
}

loop::Program Space::Emit(const Schedule& schedule) const {
  const std::optional<std::string> refusal = Refusal(schedule);
  CHECK(!refusal) << "emitting an illegal schedule: " << *refusal;
  LoopBuilder out(part_context_->workload, part_context_->threads);
  const Sketch& sketch = (*sketches_)[schedule.sketch];
  for (size_t p = 0; p < sketch.parts.size(); ++p) {
    sketch.At(p).Emit(schedule.parts[p], out);
  }
  return out.Finish();
}

}  // namespace regatta
