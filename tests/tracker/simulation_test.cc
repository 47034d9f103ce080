// Seeds of faults. A failing seed is run alone with REGATTA_SIM_SEED=N; the
// number of seeds is multiplied by REGATTA_TEST_SCALE.
#include "tests/tracker/simulation.h"

#include <cstdlib>
#include <iostream>

#include "absl/strings/str_join.h"
#include "tests/tracker/silence.h"

namespace regatta {
namespace {

TEST(TrackerSimulation, EveryTrialEndsExactlyOnceUnderAnyFaults) {
  uint64_t first = 1;
  uint64_t seeds = 200;
  if (const char* scale = std::getenv("REGATTA_TEST_SCALE")) {
    seeds = std::max<uint64_t>(1, static_cast<uint64_t>(200 * atof(scale)));
  }
  const char* one = std::getenv("REGATTA_SIM_SEED");
  if (one != nullptr) {
    first = std::strtoull(one, nullptr, 10);
    seeds = 1;
  }
  std::map<std::string, int> counts;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    SimulationReport report;
    if (one != nullptr) {
      report = Simulation(seed).Run();
    } else {
      Silence silence;
      report = Simulation(seed).Run();
    }
    for (const auto& [name, count] : report.counts) counts[name] += count;
    ASSERT_TRUE(report.violations.empty())
        << absl::StrJoin(report.violations, "\n");
  }
  for (const auto& [name, count] : counts) {
    std::cout << name << ": " << count << "\n";
  }
  if (one != nullptr || seeds < 50) return;
  // A simulation in which nothing goes wrong proves nothing.
  for (const char* name : {"tracker restarts",
                           "agent kills",
                           "server kills",
                           "tracker stalls",
                           "half-open connections",
                           "jobs cancelled",
                           "abandoned",
                           "continued",
                           "duplicates",
                           "agent_lost",
                           "refused",
                           "poison runs",
                           "reboots",
                           "drains",
                           "canaries",
                           "crashed",
                           "approve",
                           "drain",
                           "quarantine",
                           "release",
                           "reserve",
                           "retire"}) {
    EXPECT_GT(counts[name], 10) << name;
  }
}

}  // namespace
}  // namespace regatta
