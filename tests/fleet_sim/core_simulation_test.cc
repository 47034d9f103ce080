#include "tests/fleet_sim/core_simulation.h"

#include <iostream>

#include "absl/strings/str_join.h"
#include "base/log.h"
#include "tests/support/seeds.h"
#include "tests/tracker/silence.h"

namespace regatta::fleet_sim {
namespace {

TEST(CoreSimulation, TrackerLoopsAndSpoolsKeepEveryPromiseUnderAnyFaults) {
  const SeedRange seeds = SeedsToRun(200);
  std::map<std::string, int> counts;
  for (uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    CoreSimulation::Report report;
    {
      std::optional<Silence> silence;
      if (!seeds.single) silence.emplace();
      report = CoreSimulation(seed).Run();
    }
    ASSERT_TRUE(report.violations.empty())
        << absl::StrJoin(report.violations, "\n")
        << "\nagain with: " << ReplayCommand(seed);
    for (const auto& [name, count] : report.counts) counts[name] += count;
  }
  for (const auto& [name, count] : counts) {
    std::cout << name << ": " << count << "\n";
  }
  if (seeds.count() < 50) return;
  // A simulation in which nothing goes wrong proves nothing.
  for (const char* name :
       {"connections cut", "half-open connections", "boards killed",
        "power lost", "boards suspended", "disks of boards broken",
        "trackers killed", "servers killed", "tracker stalls", "jobs cancelled",
        "server streams cut", "duplicates", "cancelled", "acknowledged again",
        "fleets compared"}) {
    EXPECT_GT(counts[name], 10) << name;
  }
  EXPECT_GT(counts["results"], 1000);
}

// The same seed is the same history, or a failing one could not be looked at.
TEST(CoreSimulation, ASeedIsOneHistory) {
  Silence silence;
  for (const uint64_t seed : {3, 4}) {
    const auto first = CoreSimulation(seed).Run();
    const auto second = CoreSimulation(seed).Run();
    EXPECT_EQ(first.counts, second.counts);
    EXPECT_FALSE(first.counts.empty());
  }
}

}  // namespace
}  // namespace regatta::fleet_sim
