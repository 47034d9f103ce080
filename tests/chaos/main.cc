// chaos: a whole fleet under random faults, and whether it lost anything.
//
//   chaos --seed 7 --seconds 300
//
// Server, tracker and three agents work on a job; every second a process is
// killed or stopped, a connection cut, held, slowed or refused, or a disk is
// full. Then the faults end, and everything must still be there (checker.h).
// Exits 0 when it is; else 1, with the seed and what is broken as the last
// lines.
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/chaos/campaign.h"

namespace regatta::testing {
namespace {

struct Flags {
  Campaign::Options campaign;
  double seconds = 300;
  std::string folder = "/tmp", programs = REGATTA_PROGRAM_DIR;
  bool keep = false;
};

void PrintTable(const Campaign& campaign, const Cluster& cluster,
                const Findings& findings) {
  std::cout << "\nfaults\n";
  int64_t total = 0;
  for (const auto& [kind, count] : campaign.menu().done()) {
    std::cout << absl::StrFormat("  %-28s %6d\n", kind, count);
    total += count;
  }
  std::cout << absl::StrFormat("  %-28s %6d\n", "all", total);
  std::cout << "records\n";
  for (const auto& [outcome, count] : findings.outcomes) {
    std::cout << absl::StrFormat("  %-28s %6d\n", outcome, count);
  }
  std::cout << absl::StrFormat("  %-28s %6d\n", "all", findings.records);
  std::cout << "fleet\n";
  const auto line = [](const char* what, int64_t count) {
    std::cout << absl::StrFormat("  %-28s %6d\n", what, count);
  };
  line("jobs", static_cast<int64_t>(campaign.jobs().size()));
  line("restarts of daemons", cluster.restarts());
  line("releases from quarantine", campaign.releases());
  line("trials acknowledged", findings.acknowledged);
  line("acknowledgements", cluster.acks().acks());
  line("results rejected", cluster.acks().rejected());
  line("pairs of runs compared", findings.pairs_compared);
  std::cout << absl::StrFormat("  %-28s %6.1f s\n",
                               "first outcome after faults",
                               absl::ToDoubleSeconds(campaign.recovery()));
}

int Run(const Flags& flags) {
  Campaign::Options options = flags.campaign;
  options.faults_for = absl::Seconds(flags.seconds);
  const absl::Status mounts = OwnMounts();
  options.disks = mounts.ok();
  if (!mounts.ok()) {
    std::cout << "disks are not filled: " << mounts.message() << "\n";
  }
  auto folder = std::make_unique<TempDir>(flags.folder);
  Cluster cluster(folder->path(), flags.programs, options.disks, options.seed);
  std::cout << absl::StrFormat(
      "seed %d, %.0f s of faults, jobs of %d trials, %s disks, in %s\n",
      options.seed, flags.seconds, options.trials,
      options.disks ? "small" : "ordinary", folder->path());
  Campaign campaign(options, &cluster);
  Findings findings;
  absl::Status status = cluster.Start();
  if (status.ok()) status = campaign.Baseline();
  if (status.ok()) {
    campaign.Faults();
    status = campaign.Recover();
    findings = CheckFleet(cluster, campaign.jobs());
  }
  if (!status.ok()) {
    findings.broken.insert(findings.broken.begin(),
                           std::string(status.message()));
  }
  CheckEnd(&cluster, &findings);
  PrintTable(campaign, cluster, findings);
  for (const std::string& line : findings.broken) {
    std::cout << "BROKEN with seed " << options.seed << ": " << line << "\n";
  }
  if (flags.keep || !findings.broken.empty()) {
    std::cout << "logs: " << cluster.LogsFolder() << "\n";
    folder.release();  // stays
  }
  if (findings.broken.empty()) {
    std::cout << "all held with seed " << options.seed << "\n";
  }
  return findings.broken.empty() ? 0 : 1;
}

}  // namespace
}  // namespace regatta::testing

int main(int argc, char** argv) {
  regatta::testing::Flags flags;
  CLI::App app("A fleet under random faults, and whether it lost anything");
  app.add_option("--seed", flags.campaign.seed, "Of the faults and the search")
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds, "How long faults go on, seconds")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--trials", flags.campaign.trials, "Of each job, count")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->capture_default_str();
  app.add_option("--folder", flags.folder, "Where its own folder is made")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("--programs", flags.programs, "Where the daemons are")
      ->check(CLI::ExistingDirectory)
      ->type_name("DIR")
      ->capture_default_str();
  app.add_flag("--keep", flags.keep, "Keep the daemons' logs");
  app.add_flag("--quiet", flags.campaign.quiet, "No line for each fault");
  CLI11_PARSE(app, argc, argv);
  return regatta::testing::Run(flags);
}
