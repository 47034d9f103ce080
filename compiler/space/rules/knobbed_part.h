// A part whose knobs fill in a tiling, each one member of it.
#ifndef REGATTA_COMPILER_SPACE_RULES_KNOBBED_PART_H_
#define REGATTA_COMPILER_SPACE_RULES_KNOBBED_PART_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/space/rule.h"

namespace regatta {

// What the parts of all rules share. A rule's constructor adds knobs and
// constraints; afterwards nothing changes.
template <typename Tiling>
class KnobbedPart : public Part {
 public:
  const std::vector<Knob>& knobs() const override { return knobs_; }
  const std::vector<Constraint>& constraints() const override {
    return constraints_;
  }
  std::vector<KnobValues> Seeds() const override { return seeds_; }

 protected:
  KnobbedPart() {
    constexpr size_t kUsual = 16;
    knobs_.reserve(kUsual);
    setters_.reserve(kUsual);
  }
  // `set` writes a value of the knob into a tiling.
  void Add(Knob knob, std::function<void(Tiling&, int64_t)> set) {
    knobs_.push_back(std::move(knob));
    setters_.push_back(std::move(set));
  }
  // `tiling` with what `values` say, one value per knob.
  Tiling Decode(const KnobValues& values, Tiling tiling = {}) const {
    for (size_t i = 0; i < values.size(); ++i) setters_[i](tiling, values[i]);
    return tiling;
  }
  // knobs_.size(): not there.
  size_t Place(std::string_view knob) const {
    return std::find_if(knobs_.begin(), knobs_.end(),
                        [&](const Knob& k) { return k.name == knob; }) -
           knobs_.begin();
  }

  // Gives `knob`, where there is one, its largest choice up to `most` that
  // breaks no constraint together with the rest of `values`, going up from
  // where it stands. REQUIRES: `values` are legal.
  void Wish(std::string_view knob, int64_t most, KnobValues& values) const {
    const size_t at = Place(knob);
    if (at == knobs_.size()) return;
    for (int64_t choice : knobs_[at].choices) {
      if (choice > most) continue;
      const int64_t before = std::exchange(values[at], choice);
      if (FirstViolation(constraints_, values)) values[at] = before;
    }
  }

  std::vector<Knob> knobs_;
  std::vector<Constraint> constraints_;
  std::vector<KnobValues> seeds_;

 private:
  std::vector<std::function<void(Tiling&, int64_t)>> setters_;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_KNOBBED_PART_H_
