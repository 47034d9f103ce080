// Typed, named choices of a sketch, and the rules they must obey together.
#ifndef REGATTA_COMPILER_SPACE_KNOB_H_
#define REGATTA_COMPILER_SPACE_KNOB_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace regatta {

// A choice among a finite list of values, in an order where neighbours are
// alike (sizes ascending).
struct Knob {
  std::string name;                 // [a-z][a-z0-9_]*
  std::string help;                 // one clause with the unit
  std::vector<int64_t> choices;     // at least one, no duplicates
  std::vector<std::string> labels;  // names of the choices, or empty: numbers
  int64_t default_value = 0;        // one of `choices`

  // "14" or a label.
  std::string Print(int64_t value) const;
  // Absent when the text names no choice.
  std::optional<int64_t> Parse(std::string_view text) const;
  // The choice that is most like `text`, which named a choice of a knob of the
  // same name in another space: an equal label or number, else the nearest
  // number. Absent when the text is neither.
  std::optional<int64_t> Nearest(std::string_view text) const;
  // Place of a choice in the list. REQUIRES: `value` is one.
  size_t Position(int64_t value) const;
};

// A size that may be limited: the sizes below `extent`, ascending, then 0,
// which prints as "all" and means `extent`. The default is "all".
Knob SizeKnob(std::string name, std::string help, int64_t extent,
              std::vector<int64_t> sizes);
// A knob of named choices numbered from 0.
Knob WordKnob(std::string name, std::string help,
              std::vector<std::string> labels);
// A knob of plain numbers.
Knob NumberKnob(std::string name, std::string help,
                std::vector<int64_t> choices);

// Values of a part's knobs, in the order of its knob list.
using KnobValues = std::vector<int64_t>;

// A rule over the knobs of one part.
struct Constraint {
  std::string name;  // "register_budget"
  // Absent when it holds, else the numbers: "14*2+2 = 30 of 16 registers".
  std::function<std::optional<std::string>(const KnobValues&)> violation;
};

// "name: numbers" of the first constraint that `values` break; absent when all
// hold.
std::optional<std::string> FirstViolation(
    const std::vector<Constraint>& constraints, const KnobValues& values);

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_KNOB_H_
