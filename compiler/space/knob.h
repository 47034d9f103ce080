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
};

// Values of a part's knobs, in the order of its knob list.
using KnobValues = std::vector<int64_t>;

// A rule over the knobs of one part.
struct Constraint {
  std::string name;  // "register_budget"
  // Absent when it holds, else the numbers: "14*2+2 = 30 of 16 registers".
  std::function<std::optional<std::string>(const KnobValues&)> violation;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_KNOB_H_
