#include "compiler/space/knob.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/strings.h"

namespace regatta {

std::string Knob::Print(int64_t value) const {
  if (labels.empty()) return absl::StrCat(value);
  return labels[Position(value)];
}

std::optional<int64_t> Knob::Parse(std::string_view text) const {
  if (!labels.empty()) {
    const auto found = std::find(labels.begin(), labels.end(), text);
    if (found == labels.end()) return std::nullopt;
    return choices[found - labels.begin()];
  }
  // Only the one spelling that Print has.
  int64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() ||
      absl::StrCat(value) != ToAbsl(text) ||
      std::find(choices.begin(), choices.end(), value) == choices.end()) {
    return std::nullopt;
  }
  return value;
}

std::optional<int64_t> Knob::Nearest(std::string_view text) const {
  if (const auto exact = Parse(text)) return exact;
  int64_t wanted = 0;
  if (!absl::SimpleAtoi(std::string(text), &wanted)) return std::nullopt;
  std::optional<int64_t> best;
  int64_t best_distance = 0;
  for (int64_t choice : choices) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(Print(choice), &number)) continue;
    const int64_t distance = std::abs(number - wanted);
    if (!best || distance < best_distance) {
      best = choice;
      best_distance = distance;
    }
  }
  return best;
}

size_t Knob::Position(int64_t value) const {
  const auto it = std::find(choices.begin(), choices.end(), value);
  CHECK(it != choices.end()) << value << " is no choice of " << name;
  return it - choices.begin();
}

Knob SizeKnob(std::string name, std::string help, int64_t extent,
              std::vector<int64_t> sizes) {
  Knob knob{.name = std::move(name), .help = std::move(help)};
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  for (int64_t size : sizes) {
    if (size <= 0 || size >= extent) continue;
    knob.choices.push_back(size);
    knob.labels.push_back(absl::StrCat(size));
  }
  knob.choices.push_back(0);
  knob.labels.push_back("all");
  knob.default_value = 0;
  return knob;
}

Knob WordKnob(std::string name, std::string help,
              std::vector<std::string> labels) {
  Knob knob{.name = std::move(name), .help = std::move(help)};
  for (size_t i = 0; i < labels.size(); ++i) knob.choices.push_back(i);
  knob.labels = std::move(labels);
  knob.default_value = 0;
  return knob;
}

Knob NumberKnob(std::string name, std::string help,
                std::vector<int64_t> choices) {
  std::sort(choices.begin(), choices.end());
  choices.erase(std::unique(choices.begin(), choices.end()), choices.end());
  CHECK(!choices.empty()) << "knob " << name << " without a choice";
  Knob knob{.name = std::move(name),
            .help = std::move(help),
            .choices = std::move(choices)};
  knob.default_value = knob.choices[0];
  return knob;
}

std::optional<std::string> FirstViolation(
    const std::vector<Constraint>& constraints, const KnobValues& values) {
  for (const Constraint& constraint : constraints) {
    if (const auto numbers = constraint.violation(values)) {
      return absl::StrCat(constraint.name, ": ", *numbers);
    }
  }
  return std::nullopt;
}

}  // namespace regatta
