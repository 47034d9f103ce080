#include "tests/fleet_sim/targets.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace regatta::fleet_sim {
namespace {

std::string Text(double value, const std::string& unit) {
  return absl::StrFormat("%.*f %s", value < 100 ? 1 : 0, value, unit);
}

}  // namespace

void Targets::AtMost(const std::string& what, double wanted, double got,
                     const std::string& unit) {
  targets_.push_back({what, absl::StrCat("at most ", Text(wanted, unit)),
                      Text(got, unit), got <= wanted});
}

void Targets::AtLeast(const std::string& what, double wanted, double got,
                      const std::string& unit) {
  targets_.push_back({what, absl::StrCat("at least ", Text(wanted, unit)),
                      Text(got, unit), got >= wanted});
}

void Targets::Print() const {
  std::vector<std::string> missed;
  absl::PrintF("\n%-36s %-20s %-14s\n", "target", "wanted", "measured");
  for (const Target& target : targets_) {
    absl::PrintF("%-36s %-20s %-14s %s\n", target.what, target.wanted,
                 target.got, target.met ? "met" : "MISSED");
    if (!target.met) missed.push_back(target.what);
  }
  absl::PrintF("targets missed: %s\n",
               missed.empty() ? "none" : absl::StrJoin(missed, ", "));
}

}  // namespace regatta::fleet_sim
