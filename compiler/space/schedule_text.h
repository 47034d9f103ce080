// The syntax of schedule texts, without knowledge of any space:
//   schedule := part ("+" part)*
//   part     := NAME [":" COUNT] "{" [knob ("," knob)*] "}"
//   knob     := NAME "=" VALUE
// NAME is [a-z][a-z0-9_]*, VALUE is [A-Za-z0-9_.-]+, COUNT (stages of the part)
// is at least 2 and left out for one stage. No blanks.
#ifndef REGATTA_COMPILER_SPACE_SCHEDULE_TEXT_H_
#define REGATTA_COMPILER_SPACE_SCHEDULE_TEXT_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace regatta {

// Longer texts are refused before anything looks at them.
inline constexpr size_t kMaxScheduleBytes = 16 << 10;

struct PartText {
  std::string label;  // NAME or NAME:COUNT
  std::vector<std::pair<std::string, std::string>> knobs;
};

// InvalidArgument names the character where the syntax breaks; a knob given
// twice in a part is an error.
absl::StatusOr<std::vector<PartText>> ParseScheduleText(std::string_view text);

std::string PrintScheduleText(const std::vector<PartText>& parts);

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_SCHEDULE_TEXT_H_
