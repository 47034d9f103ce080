// Seeds of faults (tests/support/seeds.h).
#include "tests/tracker/simulation.h"

#include <iostream>
#include <optional>

#include "absl/strings/str_join.h"
#include "tests/support/seeds.h"
#include "tests/tracker/silence.h"

namespace regatta {
namespace {

TEST(TrackerSimulation, EveryTrialEndsExactlyOnceUnderAnyFaults) {
  const SeedRange seeds = SeedsToRun(200);
  std::map<std::string, int> counts;
  for (uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    SimulationReport report;
    {
      std::optional<Silence> silence;
      if (!seeds.single) silence.emplace();
      report = Simulation(seed).Run();
    }
    for (const auto& [name, count] : report.counts) counts[name] += count;
    ASSERT_TRUE(report.violations.empty())
        << absl::StrJoin(report.violations, "\n")
        << "\nagain with: " << ReplayCommand(seed);
  }
  for (const auto& [name, count] : counts) {
    std::cout << name << ": " << count << "\n";
  }
  if (seeds.count() < 50) return;
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
                           "retire",
                           "fleets compared"}) {
    EXPECT_GT(counts[name], 10) << name;
  }
}

}  // namespace
}  // namespace regatta
